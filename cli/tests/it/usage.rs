//! Exit codes and messages of calls that cannot work.

use crate::support::{EXAMPLE, Project};

#[test]
fn every_command_explains_itself() {
    let project = Project::example();
    for command in [
        "dev",
        "send",
        "verify",
        "publish",
        "events",
        "deliveries",
        "attempts",
        "tail",
        "apply",
        "subscriptions",
        "sink",
        "kinds",
    ] {
        let help = project.run(&[command, "--help"]);
        assert_eq!(help.code, 0, "{help:?}");
        assert!(help.out.contains("Usage: hookstead "), "{help:?}");
        assert!(help.out.contains("--json"), "{help:?}");
    }
    for (command, parts) in [
        ("events", &["list", "show", "pull"][..]),
        ("deliveries", &["list", "show"]),
        (
            "subscriptions",
            &["list", "add", "test", "disable", "enable"],
        ),
        ("report", &["show"]),
        ("sink", &["set"]),
    ] {
        for part in parts {
            let help = project.run(&[command, part, "--help"]);
            assert_eq!(help.code, 0, "{help:?}");
            assert!(help.out.contains("--json"), "{help:?}");
        }
    }
}

#[test]
fn calls_that_cannot_work_say_why_with_a_stable_code() {
    let project = Project::example();
    for (arguments, exit, code) in [
        (&["send", "stripe"][..], 2, "secret_unusable"),
        (&["send", "stripe", "--secret", "x"], 3, "dev_not_running"),
        (&["send", "nobody", "--secret", "x"], 2, "unknown_kind"),
        (
            &["send", "clerk", "--secret", "whsec_AAAA"],
            2,
            "url_missing",
        ),
        (&["send", "stripe", "--source", "github"], 2, "kind_differs"),
        (
            &["send", "stripe", "--source", "nobody"],
            2,
            "unknown_source",
        ),
        (
            &[
                "send",
                "aws-sns",
                "--secret",
                "x",
                "--url",
                "http://127.0.0.1:9/",
            ],
            2,
            "cannot_sign",
        ),
        (&["send", "stripe", "--secret", " "], 2, "secret_unusable"),
        (
            &["send", "stripe", "--secret", "x", "--url", "ftp://h/"],
            2,
            "invalid_url",
        ),
        (&["events"], 3, "no_database"),
        (&["apply"], 3, "no_database"),
        (
            &["apply", "--manifest", "absent.toml"],
            2,
            "manifest_not_found",
        ),
        (
            &[
                "verify",
                "--kind",
                "nope",
                "--secret-file",
                "hookstead.toml",
            ],
            2,
            "unknown_kind",
        ),
        (
            &["verify", "--secret-file", "hookstead.toml"],
            2,
            "scheme_missing",
        ),
        (&["verify", "--kind", "stripe"], 2, "secret_missing"),
        (&["verify", "--vectors", "absent"], 2, "file_unusable"),
        (&["kinds", "nope"], 1, "unknown_kind"),
    ] {
        let finished = project.run(arguments);
        assert_eq!(finished.code, exit, "{arguments:?} {finished:?}");
        assert!(
            finished.err.contains(&format!("error[{code}]: ")),
            "{arguments:?} {finished:?}"
        );
        assert!(finished.out.is_empty(), "{arguments:?} {finished:?}");
    }
    assert_eq!(project.run(&["no-such-command"]).code, 2);
}

#[test]
fn commands_that_look_into_a_database_say_that_there_is_none() {
    let project = Project::example();
    let delivery = "00000000-0000-0000-0000-000000000000";
    for arguments in [
        &["deliveries"][..],
        &["attempts", delivery],
        &["tail"],
        &["subscriptions"],
        &["report", "show"],
        &["publish", "a.b"],
    ] {
        let finished = project.run(arguments);
        assert_eq!(finished.code, 3, "{arguments:?} {finished:?}");
        assert!(
            finished.err.contains("error[no_database]: "),
            "{finished:?}"
        );
    }
}

#[test]
fn a_database_that_is_not_there_is_exit_3_and_its_password_is_not_shown() {
    let project = Project::example();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    drop(taken);
    let url = format!("postgres://u:CANARY@127.0.0.1:{port}/d");
    for arguments in [
        &["events"][..],
        &["apply", "--plan"],
        &["dev", "--listen", "127.0.0.1:0"],
    ] {
        let mut command = project.command(arguments);
        let output = command
            .env("HOOKSTEAD_DATABASE_URL", &url)
            .env("HOOKSTEAD_ALLOW_PRIVATE", "127.0.0.0/8")
            .output()
            .unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(3), "{err}");
        assert!(err.contains("error[database_unreachable]"), "{err}");
        assert!(!err.contains("CANARY"), "{err}");
    }
}

#[test]
fn a_kind_that_only_the_provider_can_sign_gets_no_development_secret() {
    let manifest = "[[source]]\nname = \"sns\"\nkind = \"aws-sns\"\nsecret = \"dev\"\n";
    let project = Project::with(manifest);
    let refused = project.run(&["dev", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("no_development_secret"), "{refused:?}");
}

#[test]
fn kinds_are_listed_and_their_schemes_can_be_read() {
    let project = Project::with(EXAMPLE);
    let kinds = project.run(&["kinds", "--json"]).json();
    assert!(kinds.as_array().unwrap().len() > 90);
    assert!(project.run(&["kinds"]).out.contains("hmac-sha256"));
    assert!(
        project
            .run(&["kinds", "stripe"])
            .out
            .contains("header:Stripe-Signature")
    );
}

#[test]
fn settings_that_cannot_be_read_are_refused_and_not_ignored() {
    let project = Project::example();
    for (name, value) in [
        ("HOOKSTEAD_LOG", "a=b=c"),
        ("HOOKSTEAD_MAX_BODY_BYTES", "plenty"),
    ] {
        let mut command = project.command(&["dev", "--listen", "127.0.0.1:0"]);
        let output = command.env(name, value).output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("error[invalid_configuration]"), "{err}");
        assert!(err.contains(name), "{err}");
        assert!(!project.path(".hookstead/postgres").exists());
    }
}

#[test]
fn a_kind_that_nothing_takes_is_told_where_it_could_go() {
    let project = Project::example();
    let told = project.run(&["send", "twilio"]);
    assert_eq!(told.code, 2);
    assert!(
        told.err.contains("hookstead.toml has no source of kind"),
        "{told:?}"
    );
    assert!(told.err.contains("hookstead apply"), "{told:?}");
    let told = project.run(&["send", "stripe", "--manifest", "absent.toml"]);
    assert!(
        told.err.contains("there is no manifest absent.toml"),
        "{told:?}"
    );
}
