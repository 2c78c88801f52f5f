//! Documents that are written from the code.

use std::path::Path;

use hookstead_signing::{Reason, Scheme, providers_table};

#[test]
fn the_table_of_providers_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let table = providers_table();
    if std::env::var_os("HOOKSTEAD_UPDATE_DOCS").is_some_and(|value| value == "1") {
        std::fs::write(&path, &table).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == table,
        "docs/providers.md is behind the code: run HOOKSTEAD_UPDATE_DOCS=1 cargo test -p hookstead-signing"
    );
}

#[test]
fn every_example_of_the_schemes_page_is_a_usable_scheme() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemes.md");
    let page = std::fs::read_to_string(path).unwrap();
    let examples: Vec<_> = page
        .split("```toml scheme\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(examples.len() >= 3, "the page lost its examples");
    for example in examples {
        Scheme::from_toml(example).unwrap_or_else(|error| panic!("{error}\n{example}"));
    }
}

#[test]
fn every_reason_of_a_refusal_is_explained() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemes.md");
    let page = std::fs::read_to_string(path).unwrap();
    for code in Reason::CODES {
        assert!(page.contains(&format!("`{code}`")), "{code}");
    }
    assert!(Reason::CODES.contains(&Reason::CertificateNeeded.code()));
}
