//! How the sink answers.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Serialize, Serializer};

/// Longest pause: an hour is beyond every timeout of an attempt.
const MAX_SLOW_MS: u64 = 3_600_000;

/// How the sink answers requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mode {
    /// 200 at once.
    Ok,
    /// 200 after this time.
    Slow(Duration),
    /// This status, 200 to 599, at once.
    Status(u16),
    /// The connection is reset once the request was read.
    Reset,
    /// 200 with a body of [`HUGE_BYTES`](super::HUGE_BYTES) and no length.
    Huge,
    /// No answer, for as long as the caller waits.
    Hang,
    /// This share of the requests, 0 to 1, is answered with 503 and the others with 200.
    Flaky(f64),
}

/// A text that names no mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a mode is ok, slow=MS, status=N (200 to 599), reset, huge, hang, or flaky=P (a share from 0 to 1)"
)]
pub struct UnknownMode;

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let (word, value) = match text.split_once('=') {
            Some((word, value)) => (word, Some(value)),
            None => (text, None),
        };
        match (word, value) {
            ("ok", None) => Some(Self::Ok),
            ("reset", None) => Some(Self::Reset),
            ("huge", None) => Some(Self::Huge),
            ("hang", None) => Some(Self::Hang),
            ("slow", Some(value)) => slow(value),
            ("status", Some(value)) => status(value),
            ("flaky", Some(value)) => flaky(value),
            _ => None,
        }
        .ok_or(UnknownMode)
    }
}

fn slow(value: &str) -> Option<Mode> {
    let ms: u64 = value.parse().ok()?;
    (ms <= MAX_SLOW_MS).then_some(Mode::Slow(Duration::from_millis(ms)))
}

fn status(value: &str) -> Option<Mode> {
    let status: u16 = value.parse().ok()?;
    // Below 200 an answer is not the last one, and HTTP goes on waiting.
    (200..=599)
        .contains(&status)
        .then_some(Mode::Status(status))
}

fn flaky(value: &str) -> Option<Mode> {
    let share: f64 = value.parse().ok()?;
    (0.0..=1.0).contains(&share).then_some(Mode::Flaky(share))
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Slow(pause) => write!(f, "slow={}", pause.as_millis()),
            Self::Status(status) => write!(f, "status={status}"),
            Self::Reset => f.write_str("reset"),
            Self::Huge => f.write_str("huge"),
            Self::Hang => f.write_str("hang"),
            Self::Flaky(share) => write!(f, "flaky={share}"),
        }
    }
}

impl Serialize for Mode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_reads_what_it_prints() {
        for text in [
            "ok",
            "slow=250",
            "status=503",
            "reset",
            "huge",
            "hang",
            "flaky=0.25",
        ] {
            assert_eq!(text.parse::<Mode>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_words_are_refused() {
        for text in [
            "",
            "OK",
            "ok=1",
            "slow",
            "slow=-1",
            "slow=3600001",
            "status=99",
            "status=199",
            "status=600",
            "flaky",
            "flaky=1.5",
            "flaky=NaN",
            "reset=1",
            "sloww=1",
        ] {
            assert_eq!(text.parse::<Mode>(), Err(UnknownMode), "{text}");
        }
    }
}
