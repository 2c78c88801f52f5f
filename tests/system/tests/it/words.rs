//! Words that belong to a machine or to how the work was organised, not to the product.

use crate::{REPOSITORY, none_broken};

/// The list is in pieces so that this file does not break its own rule.
const FORBIDDEN: [&str; 22] = [
    concat!("/wo", "rk/"),
    concat!("/tmp", "/brief"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("pythonhosted", ".org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("debian", ".org"),
    concat!("proxy.golang", ".org"),
    concat!("DESIGN", ".md"),
    concat!("STYLE", ".md"),
    concat!("MODELS", ".md"),
    concat!("CASES", ".md"),
    concat!("design ", "document"),
    concat!("the ", "brief"),
    concat!("this ", "session"),
    concat!("sub", "agent"),
    concat!("AI ", "agent"),
    concat!("language ", "model"),
    concat!("shared/", "facts"),
];

/// Cargo writes its registry's name into the lock files.
fn is_checked(path: &str) -> bool {
    !path.ends_with("Cargo.lock")
}

#[test]
fn no_file_names_a_machine_a_registry_host_or_how_it_was_made() {
    let mut broken = Vec::new();
    for file in REPOSITORY
        .files()
        .iter()
        .filter(|file| is_checked(&file.path))
    {
        for (place, line) in file.text.lines().enumerate() {
            if let Some(word) = FORBIDDEN.iter().find(|word| line.contains(**word)) {
                broken.push(format!("{}:{} holds {word:?}", file.path, place + 1));
            }
        }
    }
    none_broken(&broken);
}

#[test]
fn no_secret_of_a_real_service_is_in_any_file() {
    // Real keys are long; the made-up ones of tests and examples say that they are.
    let prefixes = [
        concat!("AKI", "A"),
        concat!("gh", "p_"),
        concat!("sk_", "live_"),
    ];
    let mut broken = Vec::new();
    for file in REPOSITORY.files() {
        for (place, line) in file.text.lines().enumerate() {
            let words = line.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
            for word in words {
                let real = prefixes.iter().any(|prefix| word.starts_with(prefix));
                if real && word.len() >= 20 && !word.contains("EXAMPLE") {
                    broken.push(format!("{}:{} holds a key", file.path, place + 1));
                }
            }
        }
    }
    none_broken(&broken);
}
