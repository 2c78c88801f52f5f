//! docs/cases.md: each known failure of the field has its test, or a reason why not.

use std::collections::BTreeSet;

use crate::{REPOSITORY, none_broken};

/// The cases of receiver, storage, worker and outgoing requests: how many there are of each.
const CASES: [(&str, u32); 4] = [("REC", 26), ("STO", 13), ("WRK", 9), ("OUT", 21)];

/// A test's name is a sentence: fewer underscores mean a column, a code or a field.
const UNDERSCORES: usize = 3;

fn lines_of(id: &str) -> Vec<&'static str> {
    let page = REPOSITORY.file("docs/cases.md");
    let text = page.map_or("", |page| page.text.as_str());
    text.lines().filter(|line| line.contains(id)).collect()
}

/// The names of tests in a line: what is in backquotes and reads like a sentence.
fn tests_in(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2).filter_map(|quoted| {
        let name = quoted.rsplit("::").next().unwrap_or(quoted);
        let plain = name
            .chars()
            .all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
        (plain && name.matches('_').count() >= UNDERSCORES).then_some(name)
    })
}

/// The names of all functions in Rust files.
fn functions() -> BTreeSet<&'static str> {
    let lines = REPOSITORY.ending(".rs").flat_map(|file| file.text.lines());
    lines
        .filter_map(|line| {
            let (_, after) = line.split_once("fn ")?;
            let end =
                after.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')?;
            Some(&after[..end])
        })
        .collect()
}

#[test]
fn every_case_has_a_test_or_a_reason() {
    let mut broken = Vec::new();
    for (kind, count) in CASES {
        for number in 1..=count {
            let id = format!("{kind}-{number:02}");
            let lines = lines_of(&id);
            let tested = lines.iter().any(|line| tests_in(line).next().is_some());
            let reasoned = lines
                .iter()
                .any(|line| line.contains("not apply") || line.contains("later"));
            if !tested && !reasoned {
                broken.push(format!(
                    "docs/cases.md: {id} names no test, nor why it does \"not apply\" or comes \"later\""
                ));
            }
        }
    }
    none_broken(&broken);
}

#[test]
fn every_test_that_the_cases_name_exists() {
    let functions = functions();
    let page = REPOSITORY
        .file("docs/cases.md")
        .expect("docs/cases.md lists the cases");
    let broken: Vec<String> = page
        .text
        .lines()
        .flat_map(tests_in)
        .filter(|name| !functions.contains(name))
        .map(|name| format!("docs/cases.md names {name}, which is no test"))
        .collect();
    none_broken(&broken);
}
