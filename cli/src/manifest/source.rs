//! `[[source]]`: where events come from.

use std::path::{Component, Path};

use hookstead_domain::{EventTypePattern, SourceName};
use hookstead_signing::Scheme;
use toml::Spanned;
use toml::de::DeTable;

use super::fields::{Fields, Text};
use super::problem::Problems;
use crate::error::Error;

/// Longest window that may be set. A week is far beyond every provider's retries.
const MAX_TOLERANCE_S: u32 = 604_800;

/// Longest secret reference, kind and URL; the database's own limits.
const MAX_REFERENCE_CHARS: usize = 2048;

/// Longest dedupe rule; the database's own limit.
const MAX_DEDUPE_CHARS: usize = 256;

/// Most patterns of one list; the database's own limit.
pub(super) const MAX_PATTERNS: usize = 500;

/// The kind of a source that nobody calls: its events are published.
const OUTBOX_KIND: &str = "outbox";

/// The source of our own announcements.
const RESERVED_NAME: &str = "hookstead";

/// What only a source with an endpoint has.
const OF_ENDPOINTS: [&str; 5] = ["secret", "public_url", "tolerance_s", "dedupe", "scheme"];

/// The version of a source that names none.
const FIRST_SCHEMA_VERSION: &str = "1";

/// Where the secret of a source is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretRef {
    /// Made by `dev` and kept beside the manifest.
    Dev,
    /// In an environment variable.
    Env(String),
    /// In a file, relative to the manifest's folder.
    File(String),
}

/// One source.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) line: usize,
    pub(crate) name: SourceName,
    pub(crate) kind: String,
    /// A scheme of the user's own; `None`: the built-in one of the kind.
    pub(crate) scheme: Option<Scheme>,
    /// `None` for a source without an endpoint.
    pub(crate) secret: Option<SecretRef>,
    pub(crate) public_url: Option<String>,
    pub(crate) tolerance_s: Option<u32>,
    pub(crate) allowed_event_types: Vec<EventTypePattern>,
    pub(crate) dedupe: Option<String>,
    pub(crate) tenant: Option<String>,
    pub(crate) schema_version: String,
    pub(crate) report_event_type: bool,
}

impl Source {
    /// Whether its events are published and nobody calls it.
    pub(crate) fn is_outbox(&self) -> bool {
        self.kind == OUTBOX_KIND
    }

    /// The source, where requests to it can be signed and verified.
    pub(crate) fn with_endpoint(self) -> Result<Self, Error> {
        if !self.is_outbox() {
            return Ok(self);
        }
        let name = self.name.as_str();
        let message = format!(
            "source \"{name}\" has no endpoint: its events are published, with `hookstead publish TYPE --source {name}` or from SQL"
        );
        Err(Error::usage("no_endpoint", message))
    }

    /// The scheme that verifies its requests.
    pub(crate) fn signing_scheme(&self) -> Option<&Scheme> {
        self.scheme
            .as_ref()
            .or_else(|| hookstead_signing::builtin(&self.kind))
    }
}

pub(super) fn read<'t>(
    number: usize,
    table: Spanned<DeTable<'t>>,
    text: &Text<'t>,
    problems: &mut Problems,
) -> Option<Source> {
    let mut fields = Fields::new(format!("source {number}"), table, text, problems);
    let name = name(&mut fields);
    if let Some(name) = &name {
        fields.rename(format!("source \"{}\"", name.as_str()));
    }
    let line = fields.line();
    let (kind, scheme) = kind_and_scheme(&mut fields);
    let is_outbox = kind.as_deref() == Some(OUTBOX_KIND);
    let secret = secret(&mut fields, is_outbox);
    let public_url = fields.parse("public_url", "invalid_url", public_url);
    let tolerance_s = fields.take::<u32>("tolerance_s", "a whole number of seconds");
    if let Some((line, tolerance_s)) = tolerance_s
        && tolerance_s > MAX_TOLERANCE_S
    {
        let message = format!("is at most {MAX_TOLERANCE_S} (a week)");
        fields.problem("tolerance_s", line, "out_of_range", message);
    }
    let allowed_event_types = patterns(&mut fields, "allowed_event_types");
    let dedupe = fields.parse("dedupe", "invalid_dedupe", dedupe);
    let tenant = fields.parse("tenant", "out_of_range", short(128));
    let schema_version = fields.parse("schema_version", "out_of_range", short(64));
    let report_event_type = fields.take::<bool>("report_event_type", "true or false");
    fields.finish();
    Some(Source {
        line,
        name: name?,
        kind: kind?,
        scheme,
        secret: if is_outbox { None } else { Some(secret?) },
        public_url: value(public_url),
        tolerance_s: value(tolerance_s),
        allowed_event_types,
        dedupe: value(dedupe),
        tenant: value(tenant),
        schema_version: value(schema_version).unwrap_or_else(|| FIRST_SCHEMA_VERSION.to_owned()),
        report_event_type: value(report_event_type).unwrap_or(false),
    })
}

pub(super) fn value<T>(taken: Option<(usize, T)>) -> Option<T> {
    taken.map(|(_, value)| value)
}

fn name(fields: &mut Fields<'_, '_>) -> Option<SourceName> {
    if !fields.has("name") {
        fields.missing(
            "name",
            "a source needs a name; it stands in its URL, /webhooks/NAME",
        );
    }
    let parsed = fields.parse("name", "invalid_name", |text| {
        let name = text.parse::<SourceName>();
        name.map_err(|error| error.to_string())
    });
    if let Some((line, name)) = &parsed
        && name.as_str() == RESERVED_NAME
    {
        let message = "is the name of Hookstead's own announcements";
        fields.problem("name", *line, "reserved_name", message);
    }
    value(parsed)
}

fn kind_and_scheme(fields: &mut Fields<'_, '_>) -> (Option<String>, Option<Scheme>) {
    let has_scheme = fields.has("scheme");
    let given: Vec<_> = OF_ENDPOINTS
        .into_iter()
        .filter(|field| fields.has(field))
        .collect();
    if !fields.has("kind") {
        fields.missing(
            "kind",
            "a source needs a kind; `hookstead kinds` lists the built-in ones",
        );
    }
    let kind = fields.parse("kind", "unknown_kind", |kind| {
        if !is_kind(kind) {
            Err("a kind is 1 to 64 of a-z, 0-9, '.', '-' and '_', starting with a letter or digit".to_owned())
        } else if kind == OUTBOX_KIND || has_scheme || hookstead_signing::builtin(kind).is_some() {
            Ok(kind.to_owned())
        } else {
            Err(format!(
                "there is no built-in kind \"{kind}\"; `hookstead kinds` lists them, and [source.scheme] describes one of your own"
            ))
        }
    });
    let scheme = fields.take_described::<Scheme>("scheme", "invalid_scheme");
    if let Some((line, scheme)) = &scheme {
        if let Err(error) = scheme.validate() {
            fields.problem("scheme", *line, "invalid_scheme", error.to_string());
        }
        // The database keeps it as JSON, which holds every character but this one there.
        if scheme.to_json().to_string().contains("\\u0000") {
            let message = "must not hold the character U+0000";
            fields.problem("scheme", *line, "invalid_scheme", message);
        }
    }
    if let Some((line, kind)) = &kind
        && kind == OUTBOX_KIND
    {
        for field in given {
            let message =
                "is not for a source of kind \"outbox\": nobody calls it, its events are published";
            fields.problem(field, *line, "not_for_outbox", message);
        }
    }
    if let (Some((line, kind)), true) = (&kind, has_scheme)
        && hookstead_signing::builtin(kind).is_some()
    {
        let message =
            format!("\"{kind}\" is built in; a scheme of your own needs a kind of its own");
        fields.problem("kind", *line, "kind_is_built_in", message);
    }
    (value(kind), value(scheme))
}

fn is_kind(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    starts && text.len() <= 64 && text.bytes().all(allowed)
}

fn secret(fields: &mut Fields<'_, '_>, is_outbox: bool) -> Option<SecretRef> {
    if !is_outbox && !fields.has("secret") {
        let message = "a source needs a secret: \"dev\", \"env:NAME\" or \"file:PATH\"";
        fields.missing("secret", message);
    }
    value(fields.parse("secret", "invalid_secret", secret_ref))
}

/// The text is never quoted: it may be a secret pasted in the wrong place.
fn secret_ref(text: &str) -> Result<SecretRef, String> {
    if text.chars().count() > MAX_REFERENCE_CHARS {
        return Err(format!("is at most {MAX_REFERENCE_CHARS} characters"));
    }
    match text.split_once(':') {
        None if text == "dev" => Ok(SecretRef::Dev),
        Some(("env", name)) if is_variable(name) => Ok(SecretRef::Env(name.to_owned())),
        Some(("file", path)) if !path.trim().is_empty() && !leaves(path) => {
            Ok(SecretRef::File(path.to_owned()))
        }
        _ => Err(
            "must be \"dev\", \"env:NAME\" or \"file:PATH\" (a path below the manifest's folder, or from the root); a secret itself never stands in the manifest"
                .to_owned(),
        ),
    }
}

fn is_variable(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Whether a relative path climbs out of its folder.
fn leaves(path: &str) -> bool {
    Path::new(path)
        .components()
        .any(|part| part == Component::ParentDir)
}

fn public_url(text: &str) -> Result<String, String> {
    let url = url::Url::parse(text).map_err(|error| format!("is no URL: {error}"))?;
    // The parser would also take blanks around it and another case, which nobody registers.
    let is_web = text.starts_with("http://") || text.starts_with("https://");
    if !is_web || url.host_str().is_none() || text.chars().count() > MAX_REFERENCE_CHARS {
        return Err("must be an http or https URL, as it is registered at the provider".to_owned());
    }
    // Kept as written: schemes that sign the URL sign these very characters.
    Ok(text.to_owned())
}

fn dedupe(text: &str) -> Result<String, String> {
    match text.parse::<hookstead_receiver::DedupeRule>() {
        Ok(_) if text.chars().count() <= MAX_DEDUPE_CHARS => Ok(text.to_owned()),
        Ok(_) => Err(format!("is at most {MAX_DEDUPE_CHARS} characters")),
        Err(error) => Err(error.to_string()),
    }
}

pub(super) fn patterns(fields: &mut Fields<'_, '_>, field: &'static str) -> Vec<EventTypePattern> {
    let patterns = fields.parse_all(field, "invalid_pattern", |text| {
        text.parse::<EventTypePattern>()
            .map_err(|error| error.to_string())
    });
    if patterns.len() > MAX_PATTERNS {
        let line = fields.line();
        fields.problem(
            field,
            line,
            "out_of_range",
            format!("holds at most {MAX_PATTERNS}"),
        );
    }
    patterns
}

/// A text of 1 to `max` characters.
pub(super) fn short(max: usize) -> impl FnOnce(&str) -> Result<String, String> {
    move |text| {
        let fits = !text.trim().is_empty() && text.chars().count() <= max;
        fits.then(|| text.to_owned())
            .ok_or_else(|| format!("is 1 to {max} characters"))
    }
}
