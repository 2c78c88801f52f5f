//! Form bodies as JSON objects.

use percent_encoding::percent_decode;
use serde_json::{Map, Value};

use super::PayloadError;

/// `a=1&b=2&b=3` becomes `{"a": "1", "b": ["2", "3"]}`: values are text, and a key
/// that comes more than once has a list, in order.
pub(super) fn to_json(body: &[u8]) -> Result<String, PayloadError> {
    let mut object = Map::new();
    for pair in body
        .split(|byte| *byte == b'&')
        .filter(|pair| !pair.is_empty())
    {
        let end_of_key = pair.iter().position(|byte| *byte == b'=');
        let (key, value) = match end_of_key {
            Some(at) => (&pair[..at], &pair[at + 1..]),
            None => (pair, &[][..]),
        };
        let value = Value::String(decode(value)?);
        let key = decode(key)?;
        match object.get_mut(&key) {
            None => {
                object.insert(key, value);
            }
            Some(Value::Array(values)) => values.push(value),
            Some(first) => *first = Value::Array(vec![first.take(), value]),
        }
    }
    Ok(Value::Object(object).to_string())
}

fn decode(text: &[u8]) -> Result<String, PayloadError> {
    let spaced: Vec<u8> = text
        .iter()
        .map(|byte| if *byte == b'+' { b' ' } else { *byte })
        .collect();
    let decoded =
        String::from_utf8(percent_decode(&spaced).collect()).map_err(|_| PayloadError::NotUtf8)?;
    if decoded.contains('\0') {
        return Err(PayloadError::NulEscape);
    }
    Ok(decoded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_keys_become_lists_and_values_stay_text() {
        let json = to_json(b"a=1&b=2&b=3&b=x+y%2Bz&c&&d=%C3%A9").unwrap();
        let expected = r#"{"a":"1","b":["2","3","x y+z"],"c":"","d":"é"}"#;
        assert_eq!(json, expected);
    }

    #[test]
    fn what_text_cannot_hold_is_refused() {
        assert_eq!(to_json(b"a=%FF"), Err(PayloadError::NotUtf8));
        assert_eq!(to_json(b"%00=a"), Err(PayloadError::NulEscape));
        assert_eq!(to_json(b"a=\0"), Err(PayloadError::NulEscape));
    }
}
