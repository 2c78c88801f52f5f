//! Names of sources, as they stand in the webhook URL.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest name. It stands in every request's path and in metric labels.
const MAX_LEN: usize = 64;

/// The name of a source: 1 to 64 of `a`–`z`, `0`–`9`, `-` and `_`, starting
/// with a letter or a digit. Safe in a URL path without escaping.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SourceName(String);

/// A text that cannot be the name of a source.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a source name is 1 to 64 of a-z, 0-9, '-' and '_', and starts with a letter or a digit")]
pub struct InvalidSourceName;

impl SourceName {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SourceName {
    type Err = InvalidSourceName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let first_is_word =
            text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let all_allowed = text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if first_is_word && all_allowed && text.len() <= MAX_LEN {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSourceName)
        }
    }
}

impl TryFrom<String> for SourceName {
    type Error = InvalidSourceName;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<SourceName> for String {
    fn from(name: SourceName) -> Self {
        name.0
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_safe_in_a_path() {
        for good in ["stripe", "stripe-main", "9lives", "a_b", &"x".repeat(64)] {
            assert_eq!(good.parse::<SourceName>().unwrap().as_str(), good);
        }
        for bad in [
            "",
            "-a",
            "_a",
            "Stripe",
            "a/b",
            "a b",
            "a.b",
            "é",
            &"x".repeat(65),
        ] {
            assert_eq!(bad.parse::<SourceName>(), Err(InvalidSourceName), "{bad}");
        }
    }
}
