//! Starting and stopping `dev`: nothing stays behind, and nobody is in the way unnamed.

use std::net::TcpListener;

use crate::support::{Dev, Project, is_refused, postgres_port};
use hookstead_localpg::{Binaries, Durability, Options, Server};

#[test]
fn a_killed_dev_leaves_no_server_and_the_next_one_finds_the_data() {
    let project = Project::example();
    let dev = Dev::start(&project);
    assert_eq!(project.run(&["send", "stripe"]).code, 0);
    let (port, postgres) = (dev.address.port(), postgres_port(&project));
    assert!(!dev.stop("-KILL").success());
    assert!(is_refused(port) && is_refused(postgres));

    // What the killed one left is not believed.
    let events = project.run(&["events"]);
    assert_eq!(events.code, 3, "{events:?}");
    assert!(events.err.contains("no_database"), "{events:?}");

    let next = Dev::start(&project);
    assert_eq!(
        project
            .run(&["events", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert!(next.stop("-INT").success());
}

#[test]
fn a_taken_port_is_named_before_anything_is_started() {
    let project = Project::example();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let refused = project.run(&["dev", "--listen", &address]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(
        refused.err.contains("port_taken") && refused.err.contains(&address),
        "{refused:?}"
    );
    assert!(!project.path(".hookstead/postgres").exists());
}

#[test]
fn a_second_dev_of_the_same_project_is_told_so() {
    let project = Project::example();
    let dev = Dev::start(&project);
    let refused = project.run(&["dev", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 3, "{refused:?}");
    assert!(refused.err.contains("already_running"), "{refused:?}");
    // It did not take the first one's announcement away.
    assert_eq!(project.run(&["events"]).code, 0);
    assert!(dev.stop("-INT").success());
}

#[test]
fn dev_uses_a_database_that_is_given_and_leaves_it_running() {
    let project = Project::example();
    let options = Options::new(project.path("given"), Binaries::obtain().unwrap());
    let server = Server::start(options.durability(Durability::None)).unwrap();
    let url = server.url("postgres");
    let dev = Dev::start_with(&project, &[("HOOKSTEAD_DATABASE_URL", &url)]);
    assert_eq!(project.run(&["send", "stripe"]).code, 0);
    assert!(!project.path(".hookstead/postgres").exists());
    assert!(dev.stop("-INT").success());
    let listed = project
        .command(&["events", "--json"])
        .env("HOOKSTEAD_DATABASE_URL", &url)
        .output()
        .unwrap();
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    server.stop().unwrap();
}

#[test]
fn files_with_secrets_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let project = Project::example();
    let dev = Dev::start(&project);
    let mode = |name: &str| {
        let found = std::fs::metadata(project.path(name)).unwrap();
        found.permissions().mode() & 0o777
    };
    assert_eq!(mode(".hookstead/secrets"), 0o700);
    assert_eq!(mode(".hookstead/secrets/stripe-main"), 0o600);
    assert_eq!(mode(".hookstead/dev.json"), 0o600);
    let ignored = std::fs::read_to_string(project.path(".hookstead/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
    assert!(dev.stop("-INT").success());
    assert!(!project.path(".hookstead/dev.json").exists());
}

#[test]
fn a_signal_during_the_start_leaves_nothing_behind() {
    let project = Project::example();
    let mut child = project
        .command(&["dev", "--listen", "127.0.0.1:0"])
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    // Secrets are made after the signals are listened for and before PostgreSQL is started.
    while !project.path(".hookstead/secrets/acme-erp").exists() {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::yield_now();
    }
    let pid = child.id().to_string();
    let mut kill = std::process::Command::new("kill");
    assert!(kill.args(["-TERM", &pid]).status().unwrap().success());
    assert!(child.wait().unwrap().success());
    assert!(!project.path(".hookstead/postgres/postmaster.pid").exists());
    assert!(!project.path(".hookstead/dev.json").exists());
}

#[test]
fn a_database_of_another_version_is_left_alone_and_named() {
    let project = Project::example();
    let options = Options::new(project.path("given"), Binaries::obtain().unwrap());
    let server = Server::start(options.durability(Durability::None)).unwrap();
    let url = server.url("postgres");
    let environment = [("HOOKSTEAD_DATABASE_URL", url.as_str())];
    assert!(
        Dev::start_with(&project, &environment)
            .stop("-INT")
            .success()
    );
    // The first migration, as if it had been another text.
    let other = "update hookstead.schema_migrations set checksum = '\\x00' where version = 1";
    let psql = server.binaries().program("psql");
    let changed = std::process::Command::new(psql)
        .args(["-qc", other, &url])
        .status();
    assert!(changed.unwrap().success());
    let mut dev = project.command(&["dev", "--listen", "localhost:0"]);
    let output = dev.envs(environment).output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.contains("made by another version"), "{err}");
}
