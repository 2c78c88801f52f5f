//! The small process between us and the server, so that the server never outlives us.
//!
//! A shell holds the read end of a pipe whose write end only we hold. When we end in any
//! way, kill -9 included, the system closes the write end, the shell reads the end of the
//! file and asks the server to shut down. No signal handler and no unsafe code is needed.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::account::Account;
use crate::error::{Doing as _, Error};

/// `$1` is the log file, the rest is the server's command line.
///
/// SIGINT is PostgreSQL's fast shutdown: it ends sessions and writes a checkpoint. The
/// terminal's signals are for us, not for these processes, so they are ignored here. The
/// watcher gets the pipe as its input by name, because a shell gives background commands
/// an empty one.
const SCRIPT: &str = r#"
trap '' HUP INT QUIT TERM
log=$1
shift
exec 3<&0
"$@" >>"$log" 2>&1 3<&- </dev/null &
server=$!
{ read -r _; kill -INT "$server"; } <&3 >/dev/null 2>&1 &
watcher=$!
exec 3<&- </dev/null
wait "$server"
code=$?
kill -KILL "$watcher" 2>/dev/null
exit "$code"
"#;

/// How often a process or file is looked at again while waiting for it. PostgreSQL itself
/// needs some 50 ms to start, so a finer step would only burn processor time.
pub(crate) const POLL: Duration = Duration::from_millis(5);

/// The running supervisor. Dropping it stops the server and waits for that, within bounds.
#[derive(Debug)]
pub(crate) struct Supervisor {
    child: Child,
    stop_within: Duration,
}

impl Supervisor {
    pub(crate) fn start(
        account: Account,
        log: &Path,
        program: &Path,
        arguments: &[String],
        stop_within: Duration,
    ) -> Result<Self, Error> {
        let child = account
            .command("sh")
            .args(["-c", SCRIPT, "hookstead-postgres"])
            .arg(log)
            .arg(program)
            .args(arguments)
            // Messages are read by code: no translations. No PG* variable may reach the server.
            .env("LC_ALL", "C")
            .env_remove("PGDATA")
            .env_remove("PGPORT")
            // A group of its own: Ctrl-C in the terminal goes to us, and we stop the server.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .doing(|| format!("starting {}", program.display()))?;
        Ok(Self { child, stop_within })
    }

    /// The exit status, once the server has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Asks for the shutdown and waits for it; `false` where it took too long.
    pub(crate) fn stop(&mut self) -> bool {
        drop(self.child.stdin.take());
        let deadline = Instant::now() + self.stop_within;
        while self.ended().is_none() {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(POLL);
        }
        true
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.stop();
    }
}
