//! Header bytes as text and back: each byte is the character of the same number.
//!
//! HTTP gives header bytes above 0x7F no meaning. Latin-1 keeps every one of
//! them, so what is stored can be turned back into what was sent.

/// The text of header bytes; no byte is lost.
pub(crate) fn decode(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| char::from(byte)).collect()
}

/// The bytes of such a text. A character that was never one byte is sent as UTF-8.
pub(crate) fn encode(text: &str) -> Vec<u8> {
    let single: Option<Vec<u8>> = text.chars().map(|c| u8::try_from(c).ok()).collect();
    single.unwrap_or_else(|| text.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_byte_comes_back(bytes: Vec<u8>) {
            prop_assert_eq!(super::encode(&super::decode(&bytes)), bytes);
        }
    }
}
