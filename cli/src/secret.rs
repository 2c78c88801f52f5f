//! Reading secrets that the command line or the manifest points to.

use std::path::Path;

use hookstead_secrets::{LocalSecrets, SecretProvider as _, SecretVersion, VersionLabel};
use hookstead_signing::Secret;

use crate::apply::reference;
use crate::error::Error;
use crate::manifest::Source;
use crate::project::Project;

/// Every version of the secret of a source of the manifest.
pub(crate) async fn versions(
    project: &Project,
    source: &Source,
) -> Result<Vec<SecretVersion>, Error> {
    let Some(reference) = reference(source) else {
        let message = format!("source \"{}\" has no secret", source.name.as_str());
        return Err(Error::usage("secret_unusable", message));
    };
    let fetched = LocalSecrets::new(project.folder()).fetch(&reference).await;
    fetched.map_err(|error| {
        let name = source.name.as_str();
        let hint = if reference.starts_with("file:.hookstead/") {
            "; `hookstead dev` makes it at its first start"
        } else {
            ""
        };
        Error::usage(
            "secret_unusable",
            format!("the secret of \"{name}\": {error}{hint}"),
        )
    })
}

/// The current version alone: what a sender would sign with.
pub(crate) async fn current(project: &Project, source: &Source) -> Result<Secret, Error> {
    let versions = versions(project, source).await?;
    let current = versions
        .into_iter()
        .find(|version| version.label == VersionLabel::Current);
    current.map(|version| version.secret).ok_or_else(|| {
        Error::usage(
            "secret_unusable",
            "the secret has no current version".to_owned(),
        )
    })
}

/// The secret in a file. One line end at its end is not part of it.
pub(crate) fn from_file(path: &Path) -> Result<Secret, Error> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::File {
        doing: "cannot read",
        path: path.to_path_buf(),
        source,
    })?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    from_text(text.strip_suffix('\r').unwrap_or(text))
}

/// A secret from the command line.
pub(crate) fn from_text(text: &str) -> Result<Secret, Error> {
    Secret::new(text).map_err(|error| Error::usage("secret_unusable", error.to_string()))
}
