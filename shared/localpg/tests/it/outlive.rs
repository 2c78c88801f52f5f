//! A server never outlives the process that started it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use hookstead_localpg::Server;

use crate::support::{folder, options, query, wait_until_refused};

/// Tells the child process, which is this same test binary, where its data goes.
const DATA_DIR: &str = "HOOKSTEAD_TEST_HELD_DATA_DIR";

/// Not a test: the process that the tests below kill.
#[test]
#[ignore = "the child process of the tests beside it"]
fn holds_a_server_until_killed() {
    let Some(data_dir) = std::env::var_os(DATA_DIR) else {
        return;
    };
    let server = Server::start(options(Path::new(&data_dir))).unwrap();
    println!("\nport {}", server.port());
    loop {
        std::thread::park();
    }
}

fn hold(data_dir: &Path) -> (Child, u16) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture"])
        .arg("outlive::holds_a_server_until_killed")
        .env(DATA_DIR, data_dir)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let port = lines
        .map(Result::unwrap)
        .find_map(|line| line.strip_prefix("port ").map(str::to_owned))
        .expect("the child prints its port");
    (child, port.parse().unwrap())
}

#[test]
fn a_parent_killed_with_signal_9_takes_its_server_along() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    let (mut parent, port) = hold(&data_dir);
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(wait_until_refused(port));
}

#[test]
fn the_next_start_after_a_killed_parent_finds_the_data() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    let first = Server::start(options(&data_dir)).unwrap();
    query(
        &first,
        "create table kept (n int); insert into kept values (7)",
    );
    first.stop().unwrap();

    let (mut parent, port) = hold(&data_dir);
    parent.kill().unwrap();
    parent.wait().unwrap();
    assert!(wait_until_refused(port));
    let next = Server::start(options(&data_dir)).unwrap();
    assert_eq!(query(&next, "select n from kept"), "7");
}
