//! Paths, methods and header names.

use serde_json::json;

use crate::world::{World, bare, code, github, post, source, with_header};

#[tokio::test]
async fn rec_10_header_names_are_case_insensitive_and_stored_alike() {
    let world = World::github().await;
    let cases: [fn(&str) -> String; 3] = [
        |name| name.to_ascii_lowercase(),
        |name| name.to_ascii_uppercase(),
        str::to_owned,
    ];
    for (n, case) in cases.iter().enumerate() {
        let mut request = github(&format!("d-{n}"), b"{}");
        let renamed: Vec<(String, String)> = request
            .headers
            .iter()
            .map(|(name, value)| (case(name), value.to_owned()))
            .collect();
        request.headers = hookstead_signing::Headers::from_pairs(renamed);
        assert_eq!(world.send(request).await.status, 200);
    }
    let different = "select count(distinct headers - 'x-github-delivery') from hookstead.events";
    assert_eq!(world.number(different).await, 1);
}

#[tokio::test]
async fn rec_14_a_slash_at_the_end_is_never_redirected() {
    let world = World::github().await;
    let mut with_slash = github("d-1", b"{}");
    with_slash.path = "/webhooks/github/".to_owned();
    let mut with_query = github("d-2", b"{}");
    with_query.raw_query = "utm=1".to_owned();
    for request in [with_slash, with_query, github("d-3", b"{}")] {
        assert_eq!(world.send(request).await.status, 200);
    }
    let sources = "select count(distinct source_id) from hookstead.events";
    assert_eq!(world.number(sources).await, 1);
    for path in [
        "/webhooks/github//",
        "/webhooks//github",
        "//webhooks/github",
        "//",
    ] {
        let mut request = github("d-4", b"{}");
        request.path = path.to_owned();
        assert_eq!(world.send(request).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn rec_15_probes_of_a_known_source_are_200_and_leave_nothing() {
    let world = World::github().await;
    for method in ["HEAD", "GET", "OPTIONS"] {
        let answer = world.send(bare(method, "/webhooks/github", "")).await;
        assert_eq!((answer.status, answer.body.len()), (200, 0), "{method}");
        let unknown = world.send(bare(method, "/webhooks/nobody", "")).await;
        assert_eq!(unknown.status, 404, "{method}");
        assert!(method != "HEAD" || unknown.body.is_empty());
    }
    assert_eq!(world.rows().await, 0);
}

#[tokio::test]
async fn other_methods_are_405_and_say_what_is_allowed() {
    let world = World::github().await;
    for method in ["PUT", "PATCH", "DELETE", "TRACE", "BREW"] {
        let answer = world.send(bare(method, "/webhooks/github", "")).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (405, "method_not_allowed")
        );
        assert!(answer.header("allow").unwrap().contains("POST"));
    }
}

#[tokio::test]
async fn other_paths_are_404() {
    let world = World::github().await;
    for path in [
        "/",
        "",
        "/webhooks",
        "/webhooks/",
        "/webhook/github",
        "/webhooks/a/b",
    ] {
        let answer = world.send(bare("POST", path, "")).await;
        assert_eq!(
            (answer.status, code(&answer).as_str()),
            (404, "not_found"),
            "{path}"
        );
    }
}

#[tokio::test]
async fn unknown_disabled_and_impossible_names_give_the_same_answer() {
    let world = World::with(vec![source("github", "github"), source("off", "github")]).await;
    world
        .execute("update hookstead.sources set disabled_at = now() where name = 'off'")
        .await;
    let unknown = world.send(post("nobody", &[], b"{}")).await;
    assert_eq!(
        (unknown.status, code(&unknown).as_str()),
        (404, "unknown_source")
    );
    for name in ["off", "No%20Name", "..", "x'; drop table x; --"] {
        assert_eq!(world.send(post(name, &[], b"{}")).await, unknown, "{name}");
    }
}

#[tokio::test]
async fn rec_11_a_byte_outside_ascii_in_a_header_is_stored_as_its_character() {
    let world = World::github().await;
    let request = with_header(github("d-1", b"{}"), "User-Agent", "test\u{ee}1");
    assert_eq!(world.send(request).await.status, 200);
    assert_eq!(
        world.only_event().await["headers"]["user-agent"],
        json!("test\u{ee}1")
    );
}

#[tokio::test]
async fn a_header_with_a_nul_does_not_lose_the_event() {
    let world = World::github().await;
    let request = with_header(github("d-1", b"{}"), "X-Odd", "a\0b");
    assert_eq!(world.send(request).await.status, 200);
    assert_eq!(
        world.only_event().await["headers"]["x-odd"],
        json!("a\u{fffd}b")
    );
}
