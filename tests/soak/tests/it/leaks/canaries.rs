//! Words that are nobody else's, and finding them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// What all of them begin with: looked for once, in each of its forms. A multiple of
/// three bytes, so that it has one form in base64 for each place it can begin at.
const PREFIX: &str = "zqcanaryx";

/// How much around a find is shown.
const SHOWN_CHARS: usize = 160;

/// A new word: the prefix, what it stands for, and eight random digits.
pub(super) fn canary(name: &str) -> String {
    let mut random = [0; 4];
    getrandom::fill(&mut random).unwrap();
    format!("{PREFIX}{name}{}", hex::encode(random))
}

/// A Standard Webhooks secret whose key begins with a canary.
pub(super) fn secret(name: &str) -> String {
    let key = format!("{:x<32}", canary(name));
    format!("whsec_{}", STANDARD.encode(key))
}

/// Finds canaries as they are, in hexadecimal, and in base64.
pub(super) struct Finder {
    /// In lower case, where case does not matter.
    caseless: [String; 2],
    exact: Vec<String>,
}

impl Finder {
    pub(super) fn new() -> Self {
        Self {
            caseless: [PREFIX.to_owned(), hex::encode(PREFIX)],
            exact: (0..3).map(in_base64).collect(),
        }
    }

    /// The first canary in these bytes, with what stands around it.
    pub(super) fn find(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        let lower = text.to_ascii_lowercase();
        let caseless = self.caseless.iter().filter_map(|form| lower.find(form));
        let exact = self.exact.iter().filter_map(|form| text.find(form));
        let place = caseless.chain(exact).min()?;
        let from = text.floor_char_boundary(place.saturating_sub(SHOWN_CHARS));
        let to = text.ceil_char_boundary(place + SHOWN_CHARS);
        Some(text[from..to].to_owned())
    }
}

/// The letters of base64 that the prefix alone decides, where it begins `offset` bytes
/// after a multiple of three.
fn in_base64(offset: usize) -> String {
    let encoded = STANDARD.encode([&vec![0; offset], PREFIX.as_bytes()].concat());
    let bits = 8 * offset..8 * (offset + PREFIX.len());
    encoded[bits.start.div_ceil(6)..bits.end / 6].to_owned()
}

#[test]
fn canaries_are_found_in_every_form() {
    let finder = Finder::new();
    let word = canary("body");
    assert!(finder.find(format!("a {word} b").as_bytes()).is_some());
    assert!(finder.find(word.to_uppercase().as_bytes()).is_some());
    assert!(finder.find(hex::encode(&word).as_bytes()).is_some());
    for before in ["", "a", "ab", "abc", "ä"] {
        let encoded = STANDARD.encode(format!("{before}{word}"));
        assert!(finder.find(encoded.as_bytes()).is_some(), "{before}");
    }
    assert!(finder.find(secret("key").as_bytes()).is_some());
    assert!(finder.find(b"a canary, and no other").is_none());
}
