//! Folders, queries and waits that the tests share.

use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hookstead_localpg::{Binaries, Durability, Options, Server};
use tempfile::TempDir;

/// A folder that the server's account can enter, removed at the end.
pub(crate) fn folder() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open).unwrap();
    dir
}

pub(crate) fn options(data_dir: &Path) -> Options {
    Options::new(data_dir, Binaries::obtain().unwrap()).durability(Durability::None)
}

/// Runs SQL in single-user fashion through the psql beside the server, and gives what it prints.
pub(crate) fn query(server: &Server, sql: &str) -> String {
    let output = Command::new(server.binaries().program("psql"))
        .args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-c", sql])
        .arg(server.url("postgres"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Waits until nothing listens on the port any more. The deadline only bounds a failing run.
pub(crate) fn wait_until_refused(port: u16) -> bool {
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::yield_now();
    }
    true
}
