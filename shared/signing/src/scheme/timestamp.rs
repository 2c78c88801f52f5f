//! The `[timestamp]` table.

use serde::{Deserialize, Serialize};

use crate::location::Location;
use crate::scheme::defaults::{is_default, is_false};

/// The signed time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TimestampRule {
    /// Where it is.
    pub from: Location,
    /// What it counts.
    #[serde(default)]
    pub unit: Unit,
    /// Largest accepted age.
    #[serde(default)]
    pub past_s: Limit,
    /// Largest accepted lead.
    #[serde(default)]
    pub future_s: Limit,
    /// Whether an age equal to the limit is already too old.
    #[serde(default, skip_serializing_if = "is_false")]
    pub past_exclusive: bool,
    /// Whether the number is signed in its shortest form, whatever was sent.
    #[serde(default, skip_serializing_if = "is_false")]
    pub canonical: bool,
    /// Whether it must be a JSON number; a text of digits is refused.
    #[serde(default, skip_serializing_if = "is_false")]
    pub number: bool,
    /// How a number may be written.
    #[serde(default, skip_serializing_if = "is_default")]
    pub form: NumberForm,
    /// Whether a request may come without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Earliest accepted value, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before_s: Option<i64>,
}

/// What a timestamp counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Seconds since 1970.
    #[default]
    UnixS,
    /// Milliseconds since 1970.
    UnixMs,
    /// ISO 8601 date and time; without a zone it means UTC.
    Iso8601,
}

/// How a timestamp that is a number may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NumberForm {
    /// With a plus, blanks around it or a fraction, as most official libraries read numbers.
    #[default]
    Loose,
    /// The same without a fraction.
    Whole,
    /// Digits alone, without leading zeros.
    Shortest,
}

/// Window used by custom schemes that name none: what most official libraries use.
pub const DEFAULT_TOLERANCE_S: u32 = 300;

/// A bound in seconds, or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// At most this many seconds.
    Seconds(u32),
    /// No bound.
    Unbounded(NoLimit),
}

/// The word `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoLimit {
    /// No bound.
    None,
}

impl Limit {
    pub(crate) fn seconds(self) -> Option<u32> {
        match self {
            Self::Seconds(seconds) => Some(seconds),
            Self::Unbounded(NoLimit::None) => None,
        }
    }
}

impl Default for Limit {
    fn default() -> Self {
        Self::Seconds(DEFAULT_TOLERANCE_S)
    }
}
