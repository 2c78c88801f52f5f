//! Documents that must agree with the code.

use hookstead_domain::ErrorCode;

use crate::{REPOSITORY, none_broken};

#[test]
fn every_public_error_code_is_explained() {
    let page = REPOSITORY.file("docs/errors.md").unwrap();
    let broken: Vec<String> = ErrorCode::ALL
        .iter()
        .map(|code| code.as_str())
        .filter(|code| !page.text.contains(&format!("| `{code}` |")))
        .map(|code| format!("docs/errors.md has no row for {code}"))
        .collect();
    none_broken(&broken);
}

#[test]
fn links_between_documents_lead_somewhere() {
    let mut broken = Vec::new();
    for file in REPOSITORY.ending(".md") {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for link in links(&file.text) {
            let path = link.split('#').next().unwrap_or(link);
            let outside = path.is_empty() || path.contains("://") || path.starts_with("mailto:");
            if !outside && !REPOSITORY.exists(&format!("./{folder}/{path}").replace("//", "/")) {
                broken.push(format!("{}: {link} leads nowhere", file.path));
            }
        }
    }
    none_broken(&broken);
}

/// The targets of `[text](target)`.
fn links(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split("](").skip(1);
    pieces.filter_map(|piece| piece.split_once(')').map(|(link, _)| link))
}
