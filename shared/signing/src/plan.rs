//! What has to match what: signatures beside the texts they may cover.

use std::borrow::Cow;

use crate::algorithm::{Algorithm, sha256_hex};
use crate::grammar::{self, Group};
use crate::json;
use crate::location::Location;
use crate::reason::Reason;
use crate::scheme::{SignatureRule, Step};
use crate::step;
use crate::template::{Piece, Template};
use crate::view::View;

/// The work a signature scheme leaves to the hash.
pub(crate) struct Plan<'a> {
    pub(crate) algorithm: Algorithm,
    /// Whether every group must match, or one is enough.
    pub(crate) all: bool,
    pub(crate) groups: Vec<PlanGroup<'a>>,
    /// A member of the secret that, where it is set, must equal this value.
    pub(crate) guard: Option<(&'static str, String)>,
}

/// Signatures, any of which may cover any of the contents.
#[derive(Default)]
pub(crate) struct PlanGroup<'a> {
    pub(crate) ts: Option<String>,
    pub(crate) signatures: Vec<Signature>,
    pub(crate) contents: Vec<Content<'a>>,
    /// The member of the secret that holds the key.
    pub(crate) member: Option<String>,
}

/// A signature as it was written.
pub(crate) struct Signature {
    pub(crate) text: String,
    /// Counts only for a secret whose `public_key` is this.
    pub(crate) owner: Option<String>,
}

impl From<String> for Signature {
    fn from(text: String) -> Self {
        Self { text, owner: None }
    }
}

/// A signed text, in pieces that need no copying.
pub(crate) type Content<'a> = Vec<Bit<'a>>;

/// A piece of a signed text.
pub(crate) struct Bit<'a> {
    pub(crate) name: Cow<'a, str>,
    pub(crate) data: Data<'a>,
}

/// What a piece holds.
pub(crate) enum Data<'a> {
    Bytes(Cow<'a, [u8]>),
    /// The secret, or one of its members.
    Secret(Option<&'a str>),
}

impl<'a> Bit<'a> {
    pub(crate) fn new(name: impl Into<Cow<'a, str>>, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self {
            name: name.into(),
            data: Data::Bytes(bytes.into()),
        }
    }
}

/// Works out what has to match. Reads no secret.
pub(crate) fn plan<'a>(view: &View<'a>, rule: &'a SignatureRule) -> Result<Plan<'a>, Reason> {
    let body = view.signed_body();
    if rule.refuse_empty_body && body.is_empty() {
        return Err(Reason::EmptyBody);
    }
    if rule.refuse_non_utf8_body && std::str::from_utf8(body).is_err() {
        return Err(Reason::MalformedBody);
    }
    let mut plan = Plan {
        algorithm: rule.algorithm,
        all: false,
        groups: Vec::new(),
        guard: None,
    };
    match rule.step {
        Some(Step::Twilio) => return step::twilio::plan(view, rule, plan),
        Some(Step::Braintree) => return step::braintree::plan(view, rule, plan),
        Some(Step::AwsSns) => return step::aws_sns::plan(view, rule, plan),
        Some(Step::Paypal) => plan.algorithm = step::paypal::algorithm(view)?,
        None => {}
    }
    if rule.each.is_some() {
        return each(view, rule, plan);
    }
    let mut missing = None;
    for (at, location) in rule.from.iter().enumerate() {
        match groups(view, rule, location) {
            Ok(found) => {
                let member = rule.keys.get(at).cloned();
                for group in found {
                    match covered(view, rule, group, member.clone()) {
                        Ok(group) => plan.groups.push(group),
                        Err(reason) => missing = missing.or(Some(reason)),
                    }
                }
            }
            Err(reason) => missing = missing.or(Some(reason)),
        }
    }
    if plan.groups.is_empty() {
        return Err(missing.unwrap_or(Reason::MissingSignature));
    }
    Ok(plan)
}

/// The signatures at one location.
pub(crate) fn groups(
    view: &View<'_>,
    rule: &SignatureRule,
    location: &Location,
) -> Result<Vec<Group>, Reason> {
    let ts_key = match view.scheme.timestamp.as_ref().map(|stamp| &stamp.from) {
        Some(Location::Signature(key)) => Some(key.as_str()),
        _ => None,
    };
    let values = view.texts(location);
    let values: Vec<_> = values.iter().map(|value| &**value).collect();
    grammar::read(rule, ts_key, &values)
}

/// Adds the texts that `group` may cover.
fn covered<'a>(
    view: &View<'a>,
    rule: &'a SignatureRule,
    group: Group,
    member: Option<String>,
) -> Result<PlanGroup<'a>, Reason> {
    let ts = timestamp(view, group.ts)?;
    let templates: Vec<_> = match (&ts, &rule.content_without_timestamp) {
        (None, Some(template)) => vec![template],
        _ => rule.content.iter().collect(),
    };
    let mut contents = Vec::with_capacity(templates.len());
    for (at, template) in templates.into_iter().enumerate() {
        // Further templates are other writings of the body; most bodies have none.
        if at == 0 || has_other_writing(template, view.signed_body()) {
            contents.push(render(view, template, ts.as_deref(), None)?);
        }
    }
    Ok(PlanGroup {
        ts,
        signatures: group.signatures.into_iter().map(Into::into).collect(),
        contents,
        member,
    })
}

fn has_other_writing(template: &Template, body: &[u8]) -> bool {
    let rewritten = |piece: &Piece| match piece {
        Piece::BodyEscaped => body.iter().any(|byte| *byte == b'/' || *byte >= 0x7f),
        Piece::BodyWeightDecimals => body.windows(8).any(|window| window == b"\"weight\""),
        _ => false,
    };
    let plain = |piece: &Piece| matches!(piece, Piece::BodyEscaped | Piece::BodyWeightDecimals);
    !template.pieces().iter().any(plain) || template.pieces().iter().any(rewritten)
}

/// The text of the timestamp as it is signed; `None` where the scheme or the request has none.
pub(crate) fn timestamp(
    view: &View<'_>,
    from_signature: Option<String>,
) -> Result<Option<String>, Reason> {
    let Some(rule) = &view.scheme.timestamp else {
        return Ok(None);
    };
    // A time inside the body that the text does not repeat is read after the signature, so that
    // no parsing precedes it.
    let in_body = matches!(rule.from, Location::Body(_)) && !repeats_time(view);
    if in_body || matches!(rule.from, Location::Claim(_)) {
        return Ok(None);
    }
    let text = match &rule.from {
        Location::Signature(_) => from_signature,
        // Two times have no one meaning.
        at if view.repeats(at) => return Err(Reason::MalformedTimestamp),
        at => view.text(at),
    };
    match text.filter(|text| !text.is_empty()) {
        Some(text) if !crate::timestamp::well_formed(rule.form, &text) => {
            Err(Reason::MalformedTimestamp)
        }
        Some(text) if rule.canonical => crate::timestamp::canonical(&text)
            .map(Some)
            .ok_or(Reason::MalformedTimestamp),
        Some(text) => Ok(Some(text)),
        None if rule.optional => Ok(None),
        None => Err(Reason::MissingTimestamp),
    }
}

fn repeats_time(view: &View<'_>) -> bool {
    let mut templates = view.scheme.signature.iter().flat_map(|rule| &rule.content);
    templates.any(|template| template.pieces().contains(&Piece::Ts))
}

/// One group for every element; all of them must match.
fn each<'a>(
    view: &View<'a>,
    rule: &'a SignatureRule,
    mut plan: Plan<'a>,
) -> Result<Plan<'a>, Reason> {
    let path = rule.each.as_ref().ok_or(Reason::MalformedBody)?;
    let text = view.json().ok_or(Reason::MalformedBody)?;
    let items = json::pick_each(text, path);
    if items.is_empty() {
        return Err(Reason::MissingSignature);
    }
    plan.all = true;
    for item in items {
        let item = item.ok_or(Reason::MissingSignature)?.get();
        let Some(Location::Body(path)) = rule.from.first() else {
            return Err(Reason::MissingSignature);
        };
        let signature = json::pick_one(item, path)
            .and_then(json::scalar)
            .filter(|text| !text.is_empty())
            .ok_or(Reason::MissingSignature)?;
        let mut contents = Vec::new();
        for template in &rule.content {
            contents.push(render(view, template, None, Some(item))?);
        }
        plan.groups.push(PlanGroup {
            signatures: vec![signature.into()],
            contents,
            ..PlanGroup::default()
        });
    }
    Ok(plan)
}

/// Writes the signed text. `item` is the element that paths start from.
pub(crate) fn render<'a>(
    view: &View<'a>,
    template: &'a Template,
    ts: Option<&str>,
    item: Option<&str>,
) -> Result<Content<'a>, Reason> {
    template
        .pieces()
        .iter()
        .map(|piece| bit(view, piece, ts, item))
        .collect()
}

fn bit<'a>(
    view: &View<'a>,
    piece: &'a Piece,
    ts: Option<&str>,
    item: Option<&str>,
) -> Result<Bit<'a>, Reason> {
    let body = view.signed_body();
    Ok(match piece {
        Piece::Text(text) => Bit::new("text", text.as_bytes()),
        Piece::Body => Bit::new("body", body),
        Piece::BodyEscaped => Bit::new("escaped body", step::body::escaped(body)),
        Piece::BodyWeightDecimals => Bit::new(
            "body with decimal weights",
            step::body::weight_decimals(body),
        ),
        Piece::BodySha256 => Bit::new("SHA-256 of body", sha256_hex(body).into_bytes()),
        Piece::BodyCrc32 => {
            let sum = crc32fast::hash(body).to_string();
            Bit::new("CRC-32 of body", sum.into_bytes())
        }
        Piece::Ts => {
            let ts = ts.ok_or(Reason::MissingTimestamp)?;
            Bit::new("timestamp", ts.as_bytes().to_vec())
        }
        Piece::Method => Bit::new("method", view.request.method.as_bytes()),
        Piece::Url => Bit::new("URL", view.request.url.as_bytes()),
        Piece::Secret(member) => Bit {
            name: "secret".into(),
            data: Data::Secret(member.as_deref()),
        },
        Piece::FormSorted => Bit::new("sorted form", step::form::sorted(body)),
        Piece::FormPhp => Bit::new("serialised form", step::form::php(body, &signed_in(view))),
        Piece::CanonicalRequest => {
            Bit::new("canonical request", step::contentful::canonical(view, ts)?)
        }
        Piece::Value { at, .. } if view.repeats(at) => {
            return Err(Reason::UnexpectedValue(at.to_string()));
        }
        Piece::Value { at, optional } => {
            let text = match (at, item) {
                (Location::Body(path), Some(item)) => {
                    json::pick_one(item, path).and_then(json::scalar)
                }
                (Location::Header(_), _) => view.header(at).map(str::to_owned),
                _ => view.text(at),
            };
            let text = match text.filter(|text| !text.is_empty()) {
                Some(text) => text,
                None if *optional => String::new(),
                None => return Err(Reason::MissingField(at.to_string())),
            };
            Bit::new(at.to_string(), text.into_bytes())
        }
    })
}

/// Names of the form fields that carry the signature itself.
fn signed_in(view: &View<'_>) -> Vec<String> {
    let from = view.scheme.signature.iter().flat_map(|rule| &rule.from);
    from.filter_map(|at| match at {
        Location::Form(name) => Some(name.clone()),
        _ => None,
    })
    .collect()
}
