//! Fetching the emulator with pip, once per machine and set of versions.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

/// The packages, pinned.
const REQUIREMENTS: &str = include_str!("requirements.txt");

/// Names an interpreter may have.
const INTERPRETERS: [&str; 2] = ["python3", "python"];

/// How many of pip's last lines a failure shows: its reason is at the end.
const SHOWN_LINES: usize = 6;

/// An interpreter, and the folder of the packages.
pub(super) struct Installed {
    pub(super) python: &'static str,
    pub(super) packages: PathBuf,
}

/// Finds the packages in the cache, or fetches them. Several processes may ask at once:
/// one fetches, the others wait for it.
pub(super) fn installed() -> Result<Installed, String> {
    let python = interpreter()?;
    let cache = hookstead_localpg::cache_dir().map_err(|error| error.to_string())?;
    std::fs::create_dir_all(&cache).map_err(|error| failed("making", &cache, &error))?;
    // Compiled parts of packages fit one version of Python.
    let packages = cache.join(format!("aws-emulator-{}", fingerprint(python)?));
    if packages.is_dir() {
        return Ok(Installed { python, packages });
    }
    let lock_path = cache.join("aws-emulator.lock");
    let lock = File::create(&lock_path).map_err(|error| failed("making", &lock_path, &error))?;
    lock.lock()
        .map_err(|error| failed("locking", &lock_path, &error))?;
    if !packages.is_dir() {
        let partial = packages.with_extension("partial");
        if partial.exists() {
            std::fs::remove_dir_all(&partial)
                .map_err(|error| failed("removing", &partial, &error))?;
        }
        install(python, &partial)?;
        std::fs::rename(&partial, &packages)
            .map_err(|error| failed("making", &packages, &error))?;
    }
    Ok(Installed { python, packages })
}

fn failed(doing: &str, path: &Path, error: &std::io::Error) -> String {
    format!("{doing} {} failed: {error}", path.display())
}

fn interpreter() -> Result<&'static str, String> {
    let has_pip = |python: &&&str| {
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "--version"]).stdin(Stdio::null());
        pip.output().is_ok_and(|output| output.status.success())
    };
    let found = INTERPRETERS.iter().find(has_pip).copied();
    found.ok_or_else(|| "there is no Python 3 with pip on PATH".to_owned())
}

fn fingerprint(python: &str) -> Result<String, String> {
    let asked = "import platform, sys; print(sys.version, platform.machine())";
    let output = Command::new(python)
        .args(["-c", asked])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{python} cannot be run: {error}"))?;
    let mut hash = Sha256::new();
    hash.update(REQUIREMENTS);
    hash.update(output.stdout);
    // 64 bits tell the sets of one machine apart.
    Ok(hex::encode(&hash.finalize()[..8]))
}

fn install(python: &str, target: &Path) -> Result<(), String> {
    let mut pip = Command::new(python)
        .args(["-m", "pip", "install", "--no-input", "--no-deps", "--quiet"])
        .args(["--only-binary", ":all:", "--disable-pip-version-check"])
        .args(["--requirement", "/dev/stdin", "--target"])
        .arg(target)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{python} cannot be run: {error}"))?;
    let mut input = pip.stdin.take().expect("its input is a pipe");
    input
        .write_all(REQUIREMENTS.as_bytes())
        .map_err(|error| format!("pip does not listen: {error}"))?;
    drop(input);
    let output = pip
        .wait_with_output()
        .map_err(|error| format!("pip did not end: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().filter(|line| !line.is_empty()).collect();
    let shown = lines.len().saturating_sub(SHOWN_LINES);
    Err(format!("pip failed: {}", lines[shown..].join("\n")))
}
