//! A source's own rule for the dedupe key.

use std::str::FromStr;

use hookstead_domain::EventId;
use hookstead_signing::{Extracted, Location, Request, Scheme, ValueRule, Verified};
use sha2::{Digest, Sha256};

/// What makes two requests of one source the same event.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum DedupeRule {
    /// What the kind says: the provider's id, else the signed text where it carries a time.
    #[default]
    OfKind,
    /// The value at this place of the request; where it is missing, as the kind says.
    At(Location),
    /// Nothing: every arrival is its own event.
    EveryArrival,
    /// Equal bytes. Two genuine events with equal bodies then become one.
    EqualBody,
}

/// A text that is no dedupe rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a dedupe rule is every-arrival, equal-body, or a place such as header:NAME or body:$.path"
)]
pub struct InvalidDedupeRule;

impl FromStr for DedupeRule {
    type Err = InvalidDedupeRule;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "every-arrival" => Ok(Self::EveryArrival),
            "equal-body" => Ok(Self::EqualBody),
            place => place.parse().map(Self::At).map_err(|_| InvalidDedupeRule),
        }
    }
}

impl DedupeRule {
    /// Writes a place into the scheme, which then finds the key there.
    pub(crate) fn apply_to(&self, scheme: &mut Scheme) {
        if let Self::At(place) = self {
            scheme.event.dedupe = Some(ValueRule::At(place.clone()));
        }
    }

    /// The key of a verified request. Never blank.
    pub(crate) fn key(
        &self,
        scheme: &Scheme,
        request: &Request<'_>,
        verified: &Verified,
        extracted: &Extracted,
        event_id: EventId,
    ) -> String {
        let key = match self {
            Self::EveryArrival => None,
            Self::EqualBody => Some(format!("body:{}", sha256_hex(request.body))),
            Self::OfKind | Self::At(_) => {
                hookstead_signing::dedupe_key(scheme, request, verified, extracted)
            }
        };
        key.filter(|key| !key.trim().is_empty())
            .map_or_else(|| format!("arrival:{event_id}"), bounded)
    }
}

/// Longest key that is stored as it is, in characters. Longer ones would not fit
/// an index entry and are stored as their hash.
const MAX_CHARS: usize = 512;

/// Makes any text fit the key column, which holds no NUL.
fn bounded(key: String) -> String {
    if key.chars().count() > MAX_CHARS || key.contains('\0') {
        format!("sha256:{}", sha256_hex(key.as_bytes()))
    } else {
        key
    }
}

fn sha256_hex(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_do_not_fit_become_their_hash_and_stay_distinct() {
        assert_eq!(bounded("evt_1".to_owned()), "evt_1");
        let long = bounded("é".repeat(513));
        assert!(long.starts_with("sha256:"));
        assert_ne!(long, bounded("é".repeat(514)));
        assert_ne!(bounded("a\0b".to_owned()), bounded("ab".to_owned()));
        assert_eq!(bounded("é".repeat(512)), "é".repeat(512));
    }

    #[test]
    fn rules_are_words_or_places() {
        assert_eq!("every-arrival".parse(), Ok(DedupeRule::EveryArrival));
        assert_eq!("equal-body".parse(), Ok(DedupeRule::EqualBody));
        assert!(matches!("header:X-Id".parse(), Ok(DedupeRule::At(_))));
        assert!(matches!("body:$.data.id".parse(), Ok(DedupeRule::At(_))));
        for bad in ["", "none", "sha", "header:", "body:data.id"] {
            assert_eq!(bad.parse::<DedupeRule>(), Err(InvalidDedupeRule), "{bad}");
        }
    }
}
