//! A checker for JSON that keeps nothing: one pass, no recursion, no allocation.

use super::numeric::fits_numeric;
use super::{MAX_DEPTH, PayloadError};

/// Checks that `text` is one JSON value that jsonb takes.
pub(super) fn check(text: &str) -> Result<(), PayloadError> {
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
    };
    let mut open = Nesting::default();
    loop {
        scanner.skip_space();
        match scanner.peek() {
            Some(b'{') => {
                open.enter(Kind::Object)?;
                scanner.at += 1;
                scanner.skip_space();
                if scanner.peek() != Some(b'}') {
                    scanner.key()?;
                    continue;
                }
            }
            Some(b'[') => {
                open.enter(Kind::Array)?;
                scanner.at += 1;
                scanner.skip_space();
                if scanner.peek() != Some(b']') {
                    continue;
                }
            }
            Some(b'"') => scanner.string()?,
            Some(b'-' | b'0'..=b'9') => scanner.number()?,
            Some(b't') => scanner.word(b"true")?,
            Some(b'f') => scanner.word(b"false")?,
            Some(b'n') => scanner.word(b"null")?,
            _ => return Err(PayloadError::NotJson),
        }
        if !scanner.after_value(&mut open)? {
            return Ok(());
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Array,
    Object,
}

/// What is open, the innermost in the lowest bit: 1 for an object.
#[derive(Default)]
struct Nesting {
    depth: u32,
    kinds: u128,
}

// The bits of `kinds` must hold every level.
const _: () = assert!(MAX_DEPTH <= u128::BITS);

impl Nesting {
    fn enter(&mut self, kind: Kind) -> Result<(), PayloadError> {
        if self.depth == MAX_DEPTH {
            return Err(PayloadError::TooDeep);
        }
        self.depth += 1;
        self.kinds = (self.kinds << 1) | u128::from(kind == Kind::Object);
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
        self.kinds >>= 1;
    }

    fn innermost(&self) -> Option<Kind> {
        match (self.depth, self.kinds & 1) {
            (0, _) => None,
            (_, 0) => Some(Kind::Array),
            _ => Some(Kind::Object),
        }
    }
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += 1;
        byte
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), PayloadError> {
        if self.take() == Some(byte) {
            Ok(())
        } else {
            Err(PayloadError::NotJson)
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), PayloadError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(PayloadError::NotJson)
        }
    }

    /// Closes what ends here. `true`: another value follows; `false`: all is read.
    fn after_value(&mut self, open: &mut Nesting) -> Result<bool, PayloadError> {
        loop {
            self.skip_space();
            match (open.innermost(), self.take()) {
                (None, None) => return Ok(false),
                (Some(Kind::Array), Some(b',')) => return Ok(true),
                (Some(Kind::Object), Some(b',')) => {
                    self.skip_space();
                    self.key()?;
                    return Ok(true);
                }
                (Some(Kind::Array), Some(b']')) | (Some(Kind::Object), Some(b'}')) => open.leave(),
                _ => return Err(PayloadError::NotJson),
            }
        }
    }

    /// A key and its colon.
    fn key(&mut self) -> Result<(), PayloadError> {
        if self.peek() != Some(b'"') {
            return Err(PayloadError::NotJson);
        }
        self.string()?;
        self.skip_space();
        self.expect(b':')
    }

    fn string(&mut self) -> Result<(), PayloadError> {
        self.at += 1;
        loop {
            match self.take() {
                Some(b'"') => return Ok(()),
                Some(b'\\') => self.escape()?,
                Some(0x20..) => {}
                _ => return Err(PayloadError::NotJson),
            }
        }
    }

    fn escape(&mut self) -> Result<(), PayloadError> {
        match self.take() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Ok(()),
            Some(b'u') => match self.code_unit()? {
                0 => Err(PayloadError::NulEscape),
                0xD800..=0xDBFF => self.low_surrogate(),
                0xDC00..=0xDFFF => Err(PayloadError::LoneSurrogate),
                _ => Ok(()),
            },
            _ => Err(PayloadError::NotJson),
        }
    }

    fn low_surrogate(&mut self) -> Result<(), PayloadError> {
        if !self.bytes[self.at..].starts_with(b"\\u") {
            return Err(PayloadError::LoneSurrogate);
        }
        self.at += 2;
        match self.code_unit()? {
            0xDC00..=0xDFFF => Ok(()),
            _ => Err(PayloadError::LoneSurrogate),
        }
    }

    fn code_unit(&mut self) -> Result<u32, PayloadError> {
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.take().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or(PayloadError::NotJson)?;
        }
        Ok(unit)
    }

    fn number(&mut self) -> Result<(), PayloadError> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let whole = self.digits()?;
        if whole.len() > 1 && whole.starts_with(b"0") {
            return Err(PayloadError::NotJson);
        }
        let mut fraction: &[u8] = &[];
        if self.peek() == Some(b'.') {
            self.at += 1;
            fraction = self.digits()?;
        }
        let mut exponent = 0;
        if let Some(b'e' | b'E') = self.peek() {
            self.at += 1;
            exponent = self.exponent()?;
        }
        if fits_numeric(whole, fraction, exponent) {
            Ok(())
        } else {
            Err(PayloadError::NumberOutOfRange)
        }
    }

    fn digits(&mut self) -> Result<&'a [u8], PayloadError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            return Err(PayloadError::NotJson);
        }
        Ok(&self.bytes[start..self.at])
    }

    fn exponent(&mut self) -> Result<i64, PayloadError> {
        let sign = match self.peek() {
            Some(b'-') => -1,
            _ => 1,
        };
        if let Some(b'-' | b'+') = self.peek() {
            self.at += 1;
        }
        let digits = self.digits()?;
        let value = digits.iter().fold(0i64, |value, digit| {
            value
                .saturating_mul(10)
                .saturating_add(i64::from(digit - b'0'))
        });
        Ok(sign * value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nested(open: &str, close: &str, depth: usize, inner: &str) -> String {
        format!("{}{inner}{}", open.repeat(depth), close.repeat(depth))
    }

    #[test]
    fn depth_127_passes_and_128_does_not_for_arrays_and_objects() {
        for (depth, expected) in [
            (127, Ok(())),
            (128, Err(PayloadError::TooDeep)),
            (129, Err(PayloadError::TooDeep)),
            (5000, Err(PayloadError::TooDeep)),
        ] {
            assert_eq!(
                check(&nested("[", "]", depth, "")),
                expected,
                "{depth} arrays"
            );
            assert_eq!(
                check(&nested("{\"a\":", "}", depth, "1")),
                expected,
                "{depth} objects"
            );
        }
    }

    #[test]
    fn strings_that_no_text_can_hold_are_named() {
        assert_eq!(check(r#""\u0000""#), Err(PayloadError::NulEscape));
        assert_eq!(check(r#"{"\u0000":1}"#), Err(PayloadError::NulEscape));
        assert_eq!(check(r#""\\u0000""#), Ok(()));
        assert_eq!(check(r#""\ud83d\ude0a""#), Ok(()));
        for lone in [
            r#""\ud83d""#,
            r#""\ude0a""#,
            r#""\ud83d\ud83d""#,
            r#""\ud83dx""#,
        ] {
            assert_eq!(check(lone), Err(PayloadError::LoneSurrogate), "{lone}");
        }
    }

    #[test]
    fn numbers_are_measured_after_their_exponent() {
        for fits in [
            "0",
            "-0",
            "1e400",
            "1e131071",
            "1e-16383",
            "0.1e-16382",
            "0e9999",
            "123.456E+2",
        ] {
            assert_eq!(check(fits), Ok(()), "{fits}");
        }
        for not in [
            "1e131072",
            "10e131071",
            "1e-16384",
            "0e-16384",
            "1e99999999999999999999",
        ] {
            assert_eq!(check(not), Err(PayloadError::NumberOutOfRange), "{not}");
        }
    }

    #[test]
    fn what_is_not_json_is_refused() {
        for not in [
            "",
            " ",
            "nul",
            "nulll",
            "01",
            "1.",
            ".1",
            "-",
            "+1",
            "1e",
            "[1,]",
            "[1 2]",
            "{\"a\"}",
            "{\"a\":}",
            "{a:1}",
            "{\"a\":1,}",
            "[",
            "]",
            "{]",
            "[}",
            "\"",
            "\"\\x\"",
            "\"\t\"",
            "1 2",
            "NaN",
            "\u{feff}1",
            "'a'",
            "\"\\u12\"",
            "[1]]",
        ] {
            assert_eq!(check(not), Err(PayloadError::NotJson), "{not:?}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_serde_json_on_what_is_json(text in r#"[\[\]{}:,"\\0-9eE.+\-a-ftrunls ]{0,24}"#) {
            let ours = check(&text);
            let is_json = serde_json::from_str::<&serde_json::value::RawValue>(&text).is_ok();
            match ours {
                Ok(()) => prop_assert!(is_json),
                Err(PayloadError::NotJson) => prop_assert!(!is_json),
                Err(_) => {}
            }
        }

        #[test]
        fn every_document_serde_json_writes_passes(text in any::<String>(), number: f64) {
            prop_assume!(!text.contains('\0'));
            let document = serde_json::json!({ "a": [text, number], "b": { "c": null } }).to_string();
            prop_assert_eq!(check(&document), Ok(()));
        }
    }
}
