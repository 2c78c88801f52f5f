//! Where a sample goes, how it is signed, and with what.

use hookstead_signing::{Scheme, Secret, builtin};
use url::Url;

use super::Arguments;
use crate::error::Error;
use crate::manifest::{Manifest, Source};
use crate::project::Project;
use crate::secret;

/// Everything but the message.
pub(super) struct Target {
    pub(super) kind: String,
    /// The source of the manifest, where it is for one.
    pub(super) source_name: Option<String>,
    pub(super) scheme: Scheme,
    pub(super) secret: Secret,
    /// Where it is posted.
    pub(super) url: Url,
    /// The address that is signed: the registered one, where the source has one.
    pub(super) signed_url: String,
}

pub(super) async fn find(arguments: &Arguments) -> Result<Target, Error> {
    let project = Project::of(&arguments.project)?;
    let source = source(arguments)?.map(Source::with_endpoint).transpose()?;
    let (kind, scheme) = match &source {
        Some(source) => (source.kind.clone(), source.signing_scheme().cloned()),
        None => (arguments.kind.clone(), builtin(&arguments.kind).cloned()),
    };
    let scheme = scheme.ok_or_else(|| {
        let message = format!(
            "\"{kind}\" is neither a built-in kind nor a source of the manifest; `hookstead kinds` lists the kinds"
        );
        Error::usage("unknown_kind", message)
    })?;
    let secret = match (&arguments.secret, &arguments.secret_file, &source) {
        (Some(text), _, _) => secret::from_text(text)?,
        (_, Some(path), _) => secret::from_file(path)?,
        (_, _, Some(source)) => secret::current(&project, source).await?,
        _ => {
            let message = format!("{}, and a secret with --secret-file", nowhere(arguments));
            return Err(Error::usage("secret_missing", message));
        }
    };
    let url = url(arguments, &project, source.as_ref())?;
    let source_name = source.as_ref().map(|source| source.name.to_string());
    let registered = source.and_then(|source| source.public_url);
    Ok(Target {
        source_name,
        signed_url: registered.unwrap_or_else(|| url.to_string()),
        kind,
        scheme,
        secret,
        url,
    })
}

fn source(arguments: &Arguments) -> Result<Option<Source>, Error> {
    let path = &arguments.project.manifest;
    // Without a manifest a kind, an address and a secret are enough.
    if arguments.source.is_none() && !path.exists() {
        return Ok(None);
    }
    let manifest = Manifest::read(path)?;
    if let Some(name) = &arguments.source {
        let found = manifest.source(name).cloned().ok_or_else(|| {
            let message = format!("there is no source \"{name}\" in {}", path.display());
            Error::usage("unknown_source", message)
        })?;
        if found.kind != arguments.kind && name != &arguments.kind {
            let message = format!(
                "source \"{name}\" is of kind {}, not {}",
                found.kind, arguments.kind
            );
            return Err(Error::usage("kind_differs", message));
        }
        return Ok(Some(found));
    }
    if let Some(named) = manifest.source(&arguments.kind) {
        return Ok(Some(named.clone()));
    }
    let of_kind: Vec<&Source> = manifest
        .sources
        .iter()
        .filter(|source| source.kind == arguments.kind)
        .collect();
    match of_kind[..] {
        [] => Ok(None),
        [one] => Ok(Some(one.clone())),
        _ => {
            let names: Vec<&str> = of_kind.iter().map(|source| source.name.as_str()).collect();
            let message = format!(
                "several sources are of kind \"{}\": choose with --source {}",
                arguments.kind,
                names.join(" or --source ")
            );
            Err(Error::usage("source_ambiguous", message))
        }
    }
}

fn url(arguments: &Arguments, project: &Project, source: Option<&Source>) -> Result<Url, Error> {
    if let Some(url) = &arguments.url {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::usage(
                "invalid_url",
                "--url must be an http or https address",
            ));
        }
        return Ok(url.clone());
    }
    let Some(source) = source else {
        return Err(Error::usage("url_missing", nowhere(arguments)));
    };
    let base = match project.running() {
        Some(running) => running.url,
        // A printed request need not go anywhere.
        None if arguments.print => "http://127.0.0.1:8080".to_owned(),
        None => {
            return Err(Error::NotRunning {
                folder: project.folder().to_path_buf(),
            });
        }
    };
    let url = format!("{base}/webhooks/{}", source.name.as_str());
    url.parse()
        .map_err(|_| Error::usage("invalid_url", format!("{url} is no address")))
}

/// What to do where no source takes this kind.
fn nowhere(arguments: &Arguments) -> String {
    let (kind, path) = (&arguments.kind, &arguments.project.manifest);
    let manifest = path.display();
    if path.exists() {
        format!(
            "{manifest} has no source of kind \"{kind}\": add one and run `hookstead apply`, or name an address with --url"
        )
    } else {
        format!(
            "there is no manifest {manifest}: name one with --manifest, or an address with --url"
        )
    }
}
