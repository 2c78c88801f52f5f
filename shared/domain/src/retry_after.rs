//! How long an answer asks to be left alone: the header `Retry-After`.

use std::time::{Duration, SystemTime};

use crate::Timestamp;

/// The name of the header.
pub const RETRY_AFTER: &str = "retry-after";

/// Longest wait that an answer can ask for, in seconds: the longest of the default
/// schedule. A destination must not be able to park its deliveries for years.
pub const MAX_RETRY_AFTER_S: u64 = 86_400;

/// The wait that the values of `Retry-After` ask for, counted from `now`.
///
/// A value is a whole number of seconds or an HTTP date in any of its three forms.
/// Of several values the longest counts. `None`, which means the normal schedule:
/// there is no value, or every value is a past date or not one of these forms
/// (`-5`, `1e9`, `soon`). Never longer than [`MAX_RETRY_AFTER_S`].
pub fn retry_after<'a>(
    values: impl IntoIterator<Item = &'a str>,
    now: Timestamp,
) -> Option<Duration> {
    let waits = values
        .into_iter()
        .filter_map(|value| one(value.trim(), now));
    waits
        .max()
        .map(|wait| wait.min(Duration::from_secs(MAX_RETRY_AFTER_S)))
}

fn one(value: &str, now: Timestamp) -> Option<Duration> {
    date(value, now).or_else(|| {
        // Proxies join repeated headers with commas.
        let parts: Option<Vec<_>> = value.split(',').map(|part| seconds(part.trim())).collect();
        parts?.into_iter().max()
    })
}

fn seconds(text: &str) -> Option<Duration> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // Digits beyond 64 bits are a number all the same, and over the cap.
    digits.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

fn date(text: &str, now: Timestamp) -> Option<Duration> {
    let date = httpdate::parse_http_date(text).ok()?;
    let now = SystemTime::from(now);
    date.duration_since(now).ok().filter(|wait| !wait.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use time::macros::datetime;

    const NOW: Timestamp = datetime!(2026-02-03 04:05:06 UTC);

    fn wait_s(values: &[&str]) -> Option<u64> {
        retry_after(values.iter().copied(), NOW).map(|wait| wait.as_secs())
    }

    #[test]
    fn out_11_seconds_and_dates_ahead_are_honoured() {
        assert_eq!(wait_s(&["120"]), Some(120));
        assert_eq!(wait_s(&[" 0 "]), Some(0));
        assert_eq!(wait_s(&["Tue, 03 Feb 2026 04:07:06 GMT"]), Some(120));
        assert_eq!(wait_s(&["Tuesday, 03-Feb-26 04:07:06 GMT"]), Some(120));
        assert_eq!(wait_s(&["Tue Feb  3 04:07:06 2026"]), Some(120));
    }

    #[test]
    fn out_11_past_negative_and_garbage_values_ask_for_nothing() {
        for value in [
            "Tue, 03 Feb 2026 04:03:06 GMT",
            "Tue, 03 Feb 2026 04:05:06 GMT",
            "Tue, 31 Feb 2026 04:07:06 GMT",
            "-5",
            "+5",
            "abc",
            "1e9",
            "1.5",
            "",
            " ",
            ",",
            "12 0",
            "١٢",
        ] {
            assert_eq!(wait_s(&[value]), None, "{value:?}");
        }
        assert_eq!(wait_s(&[]), None);
    }

    #[test]
    fn out_11_large_values_are_capped() {
        let cap = Some(MAX_RETRY_AFTER_S);
        assert_eq!(wait_s(&["86401"]), cap);
        assert_eq!(wait_s(&["99999999999999999999"]), cap);
        assert_eq!(wait_s(&["Fri, 31 Dec 9999 23:59:59 GMT"]), cap);
    }

    #[test]
    fn out_11_of_several_values_the_longest_counts() {
        assert_eq!(wait_s(&["120", "300"]), Some(300));
        assert_eq!(wait_s(&["300, 120"]), Some(300));
        assert_eq!(wait_s(&["abc", "120"]), Some(120));
        assert_eq!(wait_s(&["120, abc"]), None);
    }

    proptest! {
        #[test]
        fn any_text_at_any_time_is_read_without_a_panic_and_within_the_cap(
            values in prop::collection::vec(
                prop_oneof![
                    "\\PC{0,40}",
                    "[0-9]{1,30}",
                    "[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
                ],
                0..4,
            ),
            unix in -60_000_000_000i64..250_000_000_000,
        ) {
            let now = Timestamp::from_unix_timestamp(unix).unwrap();
            let wait = retry_after(values.iter().map(String::as_str), now);
            prop_assert!(wait.unwrap_or_default() <= Duration::from_secs(MAX_RETRY_AFTER_S));
        }

        #[test]
        fn a_date_ahead_is_waited_for_to_the_second(ahead in 1u64..=MAX_RETRY_AFTER_S) {
            let date = SystemTime::from(NOW) + Duration::from_secs(ahead);
            prop_assert_eq!(wait_s(&[&httpdate::fmt_http_date(date)]), Some(ahead));
        }
    }
}
