//! Documents that are written from the code.

use std::path::Path;

use hookstead_domain::{retries_page, states_page};

fn assert_up_to_date(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("HOOKSTEAD_UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, page).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "docs/{name} is behind the code: run HOOKSTEAD_UPDATE_DOCS=1 cargo test -p hookstead-domain"
    );
}

#[test]
fn the_page_of_states_is_up_to_date() {
    assert_up_to_date("states.md", &states_page());
}

#[test]
fn the_page_of_retries_is_up_to_date() {
    assert_up_to_date("retries.md", &retries_page());
}
