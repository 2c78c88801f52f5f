//! Patterns over event types, as used by allow lists and subscriptions.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Longest pattern and event type that is matched.
const MAX_LEN: usize = 256;

/// An event type, or a pattern in which each `*` stands for any run of
/// characters, none included: `invoice.paid`, `invoice.*`, `*`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EventTypePattern(String);

/// A text that cannot be a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("an event type pattern is 1 to 256 characters without control characters")]
pub struct InvalidPattern;

impl EventTypePattern {
    /// The pattern as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether `event_type` is covered by this pattern. Case matters.
    #[must_use]
    pub fn matches(&self, event_type: &str) -> bool {
        let Some((head, rest)) = self.0.split_once('*') else {
            return self.0 == event_type;
        };
        let Some(mut left) = event_type.strip_prefix(head) else {
            return false;
        };
        // The shortest match of each middle part leaves the most for what follows,
        // so no backtracking is needed; only the last part is bound to the end.
        let mut parts: Vec<&str> = rest.split('*').collect();
        let tail = parts.pop().unwrap_or("");
        for part in parts {
            match left.split_once(part) {
                Some((_, after)) => left = after,
                None => return false,
            }
        }
        left.ends_with(tail)
    }
}

impl FromStr for EventTypePattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fits = !text.is_empty() && text.len() <= MAX_LEN;
        if fits && !text.chars().any(char::is_control) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidPattern)
        }
    }
}

impl TryFrom<String> for EventTypePattern {
    type Error = InvalidPattern;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<EventTypePattern> for String {
    fn from(pattern: EventTypePattern) -> Self {
        pattern.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn matches(pattern: &str, event_type: &str) -> bool {
        pattern
            .parse::<EventTypePattern>()
            .unwrap()
            .matches(event_type)
    }

    #[test]
    fn a_star_stands_for_any_run_of_characters() {
        assert!(matches("invoice.paid", "invoice.paid"));
        assert!(!matches("invoice.paid", "invoice.paid.late"));
        assert!(matches("invoice.*", "invoice.paid"));
        assert!(matches("invoice.*", "invoice."));
        assert!(!matches("invoice.*", "invoice"));
        assert!(matches("*.deleted", "customer.subscription.deleted"));
        assert!(matches("a*b*c", "a-b-b-c"));
        assert!(!matches("a*b*c", "a-c-b"));
        assert!(!matches("ab*ba", "aba"));
        assert!(matches("*", ""));
        assert!(!matches("Invoice.*", "invoice.paid"));
    }

    /// The plain definition: try every split.
    fn reference(pattern: &str, text: &str) -> bool {
        match pattern.chars().next() {
            None => text.is_empty(),
            Some('*') => (0..=text.len()).any(|at| reference(&pattern[1..], &text[at..])),
            Some(c) => text.starts_with(c) && reference(&pattern[1..], &text[1..]),
        }
    }

    proptest! {
        #[test]
        fn matching_agrees_with_the_plain_definition(pattern in "[ab*]{1,8}", text in "[ab]{0,10}") {
            prop_assert_eq!(matches(&pattern, &text), reference(&pattern, &text));
        }
    }
}
