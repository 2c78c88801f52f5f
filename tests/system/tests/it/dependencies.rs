//! Who may use whom, and what else manifests must say.

use cargo_metadata::{DependencyKind, Package};

use crate::{REPOSITORY, none_broken};

/// The layers from the bottom up. A package uses packages of lower layers alone.
const LAYERS: [(&str, &[&str]); 4] = [
    ("pure rules", &["hookstead-domain", "hookstead-signing"]),
    (
        "adapters",
        &[
            "hookstead-aws",
            "hookstead-egress",
            "hookstead-localpg",
            "hookstead-secrets",
            "hookstead-store",
        ],
    ),
    (
        "functions",
        &["hookstead-receiver", "hookstead-relay", "hookstead-worker"],
    ),
    (
        "commands",
        &[
            "hookstead",
            "xtask",
            "hookstead-soak",
            "hookstead-system-tests",
        ],
    ),
];

/// Test support: above the adapters it prepares, and nobody's dependency outside tests.
const TESTKIT: &str = "hookstead-testkit";

/// Crates that read a clock, draw random numbers or do IO: not for pure rules.
const IMPURE: [&str; 12] = [
    "async-trait",
    "futures",
    "getrandom",
    "hyper",
    "lambda_http",
    "lambda_runtime",
    "rand",
    "reqwest",
    "sqlx",
    "tempfile",
    "tokio",
    "tracing",
];

fn layer(name: &str) -> Option<usize> {
    LAYERS
        .iter()
        .position(|(_, members)| members.contains(&name))
}

fn is_ours(name: &str) -> bool {
    REPOSITORY
        .packages()
        .iter()
        .any(|package| package.name == name)
}

fn for_every_package(check: impl Fn(&Package, &mut Vec<String>)) {
    let mut broken = Vec::new();
    for package in REPOSITORY.packages() {
        check(package, &mut broken);
    }
    none_broken(&broken);
}

#[test]
fn every_package_has_its_layer() {
    for_every_package(|package, broken| {
        if package.name != TESTKIT && layer(&package.name).is_none() {
            broken.push(format!("{} is in no layer: add it to LAYERS", package.name));
        }
    });
}

#[test]
fn a_package_uses_only_packages_of_lower_layers() {
    for_every_package(|package, broken| {
        let used = package.dependencies.iter().filter(|used| {
            used.kind != DependencyKind::Development && is_ours(&used.name) && used.name != TESTKIT
        });
        for used in used {
            let below = layer(&used.name);
            // Test support prepares adapters for tests, from above them.
            let above = layer(&package.name).or((package.name == TESTKIT).then_some(2));
            if below >= above {
                broken.push(format!("{} must not use {}", package.name, used.name));
            }
        }
    });
}

#[test]
fn test_support_is_used_by_tests_alone() {
    for_every_package(|package, broken| {
        let mut dependencies = package.dependencies.iter();
        if dependencies.any(|used| used.name == TESTKIT && used.kind != DependencyKind::Development)
        {
            broken.push(format!("{} ships {TESTKIT}", package.name));
        }
    });
}

#[test]
fn pure_rules_use_nothing_that_reads_clocks_draws_numbers_or_does_io() {
    for_every_package(|package, broken| {
        let pure = layer(&package.name) == Some(0);
        let normal = package
            .dependencies
            .iter()
            .filter(|used| pure && used.kind == DependencyKind::Normal);
        for used in normal {
            if IMPURE.contains(&used.name.as_str()) || used.name.starts_with("aws-") {
                broken.push(format!("{} must not use {}", package.name, used.name));
            }
        }
    });
}

/// A member's manifest, as TOML.
fn manifest(package: &Package) -> toml::Table {
    std::fs::read_to_string(&package.manifest_path)
        .unwrap()
        .parse()
        .unwrap()
}

#[test]
fn every_package_takes_the_lints_of_the_workspace() {
    for_every_package(|package, broken| {
        let inherits = manifest(package)
            .get("lints")
            .and_then(|lints| lints.get("workspace")?.as_bool());
        if inherits != Some(true) {
            broken.push(format!("{} needs [lints] workspace = true", package.name));
        }
    });
}

#[test]
fn versions_of_dependencies_are_named_once_in_the_workspace() {
    for_every_package(|package, broken| {
        let manifest = manifest(package);
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let named = manifest.get(section).and_then(toml::Value::as_table);
            for (name, value) in named.into_iter().flatten() {
                let inherited = value.get("workspace").and_then(toml::Value::as_bool);
                if inherited != Some(true) {
                    broken.push(format!("{}: {name} needs workspace = true", package.name));
                }
            }
        }
    });
}

#[test]
fn every_dependency_is_used() {
    for_every_package(|package, broken| {
        let folder = REPOSITORY.folder(package);
        let sources: Vec<_> = REPOSITORY
            .ending(".rs")
            .filter(|file| file.path.starts_with(&format!("{folder}/")))
            .collect();
        for used in &package.dependencies {
            let name = match used.name.as_str() {
                // Its library is named without the hyphen.
                "md-5" => "md5".to_owned(),
                name => used.rename.as_deref().unwrap_or(name).replace('-', "_"),
            };
            let mentions = |text: &str| {
                text.contains(&format!("{name}::"))
                    || text.contains(&format!("use {name}"))
                    || text.contains(&format!("{name}!"))
            };
            if !sources.iter().any(|file| mentions(&file.text)) {
                broken.push(format!("{} does not use {}", package.name, used.name));
            }
        }
    });
}
