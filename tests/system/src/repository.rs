//! The files of the repository, and what cargo says of its packages.

use std::path::{Path, PathBuf};
use std::process::Command;

use cargo_metadata::{Metadata, MetadataCommand, Package};

/// A file that is tracked, or would be with the next `git add`.
#[derive(Clone, Debug)]
pub struct File {
    /// Its path from the repository's root, with `/` between the parts.
    pub path: String,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// The whole repository.
#[derive(Debug)]
pub struct Repository {
    root: PathBuf,
    files: Vec<File>,
    metadata: Metadata,
}

impl Repository {
    /// Reads the repository this crate stands in.
    ///
    /// # Panics
    /// Where git or cargo cannot be asked: then there is nothing to check.
    #[must_use]
    pub fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().expect("this crate is in a repository");
        let metadata = MetadataCommand::new()
            .current_dir(&root)
            .no_deps()
            .exec()
            .expect("cargo describes the workspace");
        Self {
            files: files(&root),
            metadata,
            root,
        }
    }

    /// Every file.
    #[must_use]
    pub fn files(&self) -> &[File] {
        &self.files
    }

    /// The files whose name ends like this.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a File> {
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(end))
    }

    /// The file at this path.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Whether something is at this path, file or folder.
    #[must_use]
    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// The packages of the workspace.
    #[must_use]
    pub fn packages(&self) -> &[Package] {
        &self.metadata.packages
    }

    /// A package's folder, from the root.
    #[must_use]
    pub fn folder(&self, package: &Package) -> String {
        let manifest = Path::new(&package.manifest_path);
        let folder = manifest.parent().unwrap_or(manifest);
        let below = folder.strip_prefix(&self.root).unwrap_or(folder);
        below.to_string_lossy().into_owned()
    }
}

fn files(root: &Path) -> Vec<File> {
    let output = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .expect("git lists the files");
    assert!(output.status.success(), "git lists the files");
    let names = output.stdout.split(|byte| *byte == 0);
    let mut files: Vec<File> = names
        .filter(|name| !name.is_empty())
        .filter_map(|name| {
            let path = String::from_utf8_lossy(name).into_owned();
            // A file that was removed and not committed yet is still listed.
            let bytes = std::fs::read(root.join(&path)).ok()?;
            let text = String::from_utf8_lossy(&bytes).into_owned();
            Some(File { path, text })
        })
        .collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}
