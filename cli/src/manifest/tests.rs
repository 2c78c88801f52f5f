//! Tests of reading a manifest.

use hookstead_egress::AllowList;

use super::*;

fn problems(text: &str) -> Vec<(Option<usize>, String, String, &'static str)> {
    let problems = Manifest::parse("test.toml", text).unwrap_err();
    let found = problems.found.iter();
    found
        .map(|p| (p.line, p.table.clone(), p.field.clone(), p.code))
        .collect()
}

fn codes(text: &str) -> Vec<&'static str> {
    problems(text)
        .into_iter()
        .map(|(_, _, _, code)| code)
        .collect()
}

const SOURCE: &str = "[[source]]\nname = \"s\"\nkind = \"stripe\"\nsecret = \"dev\"\n";

#[test]
fn the_example_manifest_is_read_whole() {
    let text = include_str!("../../../hookstead.toml");
    let manifest = Manifest::parse("hookstead.toml", text).unwrap();
    let kinds: Vec<&str> = manifest.sources.iter().map(|s| s.kind.as_str()).collect();
    assert_eq!(
        kinds,
        [
            "stripe",
            "github",
            "shopify",
            "standard-webhooks",
            "acme",
            "outbox"
        ]
    );
    assert!(manifest.source("acme-erp").unwrap().scheme.is_some());
    assert_eq!(manifest.subscriptions.len(), 2);
}

#[test]
fn every_problem_is_found_in_one_reading_with_its_line_and_field() {
    let text = r#"
[[source]]
name = "Stripe Main"
kind = "strippe"
secret = "whsec_CANARY"
tolerance_s = "soon"
colour = "red"

[[source]]
name = "two"
kind = "github"
allowed_event_type = ["push"]

[[subscription]]
name = "three"
source = "nobody"
destination = { kind = "http", url = "http://example.com" }
retry = { jitter = 3.0, timout_ms = 5 }
"#;
    let found = problems(text);
    let expected = [
        (3, "source 1", "name", "invalid_name"),
        (4, "source 1", "kind", "unknown_kind"),
        (5, "source 1", "secret", "invalid_secret"),
        (6, "source 1", "tolerance_s", "wrong_type"),
        (7, "source 1", "colour", "unknown_field"),
        (9, "source \"two\"", "secret", "missing_field"),
        (12, "source \"two\"", "allowed_event_type", "unknown_field"),
        (16, "subscription \"three\"", "source", "unknown_source"),
        (
            17,
            "subscription \"three\", destination",
            "url",
            "invalid_url",
        ),
        (
            18,
            "subscription \"three\", retry",
            "jitter",
            "out_of_range",
        ),
        (
            18,
            "subscription \"three\", retry",
            "timout_ms",
            "unknown_field",
        ),
    ];
    let expected: Vec<_> = expected
        .map(|(line, table, field, code)| (Some(line), table.to_owned(), field.to_owned(), code))
        .into();
    assert_eq!(found, expected);
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated_in_the_message() {
    for secret in ["\"whsec_CANARY\"", "[\"CANARY\"]", "{ CANARY = 1 }"] {
        let text = format!("[[source]]\nname = \"s\"\nkind = \"stripe\"\nsecret = {secret}\n");
        let message = Manifest::parse("t", &text).unwrap_err().to_string();
        assert!(!message.contains("CANARY"), "{message}");
    }
}

#[test]
fn a_misspelt_field_is_told_its_right_name() {
    let text = format!("{SOURCE}tolerance = 5\nallowed_event_type = []\n");
    let message = Manifest::parse("t", &text).unwrap_err().to_string();
    assert!(message.contains("did you mean tolerance_s?"), "{message}");
    assert!(
        message.contains("did you mean allowed_event_types?"),
        "{message}"
    );
}

#[test]
fn names_are_unique_within_their_kind() {
    assert_eq!(codes(&format!("{SOURCE}{SOURCE}")), ["duplicate_name"]);
}

#[test]
fn syntax_errors_come_with_their_line() {
    let found = problems("[[source]]\nname = \n");
    assert_eq!(found[0].0, Some(2));
    assert_eq!(found[0].3, "syntax");
}

#[test]
fn secrets_are_references_of_three_forms() {
    let read = |secret: &str| {
        let text = format!("[[source]]\nname = \"s\"\nkind = \"stripe\"\nsecret = \"{secret}\"\n");
        Manifest::parse("t", &text).map(|manifest| manifest.sources[0].secret.clone().unwrap())
    };
    assert_eq!(read("dev").unwrap(), SecretRef::Dev);
    assert_eq!(read("env:A_1").unwrap(), SecretRef::Env("A_1".to_owned()));
    assert_eq!(read("file:a/b").unwrap(), SecretRef::File("a/b".to_owned()));
    assert_eq!(
        read("file:/run/s").unwrap(),
        SecretRef::File("/run/s".to_owned())
    );
    for wrong in [
        "",
        "env:",
        "env:1A",
        "env:A B",
        "file:",
        "file:../x",
        "Dev",
        "aws:x",
    ] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_scheme_of_the_users_own_is_checked_and_needs_a_kind_of_its_own() {
    let with = |kind: &str, scheme: &str| {
        format!("[[source]]\nname = \"s\"\nkind = \"{kind}\"\nsecret = \"dev\"\n{scheme}")
    };
    let good = "[source.scheme]\nname = \"A\"\n[source.scheme.token]\nfrom = \"header:X\"\n";
    assert!(Manifest::parse("t", &with("own", good)).is_ok());
    assert_eq!(codes(&with("stripe", good)), ["kind_is_built_in"]);
    let bad_place = "[source.scheme]\nname = \"A\"\n[source.scheme.token]\nfrom = \"cookie:X\"\n";
    assert_eq!(codes(&with("own", bad_place)), ["invalid_scheme"]);
    let no_method = "[source.scheme]\nname = \"A\"\n";
    assert_eq!(codes(&with("own", no_method)), ["invalid_scheme"]);
}

#[test]
fn dedupe_rules_and_patterns_are_checked() {
    assert!(Manifest::parse("t", &format!("{SOURCE}dedupe = \"header:X-Id\"\n")).is_ok());
    assert!(Manifest::parse("t", &format!("{SOURCE}dedupe = \"every-arrival\"\n")).is_ok());
    assert_eq!(
        codes(&format!("{SOURCE}dedupe = \"body-hash\"\n")),
        ["invalid_dedupe"]
    );
    assert_eq!(
        codes(&format!("{SOURCE}allowed_event_types = [\"a\", \"\"]\n")),
        ["invalid_pattern"]
    );
}

#[test]
fn plain_http_needs_an_explicit_word_and_addresses_hold_no_password() {
    let with = |destination: &str| {
        format!("{SOURCE}[[subscription]]\nname = \"a\"\ndestination = {{ {destination} }}\n")
    };
    let ok = with("kind = \"http\", url = \"http://127.0.0.1:9/\", allow_http = true");
    assert!(Manifest::parse("t", &ok).is_ok());
    let password = with("kind = \"http\", url = \"https://u:p@h/\"");
    assert_eq!(codes(&password), ["invalid_url"]);
    assert_eq!(
        codes(&with("kind = \"ftp\", url = \"https://h/\"")),
        ["unknown_destination"]
    );
    assert_eq!(codes(&with("kind = \"http\"")), ["missing_field"]);
    let public = Manifest::parse("t", &ok).unwrap();
    assert!(public.check_addresses(&AllowList::none()).is_err());
    let here: AllowList = "127.0.0.0/8".parse().unwrap();
    assert!(public.check_addresses(&here).is_ok());
}

#[test]
fn every_kind_of_destination_has_its_own_fields() {
    let with = |destination: &str| {
        format!("{SOURCE}[[subscription]]\nname = \"a\"\ndestination = {{ {destination} }}\n")
    };
    let read = |destination: &str| {
        let manifest = Manifest::parse("t", &with(destination)).unwrap();
        serde_json::to_value(&manifest.subscriptions[0].destination).unwrap()
    };
    for (text, json) in [
        (
            r#"kind = "http", url = "https://h.example/""#,
            serde_json::json!({ "kind": "http", "url": "https://h.example/" }),
        ),
        (
            r#"kind = "http", url = "https://h.example/", mode = "structured", headers = { X-Key = "k" }"#,
            serde_json::json!({
                "kind": "http", "url": "https://h.example/", "mode": "structured",
                "headers": { "X-Key": "k" },
            }),
        ),
        (
            r#"kind = "handler", name = "billing.v1""#,
            serde_json::json!({ "kind": "handler", "name": "billing.v1" }),
        ),
        (
            r#"kind = "sqs", queue_url = "https://sqs.eu-west-1.amazonaws.com/1/q""#,
            serde_json::json!({
                "kind": "sqs", "queue_url": "https://sqs.eu-west-1.amazonaws.com/1/q",
            }),
        ),
        (
            r#"kind = "eventbridge", bus = "main", source = "shop""#,
            serde_json::json!({ "kind": "eventbridge", "bus": "main", "source": "shop" }),
        ),
        (
            r#"kind = "lambda", function = "f""#,
            serde_json::json!({ "kind": "lambda", "function": "f" }),
        ),
        (r#"kind = "pull""#, serde_json::json!({ "kind": "pull" })),
    ] {
        assert_eq!(read(text), json, "{text}");
    }
    for (text, expected) in [
        (r#"kind = "handler""#, "missing_field"),
        (r#"kind = "handler", name = "a b""#, "invalid_name"),
        (r#"kind = "sqs", queue_url = "q""#, "invalid_url"),
        (
            r#"kind = "eventbridge", bus = "b", source = "aws.s3""#,
            "out_of_range",
        ),
        (r#"kind = "lambda""#, "missing_field"),
        (r#"kind = "pull", url = "https://h/""#, "unknown_field"),
        (
            r#"kind = "http", url = "https://h/", mode = "both""#,
            "out_of_range",
        ),
        (
            r#"kind = "http", url = "https://h/", headers = { Host = "h" }"#,
            "connection_header",
        ),
        (
            r#"kind = "http", url = "https://h/", headers = { ce-id = "h" }"#,
            "reserved_header",
        ),
        (r#"kind = "http", url = "https://h/#x""#, "invalid_url"),
    ] {
        assert_eq!(codes(&with(text)), [expected], "{text}");
    }
}

#[test]
fn a_bad_header_is_named_and_its_value_is_not() {
    let text = format!(
        "{SOURCE}[[subscription]]\nname = \"a\"\n\
         destination = {{ kind = \"http\", url = \"https://h/\", headers = {{ X-Key = \"CANARY\\u00e9\" }} }}\n"
    );
    let message = Manifest::parse("t", &text).unwrap_err().to_string();
    assert!(
        message.contains("\"X-Key\"") && !message.contains("CANARY"),
        "{message}"
    );
}

#[test]
fn a_source_of_the_outbox_has_nothing_of_an_endpoint() {
    let with = |fields: &str| format!("[[source]]\nname = \"app\"\nkind = \"outbox\"\n{fields}\n");
    let manifest = Manifest::parse("t", &with("tenant = \"acme\"")).unwrap();
    assert_eq!(manifest.sources[0].secret, None);
    assert!(manifest.sources[0].clone().with_endpoint().is_err());
    for field in [
        "secret = \"dev\"",
        "public_url = \"https://h.example/\"",
        "tolerance_s = 5",
        "dedupe = \"every-arrival\"",
        "[source.scheme]\nname = \"A\"\n[source.scheme.token]\nfrom = \"header:X\"",
    ] {
        assert_eq!(codes(&with(field)), ["not_for_outbox"], "{field}");
    }
    let ours = "[[source]]\nname = \"hookstead\"\nkind = \"outbox\"\n";
    assert_eq!(codes(ours), ["reserved_name"]);
}

#[test]
fn an_empty_file_is_an_empty_manifest() {
    let manifest = Manifest::parse("t", "").unwrap();
    assert!(manifest.sources.is_empty() && manifest.subscriptions.is_empty());
}

#[test]
fn what_the_database_would_refuse_is_found_before_it_is_asked() {
    for (fields, code) in [
        (r#"tenant = "a\u0000b""#, "out_of_range"),
        (r#"allowed_event_types = ["a\u0000"]"#, "invalid_pattern"),
        (r#"public_url = "HTTPS://example.com/x""#, "invalid_url"),
        (r#"public_url = " https://example.com/x""#, "invalid_url"),
    ] {
        assert_eq!(codes(&format!("{SOURCE}{fields}\n")), [code], "{fields}");
    }
    let scheme = "[[source]]\nname = \"s\"\nkind = \"own\"\nsecret = \"dev\"\n[source.scheme]\nname = \"a\\u0000\"\n[source.scheme.token]\nfrom = \"header:X\"\n";
    assert_eq!(codes(scheme), ["invalid_scheme"]);
}
