//! Workers and relays as processes that can be killed.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;

use hookstead_testkit::role;
use tokio::process::{Child, Command};

use crate::child::{LOG, ROLE, TEST};
use crate::ground::Ground;

/// Lines of each process that a failed test shows.
const SHOWN_LINES: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Worker,
    Relay,
}

impl Role {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::Relay => "relay",
        }
    }
}

/// Starts processes, each with a name that no other had.
pub(crate) struct Processes {
    environment: Vec<(String, String)>,
    database: [String; 2],
    logs: PathBuf,
    started: u32,
}

/// A running process. It is killed with this value, and ends by itself when its parent is
/// killed, because its input ends then.
pub(crate) struct Process {
    pub(crate) role: Role,
    /// Its worker id or relay id starts with this and a slash.
    pub(crate) name: String,
    child: Child,
}

impl Processes {
    /// Processes that log from `level` on and call the SQS at `endpoint`.
    pub(crate) fn new(ground: &Ground, endpoint: &str, level: &str) -> Self {
        let logs = ground.folder().join("logs");
        std::fs::create_dir_all(&logs).unwrap();
        let mut environment = vec![
            (LOG.to_owned(), level.to_owned()),
            (
                "HOOKSTEAD_DELIVERIES_QUEUE_URL".to_owned(),
                ground.deliveries.clone(),
            ),
            (
                "HOOKSTEAD_DEAD_LETTER_QUEUE_URL".to_owned(),
                ground.dead_letters.clone(),
            ),
            (
                "HOOKSTEAD_ALLOW_PRIVATE".to_owned(),
                "127.0.0.0/8".to_owned(),
            ),
            (
                "HOOKSTEAD_KEY_FILE".to_owned(),
                ground.folder().join("keys").to_str().unwrap().to_owned(),
            ),
            (
                "HOOKSTEAD_SECRETS_DIR".to_owned(),
                ground.folder().to_str().unwrap().to_owned(),
            ),
        ];
        for (name, value) in ground.emulator.variables() {
            environment.push((name.to_owned(), value));
        }
        environment.push(("AWS_ENDPOINT_URL".to_owned(), endpoint.to_owned()));
        let database = [role::WORKER, role::RELAY].map(|role| ground.database.url_as(role));
        Self {
            environment,
            database,
            logs,
            started: 0,
        }
    }

    /// The same with one more variable.
    pub(crate) fn with(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    pub(crate) fn start(&mut self, role: Role) -> Process {
        self.started += 1;
        let name = format!("{}-{}", role.name(), self.started);
        let log = File::create(self.logs.join(&name)).unwrap();
        let database = match role {
            Role::Worker => &self.database[0],
            Role::Relay => &self.database[1],
        };
        let child = Command::new(std::env::current_exe().unwrap())
            .args([TEST, "--exact", "--nocapture", "--test-threads=1"])
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("HOOKSTEAD_DATABASE_URL", database)
            .env("HOSTNAME", &name)
            .env(ROLE, role.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::from(log.try_clone().unwrap()))
            .stderr(Stdio::from(log))
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Process { role, name, child }
    }

    /// Everything that all processes wrote to their outputs.
    pub(crate) fn outputs(&self) -> Vec<(String, Vec<u8>)> {
        // Where a test failed early, its folder may be gone before this is.
        let files = std::fs::read_dir(&self.logs).into_iter().flatten();
        let read = files.filter_map(|file| {
            let file = file.ok()?;
            let name = file.file_name().into_string().ok()?;
            Some((name, std::fs::read(file.path()).ok()?))
        });
        read.collect()
    }
}

/// A test that fails shows how the processes ended.
impl Drop for Processes {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        for (name, output) in self.outputs() {
            let output = String::from_utf8_lossy(&output);
            let lines: Vec<_> = output.lines().filter(|line| is_serious(line)).collect();
            for line in &lines[lines.len().saturating_sub(SHOWN_LINES)..] {
                println!("{name}: {line}");
            }
        }
    }
}

fn is_serious(line: &str) -> bool {
    ["\"WARN\"", "\"ERROR\"", "panicked"]
        .iter()
        .any(|word| line.contains(word))
}

impl Process {
    /// SIGKILL: nothing of it runs any more when this returns.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// SIGSTOP: it stands still, and does not know for how long.
    pub(crate) async fn freeze(&self) {
        self.signal("-STOP").await;
    }

    /// SIGCONT.
    pub(crate) async fn thaw(&self) {
        self.signal("-CONT").await;
    }

    /// Fails where it has ended by itself.
    pub(crate) fn assert_running(&mut self) {
        let ended = self.child.try_wait().unwrap();
        assert!(ended.is_none(), "{} has ended by itself", self.name);
    }

    async fn signal(&self, signal: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = Command::new("kill").args([signal, &id]).status().await;
        assert!(sent.unwrap().success());
    }
}
