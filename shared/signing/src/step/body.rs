//! Other writings of the same body that some senders sign.

use std::fmt::Write as _;

/// Every character outside ASCII as a lower-case `\uXXXX` escape. Bodies that are not UTF-8 stay
/// as they are.
pub(crate) fn ascii(body: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(body) else {
        return body.to_vec();
    };
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if character.is_ascii() {
            escaped.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut [0; 2]) {
            write!(escaped, "\\u{unit:04x}").expect("writing to a String never fails");
        }
    }
    escaped.into_bytes()
}

/// Whole numbers of `"weight"` members with `.0` behind them.
pub(crate) fn weight_decimals(body: &[u8]) -> Vec<u8> {
    const KEY: &[u8] = b"\"weight\"";
    let mut written = Vec::with_capacity(body.len() + 8);
    let mut rest = body;
    while let Some(at) = rest.windows(KEY.len()).position(|window| window == KEY) {
        let value = at + KEY.len();
        let digits = rest[value..]
            .iter()
            .position(|byte| !(byte.is_ascii_whitespace() || *byte == b':'))
            .map_or(rest.len(), |skip| value + skip);
        let end = rest[digits..]
            .iter()
            .position(|byte| !byte.is_ascii_digit())
            .map_or(rest.len(), |length| digits + length);
        written.extend_from_slice(&rest[..end]);
        let follows = rest[end..].iter().find(|byte| !byte.is_ascii_whitespace());
        if end > digits && matches!(follows, Some(b',' | b'}')) {
            written.extend_from_slice(b".0");
        }
        rest = &rest[end..];
    }
    written.extend_from_slice(rest);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_outside_ascii_become_escapes() {
        assert_eq!(ascii("é🚀a".as_bytes()), br"\u00e9\ud83d\ude80a");
        assert_eq!(ascii(&[0xff, b'a']), [0xff, b'a']);
    }

    #[test]
    fn only_whole_weights_gain_a_decimal() {
        let body = br#"{"weight": 12,"a":{"weight":3.5,"weight":7 },"weight":"x","weight":"#;
        let wanted = br#"{"weight": 12.0,"a":{"weight":3.5,"weight":7.0 },"weight":"x","weight":"#;
        assert_eq!(weight_decimals(body), wanted);
    }
}
