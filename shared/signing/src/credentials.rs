//! Tokens and basic credentials as the request presents them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_PAD_INDIFFERENT;
use zeroize::Zeroizing;

use crate::json;
use crate::location::Location;
use crate::reason::Reason;
use crate::scheme::{BasicRule, TokenRule};
use crate::view::View;

/// Every token of the request; all of them must be the secret.
pub(crate) fn tokens(view: &View<'_>, rule: &TokenRule) -> Result<Vec<Zeroizing<String>>, Reason> {
    if let Some(path) = &rule.each {
        return of_each(view, rule, path);
    }
    for at in &rule.from {
        let values = view.texts(at);
        let Some(value) = values.first().filter(|value| !value.trim().is_empty()) else {
            continue;
        };
        if values.iter().any(|other| other != value) {
            return Err(Reason::MalformedSignature);
        }
        let token = match at {
            Location::Header(_) => without_word(value, &rule.prefix, false),
            _ => Some(&**value),
        };
        let token = token.ok_or(Reason::MalformedSignature)?;
        return Ok(vec![Zeroizing::new(token.to_owned())]);
    }
    Err(Reason::MissingSignature)
}

fn of_each(
    view: &View<'_>,
    rule: &TokenRule,
    path: &json::JsonPath,
) -> Result<Vec<Zeroizing<String>>, Reason> {
    let text = view.json().ok_or(Reason::MalformedBody)?;
    let Some(Location::Body(at)) = rule.from.first() else {
        return Err(Reason::MissingSignature);
    };
    let items = json::pick_each(text, path);
    if items.is_empty() {
        return Err(Reason::MissingSignature);
    }
    items
        .into_iter()
        .map(|item| {
            item.and_then(|item| json::pick_one(item.get(), at))
                .and_then(json::scalar)
                .filter(|token| !token.is_empty())
                .map(Zeroizing::new)
                .ok_or(Reason::MissingSignature)
        })
        .collect()
}

/// The credentials as `user:password`.
pub(crate) fn basic(view: &View<'_>, rule: &BasicRule) -> Result<Vec<Zeroizing<String>>, Reason> {
    let values = view.texts(&rule.from);
    let value = values
        .first()
        .filter(|value| !value.trim().is_empty())
        .ok_or(Reason::MissingSignature)?;
    if values.iter().any(|other| other != value) {
        return Err(Reason::MalformedSignature);
    }
    let decoded = without_word(value, "Basic ", rule.exact_word)
        .map(|encoded| {
            if rule.exact_word {
                encoded
            } else {
                encoded.trim()
            }
        })
        .and_then(|encoded| STANDARD_PAD_INDIFFERENT.decode(encoded).ok())
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or(Reason::MalformedSignature)?;
    Ok(vec![Zeroizing::new(decoded)])
}

/// The text behind `word`.
pub(crate) fn without_word<'v>(value: &'v str, word: &str, exact: bool) -> Option<&'v str> {
    let head = value.get(..word.len())?;
    let same = if exact {
        head == word
    } else {
        head.eq_ignore_ascii_case(word)
    };
    same.then(|| &value[word.len()..])
}
