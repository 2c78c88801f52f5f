//! Fuzzing on the stable toolchain, with libFuzzer.
//!
//! The fuzz package is a workspace of its own in tests/fuzz: its code is built with
//! coverage counters, which nothing else should be. The flags below are those that make
//! LLVM add the counters libFuzzer reads; no sanitizer is used, because those need a
//! nightly compiler, and there is no unsafe code for one to watch.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context as _, bail};

use crate::command::{cargo, succeeds};
use crate::tally::Tally;
use crate::workspace;

const FLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cdebug-assertions -Ccodegen-units=1";

/// Targets that run at a time: as many as the smallest machine has cores.
const AT_A_TIME: usize = 2;

/// An input may take this long before it counts as a hang; whole requests take microseconds.
const HANG_S: u64 = 10;

/// Bytes of input at most: four times what an interesting request needs, and fast to mutate.
const INPUT_BYTES: usize = 16 * 1024;

/// Memory a target may take. Bodies are bounded, so more means an unbounded allocation.
const MEMORY_MB: u64 = 1024;

/// Builds every target and runs each for `seconds`; a target counts as one test.
pub(crate) fn run(seconds: u64) -> anyhow::Result<Tally> {
    let package = workspace::root().join("tests/fuzz");
    let targets = build(&package)?;
    let mut tally = Tally::default();
    println!(
        "running {} fuzz targets for {seconds} s each",
        targets.len()
    );
    for group in targets.chunks(AT_A_TIME) {
        let outcomes: Vec<bool> = thread::scope(|scope| {
            let running: Vec<_> = group
                .iter()
                .map(|target| scope.spawn(|| run_one(&package, target, seconds)))
                .collect();
            let joined = running.into_iter().map(|one| one.join().unwrap_or(false));
            joined.collect()
        });
        for passed in outcomes {
            tally.passed += u64::from(passed);
            tally.failed += u64::from(!passed);
        }
    }
    Ok(tally)
}

/// The built programs, one per target.
fn build(package: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let manifest = package.join("Cargo.toml");
    if !manifest.is_file() {
        bail!("there is no fuzz package at {}", package.display());
    }
    let metadata = cargo_metadata::MetadataCommand::new()
        .manifest_path(&manifest)
        .no_deps()
        .exec()
        .context("asking cargo for the fuzz targets")?;
    let mut command = cargo(["build", "--release", "--quiet", "--manifest-path"]);
    let host = host()?;
    // A target folder of its own also keeps the flags away from other builds, and naming the
    // machine's own target keeps them away from build scripts and macros.
    let output = package.join("target");
    command
        .arg(&manifest)
        .arg("--target-dir")
        .arg(&output)
        .args(["--target", &host])
        .env("RUSTFLAGS", FLAGS);
    if !succeeds(&mut command)? {
        bail!("the fuzz targets do not build");
    }
    let targets = metadata.packages.iter().flat_map(|one| &one.targets);
    let binaries = targets.filter(|target| target.is_bin());
    Ok(binaries
        .map(|target| output.join(&host).join("release").join(&target.name))
        .collect())
}

/// The target this machine's compiler builds for by default.
fn host() -> anyhow::Result<String> {
    let mut rustc = Command::new("rustc");
    // The pinned toolchain is chosen by the folder.
    rustc
        .current_dir(workspace::root())
        .args(["--print", "host-tuple"]);
    let output = rustc.output().context("running rustc")?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Runs one target; says what it did and whether nothing crashed.
fn run_one(package: &Path, program: &Path, seconds: u64) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    match fuzz(package, program, &name, seconds) {
        Ok((passed, said)) => {
            let word = if passed { "ok" } else { "FAILED" };
            println!("fuzz {name} ... {word} ({said})");
            passed
        }
        Err(error) => {
            println!("fuzz {name} ... FAILED ({error:#})");
            false
        }
    }
}

fn fuzz(
    package: &Path,
    program: &Path,
    name: &str,
    seconds: u64,
) -> anyhow::Result<(bool, String)> {
    // New inputs go to the first folder; committed seeds are only read.
    let corpus = package.join("corpus").join(name);
    let seeds = package.join("seeds").join(name);
    let artifacts = package.join("artifacts").join(name);
    for dir in [&corpus, &artifacts] {
        std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
    }
    let mut command = Command::new(program);
    command
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!("-timeout={HANG_S}"))
        .arg(format!("-max_len={INPUT_BYTES}"))
        .arg(format!("-rss_limit_mb={MEMORY_MB}"))
        .arg(format!("-artifact_prefix={}/", artifacts.display()))
        .arg("-print_final_stats=1")
        .arg(&corpus);
    if seeds.is_dir() {
        command.arg(&seeds);
    }
    let output = command.output().context("starting it")?;
    let log = String::from_utf8_lossy(&output.stderr);
    if output.status.success() {
        return Ok((true, summary(&log)));
    }
    // What the target printed is the report; the input that did it is in the artifacts.
    println!("{log}");
    let kept = format!("{}, the input is in {}", summary(&log), artifacts.display());
    Ok((false, kept))
}

fn summary(log: &str) -> String {
    let executions = log
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))
        .map_or("?", str::trim);
    format!("{executions} executions")
}
