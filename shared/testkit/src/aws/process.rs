//! The emulator's process: one per test process, ended with it.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use super::install::installed;

/// The program that serves.
const PROGRAM: &str = include_str!("serve.py");

/// Held until the test process ends. Its input is a pipe that the system closes then,
/// after a kill too, and the emulator ends when it sees that.
struct Process {
    port: u16,
    #[cfg_attr(not(test), expect(dead_code, reason = "held for its input"))]
    child: Child,
}

/// The port of this process's emulator on 127.0.0.1, started at the first call.
///
/// # Panics
/// Where it cannot be fetched or started.
pub(super) fn port() -> u16 {
    static PROCESS: OnceLock<Result<Process, String>> = OnceLock::new();
    match PROCESS.get_or_init(start) {
        Ok(process) => process.port,
        Err(problem) => panic!(
            "the AWS emulator that this test needs does not run: {problem}\n\
             It is fetched with pip once: install Python 3.10 or newer with pip (Debian and \
             Ubuntu: apt-get install python3-pip) and let pip reach its package index"
        ),
    }
}

fn start() -> Result<Process, String> {
    let installed = installed()?;
    let mut child = Command::new(installed.python)
        // Nothing of the machine's own packages or settings.
        .args(["-s", "-c", PROGRAM])
        .env("PYTHONPATH", &installed.packages)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| format!("{} cannot be run: {error}", installed.python))?;
    let output = child.stdout.take().expect("its output is a pipe");
    let mut line = String::new();
    BufReader::new(output)
        .read_line(&mut line)
        .map_err(|error| format!("it says nothing: {error}"))?;
    let port = line.trim().parse().map_err(|_| {
        let folder = installed.packages.display();
        format!("it ended at its start. If {folder} is damaged, remove it and try again")
    })?;
    Ok(Process { port, child })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emulator_ends_when_its_input_is_closed_as_the_system_does_for_the_dead() {
        let mut process = start().unwrap();
        assert!(process.child.try_wait().unwrap().is_none());
        drop(process.child.stdin.take());
        assert!(process.child.wait().unwrap().success());
    }
}
