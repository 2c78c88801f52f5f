//! What a verified request says about its event.

use serde_json::value::RawValue;

use crate::Timestamp;
use crate::algorithm::sha256_hex;
use crate::json::{self, JsonPath};
use crate::location::{Location, ValueRule};
use crate::plan::{self, Data};
use crate::request::Request;
use crate::scheme::Scheme;
use crate::timestamp::guess;
use crate::verify::Verified;
use crate::view::View;

/// Facts of the event. Blank values are no values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Extracted {
    /// The provider's id of the event.
    pub event_id: Option<String>,
    /// Its type.
    pub event_type: Option<String>,
    /// When it happened.
    pub occurred_at: Option<Timestamp>,
}

/// Reads the event's id, type and time where the scheme says they are.
#[must_use]
pub fn extract(scheme: &Scheme, request: &Request<'_>, verified: &Verified) -> Extracted {
    let view = view(scheme, request, verified);
    let rules = [
        scheme.event.id.as_ref(),
        scheme.event.event_type.as_ref(),
        scheme.event.time.as_ref(),
    ];
    // Plain body paths are read in one pass, the rest one by one.
    let paths: Vec<Option<&JsonPath>> = rules
        .iter()
        .map(|rule| match rule {
            Some(ValueRule::At(Location::Body(path))) => Some(path),
            _ => None,
        })
        .collect();
    let mut picked = picked(&view, &paths);
    for (slot, rule) in rules.iter().enumerate() {
        if paths[slot].is_none() {
            picked[slot] = rule.and_then(|rule| value(&view, rule, reading(slot)));
        }
    }
    let [event_id, event_type, time] = picked;
    Extracted {
        event_id,
        event_type,
        occurred_at: time.and_then(|text| guess(&text)),
    }
}

/// How the id, the type and the time are read: zero is no id, but it may well be a type.
fn reading(slot: usize) -> fn(&RawValue) -> Option<String> {
    if slot == 0 { json::name } else { json::word }
}

fn picked(view: &View<'_>, paths: &[Option<&JsonPath>]) -> [Option<String>; 3] {
    let wanted: Vec<&JsonPath> = paths.iter().flatten().copied().collect();
    let mut values = [None, None, None];
    if wanted.is_empty() {
        return values;
    }
    let Some(text) = view.json() else {
        return values;
    };
    let mut found = json::pick(text, &wanted).into_iter();
    for (slot, path) in paths.iter().enumerate() {
        if path.is_some() {
            values[slot] = found.next().flatten().and_then(reading(slot));
        }
    }
    values
}

fn view<'a>(scheme: &'a Scheme, request: &'a Request<'a>, verified: &'a Verified) -> View<'a> {
    let mut view = View::new(scheme, request);
    view.claims = verified.claims.as_deref();
    view
}

/// The value a rule describes, unless it is blank.
fn value(
    view: &View<'_>,
    rule: &ValueRule,
    reading: fn(&RawValue) -> Option<String>,
) -> Option<String> {
    let one = |at: &Location| {
        let text = match at {
            Location::Body(path) => json::pick_one(view.json()?, path).and_then(reading),
            other => view.text(other),
        };
        text.filter(|text| !text.trim().is_empty())
    };
    match rule {
        ValueRule::At(at) => one(at),
        ValueRule::Join(rule) => {
            let mut parts = Vec::new();
            for part in &rule.parts {
                match one(&part.at) {
                    Some(text) => parts.push(text),
                    None if part.optional => {}
                    None => return None,
                }
            }
            (!parts.is_empty()).then(|| parts.join(&rule.join))
        }
    }
}

/// The key that tells two arrivals of one source apart, or `None` when every arrival is its own
/// event.
///
/// The provider's own id; the documented composite where an id alone is not enough, over the whole
/// batch where a request carries several events; else, where the signed text carries a time,
/// `signed:` and the SHA-256 of that text. Never a hash of the body alone: two events may well
/// have equal bodies.
#[must_use]
pub fn dedupe_key(
    scheme: &Scheme,
    request: &Request<'_>,
    verified: &Verified,
    extracted: &Extracted,
) -> Option<String> {
    let view = view(scheme, request, verified);
    let key = match &scheme.event.dedupe {
        Some(rule) => batch(&view, rule),
        None => extracted.event_id.clone(),
    };
    key.or_else(|| signed_text(&view, verified))
}

/// Longest key kept as it is; longer ones are hashed, so that an index entry stays small.
const MAX_KEY_BYTES: usize = 200;

fn batch(view: &View<'_>, rule: &ValueRule) -> Option<String> {
    let mut columns = Vec::new();
    let mut optional = Vec::new();
    let (join, parts): (&str, Vec<(&Location, bool)>) = match rule {
        ValueRule::At(at) => ("", vec![(at, false)]),
        ValueRule::Join(rule) => (
            &rule.join,
            rule.parts
                .iter()
                .map(|part| (&part.at, part.optional))
                .collect(),
        ),
    };
    for (at, may_miss) in parts {
        columns.push(all_values(view, at)?);
        optional.push(may_miss);
    }
    let rows = columns.iter().map(Vec::len).max()?;
    let mut keys = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut parts = Vec::new();
        for (column, may_miss) in columns.iter().zip(&optional) {
            // A value outside the batch belongs to every element of it.
            let value = if column.len() == 1 {
                column.first()
            } else {
                column.get(row)
            };
            match value.cloned().flatten() {
                Some(text) => parts.push(text),
                None if *may_miss => {}
                None => return None,
            }
        }
        keys.push(parts.join(join));
    }
    match &keys[..] {
        [] => None,
        [one] if one.len() <= MAX_KEY_BYTES => Some(one.clone()),
        many => Some(format!("batch:{}", sha256_hex(many.join("\n").as_bytes()))),
    }
}

fn all_values(view: &View<'_>, at: &Location) -> Option<Vec<Option<String>>> {
    let each = |text: &str, path: &JsonPath| -> Vec<Option<String>> {
        json::pick_each(text, path)
            .into_iter()
            .map(|raw| raw.and_then(json::name))
            .collect()
    };
    Some(match at {
        Location::Body(path) => each(view.json()?, path),
        Location::FormJson(field, path) => each(&view.text(&Location::Form(field.clone()))?, path),
        other => vec![view.text(other).filter(|text| !text.trim().is_empty())],
    })
}

fn signed_text(view: &View<'_>, verified: &Verified) -> Option<String> {
    if let Some(hash) = &verified.token_sha256 {
        return view
            .scheme
            .timestamp
            .is_some()
            .then(|| format!("signed:{hash}"));
    }
    if !view.scheme.signs_time() {
        return None;
    }
    let rule = view.scheme.signature.as_ref()?;
    let plan = plan::plan(view, rule).ok()?;
    let (group, content) = verified.matched;
    let group = plan.groups.get(group)?;
    if rule.content_without_timestamp.is_some() && group.ts.is_none() {
        return None;
    }
    let pieces: Option<Vec<&[u8]>> = group
        .contents
        .get(content)?
        .iter()
        .map(|bit| match &bit.data {
            Data::Bytes(bytes) => Some(&**bytes),
            Data::Secret(_) => None,
        })
        .collect();
    let hash = crate::algorithm::sha256(&pieces?);
    Some(format!("signed:{}", hex::encode(hash)))
}
