//! The manifest becomes the configuration.

use crate::support::{Dev, Project};

const ONE: &str = "[[source]]\nname = \"one\"\nkind = \"github\"\nsecret = \"dev\"\n";
const TWO: &str = "[[source]]\nname = \"two\"\nkind = \"stripe\"\nsecret = \"dev\"\n";

fn actions(project: &Project, arguments: &[&str]) -> Vec<String> {
    let answer = project.run(arguments).json();
    let changes = answer["changes"].as_array().unwrap();
    let text = |change: &serde_json::Value| {
        let (action, name) = (&change["action"], &change["name"]);
        format!("{} {}", action.as_str().unwrap(), name.as_str().unwrap())
    };
    changes.iter().map(text).collect()
}

#[test]
fn a_plan_changes_nothing_and_applying_does_what_it_said() {
    let project = Project::with(&format!("{ONE}{TWO}"));
    let dev = Dev::start(&project);
    project.write(
        "hookstead.toml",
        format!("{ONE}tolerance_s = 60\n").as_bytes(),
    );
    let plan = ["apply", "--plan", "--json"];
    assert_eq!(actions(&project, &plan), ["update one", "disable two"]);
    assert_eq!(actions(&project, &plan), ["update one", "disable two"]);
    let table = project.run(&["apply", "--plan"]).out;
    assert!(
        table.contains("tolerance_s") && table.contains("nothing was changed"),
        "{table}"
    );

    assert_eq!(
        actions(&project, &["apply", "--json"]),
        ["update one", "disable two"]
    );
    assert_eq!(actions(&project, &plan), ["unchanged one"]);
    project.write("hookstead.toml", format!("{ONE}{TWO}").as_bytes());
    assert_eq!(
        actions(&project, &["apply", "--json"]),
        ["update one", "enable two"]
    );
    assert!(dev.stop("-INT").success());
}

#[test]
fn a_source_applied_while_dev_runs_takes_requests_at_once() {
    let project = Project::with(ONE);
    let dev = Dev::start(&project);
    project.write("hookstead.toml", format!("{ONE}{TWO}").as_bytes());
    let refused = project.run(&["send", "two"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert_eq!(
        actions(&project, &["apply", "--json"]),
        ["unchanged one", "create two"]
    );
    let sent = project.run(&["send", "two"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    assert!(dev.stop("-INT").success());
}

#[test]
fn what_only_the_database_can_check_is_reported_all_at_once_and_nothing_is_written() {
    let project = Project::with(ONE);
    let dev = Dev::start(&project);
    let to = "destination = { kind = \"http\", url = \"https://h.example/\" }";
    let wrong = format!(
        "{ONE}{TWO}\
         [[subscription]]\nname = \"a\"\npayload_filter = \"$ ?\"\n{to}\n\
         [[subscription]]\nname = \"b\"\npayload_filter = \"nonsense\"\n{to}\n"
    );
    project.write("hookstead.toml", wrong.as_bytes());
    let refused = project.run(&["apply"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    for name in ["\"a\"", "\"b\""] {
        assert!(
            refused
                .err
                .contains(&format!("subscription {name}, payload_filter")),
            "{refused:?}"
        );
    }
    assert_eq!(
        refused.err.matches("[invalid_filter]").count(),
        2,
        "{refused:?}"
    );
    project.write("hookstead.toml", ONE.as_bytes());
    assert_eq!(
        actions(&project, &["apply", "--plan", "--json"]),
        ["unchanged one"]
    );
    assert!(dev.stop("-INT").success());
}

#[test]
fn the_default_retry_policy_is_the_database_s_own() {
    let with = |retry: &str| {
        format!(
            "{ONE}[[subscription]]\nname = \"s\"\n\
             destination = {{ kind = \"http\", url = \"https://h.example/\" }}\n{retry}\n"
        )
    };
    let project = Project::with(&with(""));
    let dev = Dev::start(&project);
    // One value overridden with itself: the other four must be the default's, too.
    project.write(
        "hookstead.toml",
        with("retry = { jitter = 0.2 }").as_bytes(),
    );
    assert_eq!(
        actions(&project, &["apply", "--plan", "--json"]),
        ["unchanged one", "unchanged s"]
    );
    project.write(
        "hookstead.toml",
        with("retry = { jitter = 0.1 }").as_bytes(),
    );
    assert_eq!(
        actions(&project, &["apply", "--plan", "--json"]),
        ["unchanged one", "update s"]
    );
    project.write("hookstead.toml", with("enabled = false").as_bytes());
    assert_eq!(
        actions(&project, &["apply", "--json"]),
        ["unchanged one", "disable s"]
    );
    assert!(dev.stop("-INT").success());
}

#[test]
fn problems_of_the_file_are_reported_all_at_once_with_line_field_and_code() {
    let project =
        Project::with("[[source]]\nname = \"A\"\nkind = \"nope\"\nsecret = \"x\"\ncolour = 1\n");
    for command in ["apply", "dev"] {
        let refused = project.run(&[command]);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(
            refused.err.contains("4 problems in hookstead.toml"),
            "{refused:?}"
        );
        for part in [
            "hookstead.toml:2: source 1, name:",
            "[invalid_name]",
            "hookstead.toml:3: source 1, kind:",
            "[unknown_kind]",
            "hookstead.toml:4: source 1, secret:",
            "[invalid_secret]",
            "hookstead.toml:5: source 1, colour:",
            "[unknown_field]",
        ] {
            assert!(refused.err.contains(part), "{part}: {refused:?}");
        }
    }
}
