//! Signed texts made of form fields.

use std::collections::BTreeMap;

use crate::form;

/// Names and values, sorted by name, without anything between them.
pub(crate) fn sorted(body: &[u8]) -> Vec<u8> {
    let mut fields = form::fields(body);
    fields.sort_by(|(left, _), (right, _)| left.cmp(right));
    let mut text = Vec::with_capacity(body.len());
    for (name, value) in fields {
        text.extend_from_slice(&name);
        text.extend_from_slice(&value);
    }
    text
}

/// Like [`sorted`], with the distinct values of a repeated name in order, each after the name.
pub(crate) fn sorted_distinct(body: &[u8]) -> Vec<u8> {
    let mut fields = form::fields(body);
    fields.sort();
    fields.dedup();
    let mut text = Vec::with_capacity(body.len());
    for (name, value) in fields {
        text.extend_from_slice(&name);
        text.extend_from_slice(&value);
    }
    text
}

/// The fields as PHP's `serialize` writes a sorted map of strings, without the `left_out` ones.
pub(crate) fn php(body: &[u8], left_out: &[String]) -> Vec<u8> {
    let mut map = BTreeMap::new();
    for (name, value) in form::fields(body) {
        if !left_out.iter().any(|field| *field.as_bytes() == *name) {
            map.insert(name.into_owned(), value.into_owned());
        }
    }
    let mut text = format!("a:{}:{{", map.len()).into_bytes();
    for part in map.iter().flat_map(|(name, value)| [name, value]) {
        text.extend_from_slice(format!("s:{}:\"", part.len()).as_bytes());
        text.extend_from_slice(part);
        text.extend_from_slice(b"\";");
    }
    text.push(b'}');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_sorted_by_name() {
        assert_eq!(sorted(b"b=2&a=1"), b"a1b2");
        assert_eq!(sorted_distinct(b"D=5&D=1&D=5&A=x"), b"AxD1D5");
    }

    #[test]
    fn php_counts_bytes() {
        let left_out = ["p_signature".to_owned()];
        let body = "p_signature=x&b=caf%C3%A9&a=1".as_bytes();
        assert_eq!(
            php(body, &left_out),
            "a:2:{s:1:\"a\";s:1:\"1\";s:1:\"b\";s:5:\"café\";}".as_bytes()
        );
    }
}
