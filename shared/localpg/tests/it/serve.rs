//! Starting and stopping.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use hookstead_localpg::{Account, Binaries, Durability, Error, Server};

use crate::support::{folder, options, query, wait_until_refused};

#[test]
fn a_server_starts_and_answers_queries_whoever_we_are() {
    let dir = folder();
    let server = Server::start(options(&dir.path().join("data"))).unwrap();
    assert_eq!(query(&server, "select 6 * 7"), "42");
    assert_eq!(query(&server, "show server_encoding"), "UTF8");
    assert_eq!(query(&server, "show listen_addresses"), "127.0.0.1");
    server.stop().unwrap();
}

#[test]
fn the_server_never_runs_as_root() {
    let dir = folder();
    let server = Server::start(options(&dir.path().join("data"))).unwrap();
    let output = Command::new("ps")
        .args(["-o", "uid=", "-p", &server.pid().to_string()])
        .output()
        .unwrap();
    let uid: u32 = String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert_ne!(uid, 0);
    if let Account::Dropped { uid: expected, .. } = Account::current().unwrap() {
        assert_eq!(uid, expected);
    }
}

#[test]
fn data_survives_a_restart() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    let first = Server::start(options(&data_dir)).unwrap();
    query(
        &first,
        "create table kept (n int); insert into kept values (7)",
    );
    first.stop().unwrap();

    let second = Server::start(options(&data_dir)).unwrap();
    assert_eq!(query(&second, "select n from kept"), "7");
}

#[test]
fn a_stopped_or_dropped_server_is_gone() {
    let dir = folder();
    let server = Server::start(options(&dir.path().join("data"))).unwrap();
    let port = server.port();
    drop(server);
    assert!(wait_until_refused(port));
    assert!(!dir.path().join("data/postmaster.pid").exists());
}

#[test]
fn two_servers_run_side_by_side_on_ports_of_their_own() {
    let dir = folder();
    let one = Server::start(options(&dir.path().join("one"))).unwrap();
    let two = Server::start(options(&dir.path().join("two"))).unwrap();
    assert_ne!(one.port(), two.port());
    assert_eq!(query(&one, "select 1"), query(&two, "select 1"));
}

#[test]
fn two_first_starts_on_one_folder_give_one_server_and_one_clear_refusal() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    let start = || Server::start(options(&data_dir));
    let (one, two) = std::thread::scope(|scope| {
        let other = scope.spawn(start);
        (start(), other.join().unwrap())
    });
    let (running, refused) = match (one, two) {
        (Ok(server), Err(error)) | (Err(error), Ok(server)) => (server, error),
        (one, two) => panic!("expected one server and one refusal: {one:?} {two:?}"),
    };
    let Error::InUse { port, pid, .. } = refused else {
        panic!("not the refusal expected: {refused}");
    };
    assert_eq!((port, pid), (running.port(), running.pid()));
}

#[test]
fn a_crashed_server_leaves_nothing_that_hinders_the_next_start() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    let durable = options(&data_dir).durability(Durability::Full);
    let crashed = Server::start(durable).unwrap();
    query(
        &crashed,
        "create table kept (n int); insert into kept values (7)",
    );
    let killed = Command::new("kill")
        .args(["-KILL", &crashed.pid().to_string()])
        .status()
        .unwrap();
    assert!(killed.success());

    let next = Server::start(options(&data_dir)).unwrap();
    assert_eq!(query(&next, "select n from kept"), "7");
}

#[test]
fn a_port_that_is_taken_is_named_in_the_error() {
    let dir = folder();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let taken = listener.local_addr().unwrap().port();
    let error = Server::start(options(&dir.path().join("data")).port(taken)).unwrap_err();
    assert!(
        matches!(error, Error::PortTaken { port } if port == taken),
        "{error}"
    );
}

#[test]
fn a_folder_made_by_another_major_version_is_refused_and_left_alone() {
    let dir = folder();
    let data_dir = dir.path().join("data");
    std::fs::create_dir(&data_dir).unwrap();
    std::fs::write(data_dir.join("PG_VERSION"), "9\n").unwrap();
    let error = Server::start(options(&data_dir)).unwrap_err();
    assert!(
        matches!(error, Error::WrongMajor { data: 9, .. }),
        "{error}"
    );
}

#[test]
fn a_folder_of_another_user_is_refused_with_both_users_named() {
    let account = Account::current().unwrap();
    if !account.is_dropped() {
        return; // Only root can give a folder away.
    }
    let dir = folder();
    let data_dir = dir.path().join("data");
    Server::start(options(&data_dir)).unwrap().stop().unwrap();
    let stranger = account.uid() + 1;
    std::os::unix::fs::chown(&data_dir, Some(stranger), None).unwrap();

    let error = Server::start(options(&data_dir)).unwrap_err();
    let Error::WrongOwner { owner, runner, .. } = error else {
        panic!("not the refusal expected: {error}");
    };
    assert_eq!((owner, runner), (stranger, account.uid()));
}

#[test]
fn a_setting_the_server_refuses_shows_the_end_of_its_log() {
    let dir = folder();
    let wrong = options(&dir.path().join("data")).setting("no_such_setting", "1");
    let error = Server::start(wrong).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn the_log_holds_no_values_of_refused_rows() {
    let dir = folder();
    let server = Server::start(options(&dir.path().join("data"))).unwrap();
    query(&server, "create table t (v text check (length(v) < 3))");
    let psql = Binaries::obtain().unwrap().program("psql");
    let refused = Command::new(psql)
        .args(["-XAtq", "-c", "insert into t values ('CANARY')"])
        .arg(server.url("postgres"))
        .output()
        .unwrap();
    assert!(!refused.status.success());
    let log = std::fs::read_to_string(server.log()).unwrap();
    assert!(log.contains("t_v_check"), "{log}");
    assert!(!log.contains("CANARY"), "{log}");
}
