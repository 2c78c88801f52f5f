//! Projects in folders of their own, a running `dev`, and requests to it.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// The manifest that the repository shows.
pub(crate) const EXAMPLE: &str = include_str!("../../../hookstead.toml");

/// A folder with a manifest, removed at the end.
pub(crate) struct Project {
    folder: TempDir,
}

impl Project {
    pub(crate) fn with(manifest: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // The account of PostgreSQL passes through it where the tests run as root.
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let project = Self { folder };
        project.write("hookstead.toml", manifest.as_bytes());
        project
    }

    pub(crate) fn example() -> Self {
        Self::with(EXAMPLE)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// The command in this folder, with no setting of the surroundings.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookstead"));
        for name in [
            "DATABASE_URL",
            "MANIFEST",
            "LISTEN",
            "LOG",
            "MAX_BODY_BYTES",
            "ALLOW_PRIVATE",
            "KEY_FILE",
            "KMS_KEY_ID",
            "CONTROL_PLANE_URL",
            "CONTROL_PLANE_SECRET",
        ] {
            command.env_remove(format!("HOOKSTEAD_{name}"));
        }
        // Set where cargo runs the tests; the command would speak as if cargo ran it.
        command.env_remove("CARGO_PKG_NAME");
        command.current_dir(self.folder.path()).args(arguments);
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Finished {
        Finished::from(
            self.command(arguments)
                .stdin(Stdio::null())
                .output()
                .unwrap(),
        )
    }

    /// Runs it to its end with settings of its own, while other tasks go on.
    pub(crate) async fn run_with(
        &self,
        environment: &[(&str, &str)],
        arguments: &[&str],
    ) -> Finished {
        let mut command = self.command(arguments);
        command
            .envs(environment.iter().copied())
            .stdin(Stdio::null());
        let done = tokio::task::spawn_blocking(move || command.output());
        Finished::from(done.await.unwrap().unwrap())
    }

    /// Runs it to its end with bytes on standard input.
    pub(crate) fn run_with_input(&self, arguments: &[&str], input: &[u8]) -> Finished {
        let mut command = self.command(arguments);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        Finished::from(child.wait_with_output().unwrap())
    }

    pub(crate) fn secret(&self, source: &str) -> String {
        let text = std::fs::read_to_string(self.path(".hookstead/secrets").join(source)).unwrap();
        text.trim_end().to_owned()
    }
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) code: i32,
    pub(crate) bytes: Vec<u8>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Finished {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            bytes: output.stdout,
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Finished {
    /// The JSON it printed; it has to have ended well.
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap()
    }
}

/// A running `hookstead dev`. Dropping it kills it.
pub(crate) struct Dev {
    child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) ready: Value,
    log: PathBuf,
}

impl Dev {
    pub(crate) fn start(project: &Project) -> Self {
        Self::start_with(project, &[])
    }

    /// Starts it on a free port and waits for its ready line.
    pub(crate) fn start_with(project: &Project, environment: &[(&str, &str)]) -> Self {
        let log = project.path("dev.log");
        let mut child = project
            .command(&["dev", "--listen", "127.0.0.1:0", "--json"])
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap_or_else(|_| {
            let log = std::fs::read_to_string(&log).unwrap();
            panic!("dev did not get ready: {log}")
        });
        let url = ready["url"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().parse().unwrap();
        Self {
            child,
            address,
            ready,
            log,
        }
    }

    /// Everything it logged so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Sends a signal and waits for the end.
    pub(crate) fn stop(mut self, signal: &str) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
        self.child.wait().unwrap()
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// The port of the PostgreSQL that serves a project.
pub(crate) fn postgres_port(project: &Project) -> u16 {
    let text = std::fs::read_to_string(project.path(".hookstead/postgres/postmaster.pid")).unwrap();
    text.lines().nth(3).unwrap().trim().parse().unwrap()
}

/// Waits until nothing listens any more. The deadline only bounds a failing run.
pub(crate) fn is_refused(port: u16) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

/// Head and body of a request that `send --print` printed.
pub(crate) fn split(request: &[u8]) -> (&[u8], &[u8]) {
    let at = request
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .unwrap();
    (&request[..at + 2], &request[at + 4..])
}

/// Writes raw pieces to the server, one after the other, and reads its whole answer.
pub(crate) fn exchange<'b>(
    address: SocketAddr,
    pieces: impl IntoIterator<Item = &'b [u8]>,
) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in pieces {
        stream.write_all(piece).unwrap();
    }
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// The event id in the body of an answer.
pub(crate) fn event_id(answer: &str) -> String {
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let body = answer.split_once("\r\n\r\n").unwrap().1;
    let body: Value = serde_json::from_str(body).unwrap();
    body["event_id"].as_str().unwrap().to_owned()
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
