//! Reading single values out of JSON text without building a tree.
//!
//! Skipped values are scanned without recursion, so depth costs nothing; numbers keep the
//! digits they were sent with; of repeated keys the last one counts.

mod path;

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub(crate) use path::Step;
pub use path::{JsonPath, JsonPathError};

/// Most values a `[*]` path yields: no provider sends larger batches than 1,000.
pub(crate) const MAX_MATCHES: usize = 10_000;

/// A path still to be walked, with the slot its value goes to.
#[derive(Clone, Copy)]
struct Want<'p> {
    slot: usize,
    steps: &'p [Step],
}

/// Finds the values of several paths in one pass over `text`.
///
/// All slots are `None` when the text is not one complete JSON value.
pub(crate) fn pick<'t>(text: &'t str, paths: &[&JsonPath]) -> Vec<Option<&'t RawValue>> {
    let mut found = vec![None; paths.len()];
    let wants: Vec<_> = paths
        .iter()
        .enumerate()
        .map(|(slot, path)| Want {
            slot,
            steps: path.steps(),
        })
        .collect();
    if walk(text, &wants, &mut found).is_err() {
        found.fill(None);
    }
    found
}

/// The value at one path.
pub(crate) fn pick_one<'t>(text: &'t str, path: &JsonPath) -> Option<&'t RawValue> {
    pick(text, &[path]).pop().flatten()
}

/// Every value a path with `[*]` matches, in document order. Elements without the rest of the
/// path are `None`, so the caller can insist on all of them.
pub(crate) fn pick_each<'t>(text: &'t str, path: &JsonPath) -> Vec<Option<&'t RawValue>> {
    let Some(at) = path.steps().iter().position(|step| *step == Step::Each) else {
        return vec![pick_one(text, path)];
    };
    let head = JsonPath {
        text: String::new(),
        steps: path.steps()[..at].to_vec(),
    };
    let tail = JsonPath {
        text: String::new(),
        steps: path.steps()[at + 1..].to_vec(),
    };
    let array = pick_one(text, &head).map(RawValue::get).unwrap_or_default();
    let elements: Vec<&RawValue> = serde_json::from_str(array).unwrap_or_default();
    let mut all = Vec::new();
    for element in elements {
        all.extend(pick_each(element.get(), &tail));
        if all.len() > MAX_MATCHES {
            return Vec::new();
        }
    }
    all
}

/// The first key of the top-level object that is not `known`.
pub(crate) fn other_key(text: &str, known: &str) -> Option<String> {
    struct Keys<'k>(&'k str);
    impl<'de> Visitor<'de> for Keys<'_> {
        type Value = Option<String>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some((key, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                if key != self.0 && found.is_none() {
                    found = Some(key);
                }
            }
            Ok(found)
        }
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let found = json.deserialize_map(Keys(known)).ok()?;
    json.end().ok()?;
    found
}

fn walk<'t>(
    text: &'t str,
    wants: &[Want<'_>],
    found: &mut [Option<&'t RawValue>],
) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    if wants.iter().any(|want| want.steps.is_empty()) {
        let whole = <&RawValue>::deserialize(&mut json)?;
        json.end()?;
        return enter(whole, wants, found);
    }
    let walk = Walk { wants, found };
    match text.bytes().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => (&mut json).deserialize_map(walk)?,
        Some(b'[') => (&mut json).deserialize_seq(walk)?,
        _ => {
            IgnoredAny::deserialize(&mut json)?;
        }
    }
    json.end()
}

/// Stores `raw` for paths that end here and walks on into it for longer ones.
fn enter<'t>(
    raw: &'t RawValue,
    wants: &[Want<'_>],
    found: &mut [Option<&'t RawValue>],
) -> serde_json::Result<()> {
    for want in wants {
        // A repeated key replaces everything found under its first appearance.
        found[want.slot] = want.steps.is_empty().then_some(raw);
    }
    let mut further = wants.to_vec();
    further.retain(|want| !want.steps.is_empty());
    if further.is_empty() {
        return Ok(());
    }
    walk(raw.get(), &further, found)
}

/// The wants whose first step matches, without that step.
fn following<'p>(wants: &[Want<'p>], matches: impl Fn(&Step) -> bool) -> Vec<Want<'p>> {
    let mut inner = Vec::new();
    for want in wants {
        if let Some((first, steps)) = want.steps.split_first()
            && matches(first)
        {
            let slot = want.slot;
            inner.push(Want { slot, steps });
        }
    }
    inner
}

struct Walk<'w, 'p, 't> {
    wants: &'w [Want<'p>],
    found: &'w mut [Option<&'t RawValue>],
}

impl<'t> Visitor<'t> for Walk<'_, '_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            let inner = following(
                self.wants,
                |step| matches!(step, Step::Key(wanted) if *wanted == *key),
            );
            if inner.is_empty() {
                map.next_value::<IgnoredAny>()?;
            } else {
                let raw = map.next_value()?;
                enter(raw, &inner, self.found).map_err(serde::de::Error::custom)?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'t>>(self, mut seq: A) -> Result<(), A::Error> {
        for at in 0.. {
            let inner = following(
                self.wants,
                |step| matches!(step, Step::Index(wanted) if *wanted == at),
            );
            if inner.is_empty() {
                if seq.next_element::<IgnoredAny>()?.is_none() {
                    break;
                }
                continue;
            }
            let Some(raw) = seq.next_element()? else {
                break;
            };
            enter(raw, &inner, self.found).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

/// Reads a key without copying it where it holds no escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;
    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }
    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }
    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The text a scalar stands for: strings unescaped, numbers with their own digits.
pub(crate) fn scalar(raw: &RawValue) -> Option<String> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'"' => serde_json::from_str(text).ok(),
        b'-' | b'0'..=b'9' | b't' | b'f' => Some(text.to_owned()),
        _ => None,
    }
}

/// The text of a value that says something: no booleans, no blanks.
pub(crate) fn word(raw: &RawValue) -> Option<String> {
    if matches!(raw.get(), "true" | "false") {
        return None;
    }
    scalar(raw).filter(|text| !text.trim().is_empty())
}

/// The text of a value that names one thing: a [`word`] other than a bare zero.
pub(crate) fn name(raw: &RawValue) -> Option<String> {
    word(raw).filter(|_| raw.get() != "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(text: &str, path: &str) -> Option<String> {
        let path: JsonPath = path.parse().unwrap();
        pick_one(text, &path).map(|raw| raw.get().to_owned())
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        assert_eq!(at(r#"{"a":1,"a":2}"#, "$.a").as_deref(), Some("2"));
        assert_eq!(at(r#"{"a":{"b":1},"a":{}}"#, "$.a.b"), None);
    }

    #[test]
    fn numbers_keep_their_digits() {
        let text = r#"{"id":12345678901234567890123.10}"#;
        assert_eq!(
            at(text, "$.id").as_deref(),
            Some("12345678901234567890123.10")
        );
    }

    #[test]
    fn text_that_is_not_one_json_value_gives_nothing() {
        for text in [r#"{"id":"a""#, r#"{"id":"a"} x"#, "", "nope", "[1,"] {
            assert_eq!(at(text, "$.id"), None, "{text}");
        }
    }

    #[test]
    fn five_thousand_levels_are_only_skipped() {
        let deep = format!(
            r#"{{"id":"x","deep":{}{}}}"#,
            "[".repeat(5_000),
            "]".repeat(5_000)
        );
        assert_eq!(at(&deep, "$.id").as_deref(), Some("\"x\""));
        let bare = "[".repeat(5_000);
        assert_eq!(at(&bare, "$[0][0]"), None);
    }

    #[test]
    fn one_pass_serves_a_path_and_a_longer_one() {
        let text = r#"{"event":{"type":"t","id":7}}"#;
        let paths: Vec<JsonPath> = ["$.event", "$.event.type", "$.event.id"]
            .map(|path| path.parse().unwrap())
            .into();
        let found = pick(text, &paths.iter().collect::<Vec<_>>());
        let found: Vec<_> = found.into_iter().map(|raw| raw.unwrap().get()).collect();
        assert_eq!(found, [r#"{"type":"t","id":7}"#, "\"t\"", "7"]);
    }

    #[test]
    fn every_element_is_reported_even_without_the_value() {
        let path: JsonPath = "$.value[*].id".parse().unwrap();
        let found = pick_each(r#"{"value":[{"id":1},{},{"id":3}]}"#, &path);
        assert_eq!(found.len(), 3);
        assert!(found[1].is_none());
    }

    proptest! {
        #[test]
        fn picking_agrees_with_a_parsed_tree(keys in prop::collection::vec("[a-c]{1,2}", 1..6), value in any::<i64>()) {
            let body: Vec<_> = keys.iter().map(|key| format!("\"{key}\": {{\"v\": {value}}}")).collect();
            let text = format!("{{{}}}", body.join(","));
            let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
            for key in &keys {
                prop_assert_eq!(at(&text, &format!("$.{key}.v")).unwrap(), tree[key]["v"].to_string());
            }
        }

        #[test]
        fn any_text_is_survived(text in ".{0,200}", path in "[$.\\[\\]a-z0-9*\"]{0,20}") {
            if let Ok(path) = path.parse::<JsonPath>() {
                pick_one(&text, &path);
                pick_each(&text, &path);
            }
        }
    }
}
