//! Where code stands and how much of it in one place.

use hookstead_system_tests::{code_of, without_tests};

use crate::{REPOSITORY, none_broken};

/// A `main.rs` reads configuration, builds clients and runs: this many lines hold that.
const MAIN_LINES: usize = 40;

/// Past this many lines a file is several files.
const FILE_LINES: usize = 400;

/// Data and recorded requests are as long as they are.
const DATA: [&str; 3] = ["/data/", "/seeds/", "/vectors"];

/// Where SQL text may stand: the crate for it, test support and tests of databases.
const SQL_PLACES: [&str; 8] = [
    "shared/store/",
    "shared/testkit/",
    "shared/localpg/tests/",
    "functions/receiver/benches/",
    "functions/worker/benches/",
    // Code of users, over tables of their own.
    "functions/worker/examples/",
    "tests/system/",
    "xtask/",
];

/// Beginnings of statements inside a string.
const STATEMENTS: [&str; 8] = [
    "\"select ",
    "\"insert into ",
    "\"update ",
    "\"delete from ",
    "\"with ",
    "\"create ",
    "\"alter ",
    "sqlx::query",
];

/// Keywords that show the case a file's SQL is written in.
const KEYWORDS: [&str; 14] = [
    "SELECT", "INSERT", "UPDATE", "DELETE", "CREATE", "ALTER", "TABLE", "FROM", "WHERE", "GRANT",
    "REVOKE", "FUNCTION", "RETURNS", "PRIMARY",
];

/// What reads a clock, the environment, files, the network or chance.
const IMPURE: [&str; 12] = [
    "SystemTime::now",
    "Instant::now",
    "now_utc(",
    "now_local(",
    "std::env::",
    "std::fs::",
    "std::net::",
    "std::process::",
    "std::thread::",
    "async fn",
    "now_v7(",
    "new_v4(",
];

#[test]
fn mains_are_short() {
    let mains = REPOSITORY.ending("src/main.rs");
    let broken: Vec<String> = mains
        .filter(|file| file.text.lines().count() > MAIN_LINES)
        .map(|file| format!("{} is longer than {MAIN_LINES} lines", file.path))
        .collect();
    none_broken(&broken);
}

#[test]
fn source_files_stay_readable_in_one_go() {
    let sources = REPOSITORY
        .ending(".rs")
        .filter(|file| !DATA.iter().any(|part| file.path.contains(part)));
    let broken: Vec<String> = sources
        .map(|file| (file, file.text.lines().count()))
        .filter(|(_, lines)| *lines > FILE_LINES)
        .map(|(file, lines)| format!("{} has {lines} lines, more than {FILE_LINES}", file.path))
        .collect();
    none_broken(&broken);
}

#[test]
fn a_package_has_one_binary_of_integration_tests() {
    let extra = REPOSITORY.ending(".rs").filter(|file| {
        let parts: Vec<&str> = file.path.split('/').collect();
        let below = parts.iter().rposition(|part| *part == "tests");
        // The outermost folder `tests` holds packages, not tests.
        below.is_some_and(|place| place > 0 && place + 2 == parts.len())
    });
    let broken: Vec<String> = extra
        .map(|file| {
            format!(
                "{} belongs in tests/it, as a module of its main.rs",
                file.path
            )
        })
        .collect();
    none_broken(&broken);
}

#[test]
fn sql_stands_in_the_store_crate_alone() {
    let mut broken = Vec::new();
    let sources = REPOSITORY.ending(".rs").filter(|file| {
        let allowed = SQL_PLACES.iter().any(|place| file.path.starts_with(place));
        !allowed && !file.path.contains("/tests/")
    });
    for file in sources {
        for (line, code) in code_of(without_tests(&file.text)) {
            if STATEMENTS.iter().any(|start| code.contains(start)) {
                broken.push(format!("{}:{line} holds SQL: {}", file.path, code.trim()));
            }
        }
    }
    none_broken(&broken);
}

#[test]
fn sql_files_are_lower_case() {
    let mut broken = Vec::new();
    for file in REPOSITORY.ending(".sql") {
        for (place, line) in file.text.lines().enumerate() {
            let code = line.split("--").next().unwrap_or(line);
            let mut words = code.split(|letter: char| !letter.is_ascii_alphanumeric());
            if let Some(word) = words.find(|word| KEYWORDS.contains(word)) {
                broken.push(format!("{}:{} shouts {word}", file.path, place + 1));
            }
        }
    }
    none_broken(&broken);
}

#[test]
fn pure_crates_take_time_chance_and_files_as_arguments() {
    let mut broken = Vec::new();
    let pure = ["shared/domain/src/", "shared/signing/src/"];
    let sources = REPOSITORY
        .ending(".rs")
        .filter(|file| pure.iter().any(|place| file.path.starts_with(place)));
    for file in sources {
        for (line, code) in code_of(without_tests(&file.text)) {
            if let Some(found) = IMPURE.iter().find(|found| code.contains(**found)) {
                broken.push(format!("{}:{line} uses {found}", file.path));
            }
        }
    }
    none_broken(&broken);
}

#[test]
fn no_folder_or_file_is_named_for_leftovers() {
    let names = ["utils", "util", "common", "helpers", "helper", "misc"];
    let broken: Vec<String> = REPOSITORY
        .ending(".rs")
        .filter(|file| {
            let mut parts = file.path.trim_end_matches(".rs").split('/');
            parts.any(|part| names.contains(&part))
        })
        .map(|file| format!("{}: name it for what it holds", file.path))
        .collect();
    none_broken(&broken);
}

#[test]
fn tests_neither_sleep_nor_retry() {
    let mut broken = Vec::new();
    let tests = REPOSITORY
        .ending(".rs")
        .filter(|file| file.path.contains("/tests/it/"))
        // This rule names what it forbids.
        .filter(|file| !file.path.starts_with("tests/system/"));
    for file in tests {
        for (line, code) in code_of(&file.text) {
            if code.contains("sleep(") {
                broken.push(format!("{}:{line} sleeps: wait for a signal", file.path));
            }
        }
    }
    none_broken(&broken);
}
