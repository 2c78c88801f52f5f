//! Putting values where a request carries them.

use serde_json::{Value, json};

use super::{SignError, Signed};
use crate::json::{JsonPath, Step as PathStep};
use crate::location::Location;

/// Puts `value` where a request carries it.
pub(super) fn place(
    draft: &mut Signed,
    at: &Location,
    each: Option<&JsonPath>,
    value: &str,
) -> Result<(), SignError> {
    match at {
        Location::Header(names) => draft.headers.push(names[0].replace('*', "1"), value),
        Location::Body(path) => match each {
            Some(each) => return in_each(draft, each, path, &json!(value)),
            None => return set_in_body(draft, path, json!(value)),
        },
        Location::Form(name) => {
            if !draft.body.is_empty() {
                draft.body.push(b'&');
            }
            draft.body.extend_from_slice(name.as_bytes());
            draft.body.push(b'=');
            draft.body.extend_from_slice(escaped(value).as_bytes());
        }
        Location::Query(name) => {
            let joint = if draft.url.contains('?') { '&' } else { '?' };
            draft.url.push(joint);
            draft.url.push_str(&format!("{name}={}", escaped(value)));
        }
        _ => {}
    }
    Ok(())
}

pub(super) fn escaped(value: &str) -> String {
    percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string()
}

pub(super) fn set_in_body(
    draft: &mut Signed,
    path: &JsonPath,
    value: Value,
) -> Result<(), SignError> {
    let mut json = body_json(draft)?;
    set(&mut json, path.steps(), value);
    draft.body = json.to_string().into_bytes();
    Ok(())
}

pub(super) fn body_json(draft: &Signed) -> Result<Value, SignError> {
    serde_json::from_slice(&draft.body).map_err(|_| SignError::Body("JSON"))
}

/// Sets `value`, making objects and lists on the way.
pub(crate) fn set(json: &mut Value, steps: &[PathStep], value: Value) {
    let Some((first, rest)) = steps.split_first() else {
        *json = value;
        return;
    };
    match first {
        PathStep::Key(key) => {
            if !json.is_object() {
                *json = json!({});
            }
            set(&mut json[key.as_str()], rest, value);
        }
        PathStep::Index(_) | PathStep::Each => {
            if json.as_array().is_none_or(Vec::is_empty) {
                *json = json!([null]);
            }
            set(&mut json[0], rest, value);
        }
    }
}

/// The elements that `path` with its `[*]` stands for.
pub(super) fn elements<'j>(json: &'j mut Value, steps: &[PathStep]) -> Vec<&'j mut Value> {
    let Some((first, rest)) = steps.split_first() else {
        return vec![json];
    };
    match first {
        PathStep::Key(key) => json
            .get_mut(key)
            .map_or_else(Vec::new, |inner| elements(inner, rest)),
        PathStep::Index(at) => json
            .get_mut(at)
            .map_or_else(Vec::new, |inner| elements(inner, rest)),
        PathStep::Each => json
            .as_array_mut()
            .into_iter()
            .flatten()
            .flat_map(|inner| elements(inner, rest))
            .collect(),
    }
}

pub(super) fn in_each(
    draft: &mut Signed,
    each: &JsonPath,
    path: &JsonPath,
    value: &Value,
) -> Result<(), SignError> {
    let mut json = body_json(draft)?;
    for element in elements(&mut json, each.steps()) {
        set(element, path.steps(), value.clone());
    }
    draft.body = json.to_string().into_bytes();
    Ok(())
}
