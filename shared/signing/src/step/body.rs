//! Other writings of the same body that some senders sign.

use std::fmt::Write as _;

/// Every character outside ASCII as a lower-case `\uXXXX` escape. Bodies that are not UTF-8 stay
/// as they are.
pub(crate) fn ascii(body: &[u8]) -> Vec<u8> {
    written(body, '\x7f', false)
}

/// Like [`ascii`], with delete escaped too, and slashes that no backslash precedes as `\/`.
pub(crate) fn escaped(body: &[u8]) -> Vec<u8> {
    written(body, '\x7e', true)
}

fn written(body: &[u8], last_plain: char, slashes: bool) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(body) else {
        return body.to_vec();
    };
    let mut written = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if slashes && character == '/' && !written.ends_with('\\') {
            written.push_str("\\/");
        } else if character <= last_plain {
            written.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(written, "\\u{unit:04x}").expect("writing to a String never fails");
            }
        }
    }
    written.into_bytes()
}

/// Whole numbers of `"weight":` members with `.0` behind them, and without blanks behind that.
pub(crate) fn weight_decimals(body: &[u8]) -> Vec<u8> {
    const KEY: &[u8] = b"\"weight\":";
    let mut written = Vec::with_capacity(body.len() + 8);
    let mut rest = body;
    while let Some(at) = rest.windows(KEY.len()).position(|window| window == KEY) {
        let digits = skip(rest, at + KEY.len(), u8::is_ascii_whitespace);
        let end = skip(rest, digits, u8::is_ascii_digit);
        let next = skip(rest, end, u8::is_ascii_whitespace);
        written.extend_from_slice(&rest[..end]);
        rest = &rest[end..];
        if end > digits && matches!(rest.get(next - end), Some(b',' | b'}')) {
            written.extend_from_slice(b".0");
            rest = &rest[next - end..];
        }
    }
    written.extend_from_slice(rest);
    written
}

/// The first place from `start` on whose byte is not one of `those`.
fn skip(text: &[u8], start: usize, those: fn(&u8) -> bool) -> usize {
    let other = text[start..].iter().position(|byte| !those(byte));
    other.map_or(text.len(), |length| start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_outside_ascii_and_slashes_become_escapes() {
        let escapes = escaped("é🚀a\x7f".as_bytes());
        assert_eq!(escapes, br"\u00e9\ud83d\ude80a\u007f");
        assert_eq!(escaped(br"a/b\/c"), br"a\/b\/c");
        assert_eq!(ascii("é/\x7f".as_bytes()), b"\\u00e9/\x7f");
        assert_eq!(escaped(&[0xff, b'a']), [0xff, b'a']);
    }

    #[test]
    fn only_whole_weights_gain_a_decimal() {
        let body =
            br#"{"weight": 12,"a":{"weight":3.5,"weight":7 },"weight":"x","weight" : 1,"weight":"#;
        let wanted = br#"{"weight": 12.0,"a":{"weight":3.5,"weight":7.0},"weight":"x","weight" : 1,"weight":"#;
        assert_eq!(weight_decimals(body), wanted);
    }
}
