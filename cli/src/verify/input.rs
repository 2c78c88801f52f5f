//! What is to be verified: the request, the scheme, the secrets.

use std::io::Read as _;
use std::path::Path;

use hookstead_domain::{ErrorCode, EventTypePattern};
use hookstead_receiver::{Coding, DedupeRule, content_coding, decode_body};
use hookstead_signing::{Headers, Scheme, Secret, Signs, builtin};

use super::Arguments;
use crate::error::{Doing as _, Error};
use crate::manifest::{Manifest, Source};
use crate::project::Project;
use crate::raw_request::RawRequest;
use crate::secret;

/// Most bytes that a compressed body may grow to: the receiver's own hard limit.
const MAX_DECODED_BYTES: usize = 4 * 1024 * 1024;

/// The word for standard input.
const STANDARD_INPUT: &str = "-";

/// Everything that decides.
pub(super) struct Input {
    pub(super) request: RawRequest,
    pub(super) url: String,
    pub(super) decoded_body: Option<Vec<u8>>,
    pub(super) scheme: Scheme,
    pub(super) secrets: Vec<(String, Secret)>,
    pub(super) tolerance_s: Option<u32>,
    pub(super) dedupe: DedupeRule,
    /// How the receiver refuses the body's coding.
    pub(super) refused_coding: Option<ErrorCode>,
    /// Empty: every type.
    pub(super) allowed_event_types: Vec<EventTypePattern>,
}

pub(super) async fn read(arguments: &Arguments) -> Result<Input, Error> {
    let source = source(arguments)?.map(Source::with_endpoint).transpose()?;
    let scheme = scheme(arguments, source.as_ref())?;
    let secrets = secrets(arguments, source.as_ref()).await?;
    let request = request(arguments)?;
    let own_rule = source.as_ref().and_then(|source| source.dedupe.as_deref());
    // The manifest was checked: what stands there can be read.
    let dedupe = own_rule
        .and_then(|rule| rule.parse().ok())
        .unwrap_or_default();
    let registered = source.as_ref().and_then(|source| source.public_url.clone());
    let url = arguments
        .url
        .clone()
        .or(registered)
        .unwrap_or_else(|| request.url());
    let (decoded_body, refused_coding) = decoded(&request, scheme.signs);
    Ok(Input {
        url,
        decoded_body,
        refused_coding,
        tolerance_s: arguments
            .tolerance_s
            .or(source.as_ref().and_then(|source| source.tolerance_s)),
        allowed_event_types: source.map_or_else(Vec::new, |source| source.allowed_event_types),
        request,
        scheme,
        secrets,
        dedupe,
    })
}

fn source(arguments: &Arguments) -> Result<Option<Source>, Error> {
    let Some(name) = &arguments.source else {
        return Ok(None);
    };
    let manifest = Manifest::read(&arguments.project.manifest)?;
    let found = manifest.source(name).cloned();
    let message = format!(
        "there is no source \"{name}\" in {}",
        arguments.project.manifest.display()
    );
    found
        .map(Some)
        .ok_or_else(|| Error::usage("unknown_source", message))
}

fn scheme(arguments: &Arguments, source: Option<&Source>) -> Result<Scheme, Error> {
    if let Some(path) = &arguments.scheme {
        let text = read_file(path)?;
        let text = String::from_utf8_lossy(&text);
        return Scheme::from_toml(&text).map_err(|error| {
            Error::usage("invalid_scheme", format!("{}: {error}", path.display()))
        });
    }
    if let Some(scheme) = source.and_then(Source::signing_scheme) {
        return Ok(scheme.clone());
    }
    let Some(kind) = &arguments.kind else {
        let message = "name what the request is: --source NAME, --kind KIND or --scheme FILE";
        return Err(Error::usage("scheme_missing", message));
    };
    builtin(kind).cloned().ok_or_else(|| {
        let message = format!("there is no built-in kind \"{kind}\"; `hookstead kinds` lists them");
        Error::usage("unknown_kind", message)
    })
}

/// Secrets with the names under which they are reported.
async fn secrets(
    arguments: &Arguments,
    source: Option<&Source>,
) -> Result<Vec<(String, Secret)>, Error> {
    if !arguments.secret_file.is_empty() {
        let named = arguments.secret_file.iter();
        return named
            .map(|path| Ok((path.display().to_string(), secret::from_file(path)?)))
            .collect();
    }
    let Some(source) = source else {
        let message = "name the secret: --secret-file FILE, or --source NAME to use the source's";
        return Err(Error::usage("secret_missing", message));
    };
    let project = Project::of(&arguments.project)?;
    let versions = secret::versions(&project, source).await?;
    let named = versions.into_iter();
    Ok(named
        .map(|version| (version.label.to_string(), version.secret))
        .collect())
}

fn request(arguments: &Arguments) -> Result<RawRequest, Error> {
    if let Some(path) = &arguments.request {
        return RawRequest::parse(&read_file(path)?);
    }
    let mut headers = Headers::new();
    for header in &arguments.header {
        let (name, value) = header
            .split_once(':')
            .ok_or_else(|| Error::usage("invalid_header", "write a header as 'Name: value'"))?;
        headers.push(name.trim(), value.trim_matches([' ', '\t']));
    }
    let body = match &arguments.body {
        Some(path) => read_file(path)?,
        None => Vec::new(),
    };
    Ok(RawRequest {
        method: arguments
            .method
            .clone()
            .unwrap_or_else(|| "POST".to_owned()),
        target: arguments.url.clone().unwrap_or_else(|| "/".to_owned()),
        headers,
        body,
    })
}

pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, Error> {
    if path == Path::new(STANDARD_INPUT) {
        let mut bytes = Vec::new();
        let read = std::io::stdin().lock().read_to_end(&mut bytes);
        read.doing("cannot read standard input")?;
        return Ok(bytes);
    }
    std::fs::read(path).map_err(|source| Error::File {
        doing: "cannot read",
        path: path.to_path_buf(),
        source,
    })
}

/// The body before gzip, where it was compressed, or how the receiver refuses the
/// coding. What only claims to be gzip is no reason to where the wire bytes are signed.
fn decoded(request: &RawRequest, signs: Signs) -> (Option<Vec<u8>>, Option<ErrorCode>) {
    let coding = match content_coding(&request.headers) {
        Ok(Coding::Identity) => return (None, None),
        Ok(coding) => coding,
        Err(code) => return (None, Some(code)),
    };
    match decode_body(coding, &request.body, MAX_DECODED_BYTES) {
        Ok(body) => (Some(body.into_owned()), None),
        Err(ErrorCode::MalformedRequest) if signs == Signs::Wire => (None, None),
        Err(code) => (None, Some(code)),
    }
}
