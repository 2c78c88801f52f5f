//! Form bodies and query strings, as bytes: signatures cover what was sent, UTF-8 or not.

use std::borrow::Cow;

use percent_encoding::percent_decode;

/// Most fields read from one form. PHP stops at 1,000; nobody signs more.
const MAX_FIELDS: usize = 1_000;

/// One decoded name and value.
pub(crate) type Field<'a> = (Cow<'a, [u8]>, Cow<'a, [u8]>);

/// Decodes `application/x-www-form-urlencoded` data in wire order.
pub(crate) fn fields(data: &[u8]) -> Vec<Field<'_>> {
    data.split(|byte| *byte == b'&')
        .filter(|field| !field.is_empty())
        .take(MAX_FIELDS)
        .map(|field| match field.iter().position(|byte| *byte == b'=') {
            Some(at) => (decode(&field[..at]), decode(&field[at + 1..])),
            None => (decode(field), Cow::Borrowed(&b""[..])),
        })
        .collect()
}

/// The last value under `name`, as text.
pub(crate) fn value(data: &[u8], name: &str) -> Option<String> {
    let fields = fields(data);
    let (_, value) = fields
        .into_iter()
        .rev()
        .find(|(field, _)| **field == *name.as_bytes())?;
    String::from_utf8(value.into_owned()).ok()
}

/// The first value under `name`, as text.
pub(crate) fn first(data: &[u8], name: &str) -> Option<String> {
    let mut fields = fields(data).into_iter();
    let (_, value) = fields.find(|(field, _)| **field == *name.as_bytes())?;
    String::from_utf8(value.into_owned()).ok()
}

fn decode(data: &[u8]) -> Cow<'_, [u8]> {
    if !data.iter().any(|byte| matches!(byte, b'+' | b'%')) {
        return Cow::Borrowed(data);
    }
    let spaced: Vec<u8> = data
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

/// A field of a `multipart/form-data` body, as text. Enough for the JSON field some senders wrap
/// their document in: the part's headers must name the field, the value ends before the boundary.
pub(crate) fn multipart_value<'a>(body: &'a [u8], name: &str) -> Option<&'a str> {
    let text = std::str::from_utf8(body).ok()?;
    let boundary = text.lines().next().filter(|line| line.starts_with("--"))?;
    for part in text.split(boundary).skip(1) {
        let Some((head, value)) = part
            .split_once("\r\n\r\n")
            .or_else(|| part.split_once("\n\n"))
        else {
            continue;
        };
        if head.contains(&format!("name=\"{name}\"")) {
            let value = value.strip_suffix('\n').unwrap_or(value);
            return Some(value.strip_suffix('\r').unwrap_or(value));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plus_is_a_blank_and_bytes_stay_bytes() {
        let fields = fields(b"a+b=1%2B1&c=%ff&d&&a=");
        let plain: Vec<_> = fields
            .iter()
            .map(|(n, v)| (n.to_vec(), v.to_vec()))
            .collect();
        let wanted: Vec<(Vec<u8>, Vec<u8>)> = vec![
            (b"a b".to_vec(), b"1+1".to_vec()),
            (b"c".to_vec(), vec![0xff]),
            (b"d".to_vec(), vec![]),
            (b"a".to_vec(), vec![]),
        ];
        assert_eq!(plain, wanted);
    }

    #[test]
    fn a_multipart_field_is_found() {
        let body =
            b"--xx\r\nContent-Disposition: form-data; name=\"json\"\r\n\r\n{\"a\":1}\r\n--xx--\r\n";
        assert_eq!(multipart_value(body, "json"), Some("{\"a\":1}"));
        assert_eq!(multipart_value(body, "other"), None);
        assert_eq!(multipart_value(b"{}", "json"), None);
    }
}
