//! Reading and judging timestamps.

use time::{Date, Month, OffsetDateTime};

use crate::Timestamp;
use crate::reason::Reason;
use crate::scheme::{NumberForm, TimestampRule, Unit};

const MS_PER_S: i128 = 1_000;

/// A point in time, in milliseconds since 1970. Wider than any clock, so that absurd values are
/// judged and not wrapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) ms: i128,
}

impl Stamp {
    pub(crate) fn read(unit: Unit, text: &str) -> Option<Self> {
        let ms = match unit {
            Unit::UnixS => i128::from(number(text)?) * MS_PER_S,
            Unit::UnixMs => i128::from(number(text)?),
            Unit::Iso8601 => iso8601_ns(text)?.div_euclid(1_000_000),
        };
        Some(Self { ms })
    }

    pub(crate) fn to_time(self) -> Option<Timestamp> {
        OffsetDateTime::from_unix_timestamp_nanos(self.ms * 1_000_000).ok()
    }
}

/// Digits alone: no sign, no blank, no fraction. Leading zeros are allowed.
fn digits(text: &str) -> Option<i64> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| text.parse().ok()).flatten()
}

/// A number as official libraries read one: blanks around it and a plus before it mean nothing,
/// a fraction is cut off.
fn number(text: &str) -> Option<i64> {
    let text = text.trim_ascii();
    let text = text.strip_prefix('+').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    digits(fraction)?;
    digits(whole)
}

/// Whether `text` is written the way `form` wants numbers.
pub(crate) fn well_formed(form: NumberForm, text: &str) -> bool {
    match form {
        NumberForm::Loose => true,
        NumberForm::Whole => !text.contains('.'),
        NumberForm::Shortest => digits(text).is_some_and(|number| number.to_string() == text),
    }
}

/// The shortest way to write the whole number in `text`.
pub(crate) fn canonical(text: &str) -> Option<String> {
    number(text).map(|number| number.to_string())
}

/// `YYYY-MM-DDThh:mm:ss` with any fraction; `Z`, an offset, or nothing (UTC) at the end.
fn iso8601_ns(text: &str) -> Option<i128> {
    let (date, rest) = text.split_at_checked(10)?;
    let rest = rest.strip_prefix(['T', 't', ' '])?;
    let (clock, rest) = rest.split_at_checked(8)?;
    let number = |text: &str| digits(text).and_then(|n| u16::try_from(n).ok());
    let part = |text: &str, from: usize, to: usize| number(text.get(from..to)?);
    let byte = |text: &str, at: usize, wanted: u8| text.as_bytes()[at] == wanted;
    if !(byte(date, 4, b'-') && byte(date, 7, b'-') && byte(clock, 2, b':') && byte(clock, 5, b':'))
    {
        return None;
    }
    let month = Month::try_from(u8::try_from(part(date, 5, 7)?).ok()?).ok()?;
    let day = u8::try_from(part(date, 8, 10)?).ok()?;
    let date = Date::from_calendar_date(part(date, 0, 4)?.into(), month, day).ok()?;
    let (hour, minute, second) = (part(clock, 0, 2)?, part(clock, 3, 5)?, part(clock, 6, 8)?);
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let (fraction_ns, zone) = fraction_ns(rest)?;
    let seconds = i128::from(date.midnight().assume_utc().unix_timestamp())
        + i128::from(hour) * 3_600
        + i128::from(minute) * 60
        + i128::from(second)
        - i128::from(offset_s(zone)?);
    Some(seconds * 1_000_000_000 + i128::from(fraction_ns))
}

fn fraction_ns(rest: &str) -> Option<(u32, &str)> {
    let Some(tail) = rest.strip_prefix(['.', ',']) else {
        return Some((0, rest));
    };
    let end = tail
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(tail.len());
    let (fraction, zone) = tail.split_at(end);
    if fraction.is_empty() {
        return None;
    }
    let nine: String = fraction
        .chars()
        .chain("000000000".chars())
        .take(9)
        .collect();
    Some((nine.parse().ok()?, zone))
}

fn offset_s(zone: &str) -> Option<i32> {
    if matches!(zone, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let tail = zone.strip_prefix(['+', '-'])?;
    let (hours, minutes) = match (tail.len(), tail.split_once(':')) {
        (5, Some(pair)) => pair,
        (4, None) => tail.split_at(2),
        (2, None) => (tail, "0"),
        _ => return None,
    };
    let (hours, minutes) = (digits(hours)?, digits(minutes)?);
    let seconds = i32::try_from(hours * 3_600 + minutes * 60).ok()?;
    (hours < 24 && minutes < 60).then_some(sign * seconds)
}

/// Reads a time in whatever form events carry: ISO 8601, or a number of seconds, milliseconds or
/// microseconds told apart by size.
pub(crate) fn guess(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if let Some(ns) = iso8601_ns(text) {
        return OffsetDateTime::from_unix_timestamp_nanos(ns).ok();
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let whole = digits(whole)?;
    digits(fraction)?;
    let (fraction_ns, _) = fraction_ns(&format!(".{fraction}"))?;
    let ns = match whole {
        // Seconds up to the year 5138, milliseconds from 1973 on.
        0..100_000_000_000 => i128::from(whole) * 1_000_000_000 + i128::from(fraction_ns),
        100_000_000_000..100_000_000_000_000 => i128::from(whole) * 1_000_000,
        _ => i128::from(whole) * 1_000,
    };
    OffsetDateTime::from_unix_timestamp_nanos(ns).ok()
}

/// The verdict on a signed time.
pub(crate) struct Freshness {
    pub(crate) stamp: Option<Stamp>,
    pub(crate) skew_s: Option<i64>,
    pub(crate) fault: Option<Reason>,
}

/// Judges the signed time `text` against `now`. `tolerance_s` replaces both official bounds.
pub(crate) fn judge(
    rule: &TimestampRule,
    text: &str,
    now: Timestamp,
    tolerance_s: Option<u32>,
) -> Freshness {
    let past_s = tolerance_s.or(rule.past_s.seconds());
    let future_s = tolerance_s.or(rule.future_s.seconds());
    let bounded = past_s.is_some() || future_s.is_some() || rule.not_before_s.is_some();
    let Some(stamp) = Stamp::read(rule.unit, text) else {
        // Where nothing is bounded the text is opaque: official libraries sign it unread.
        let fault = bounded.then_some(Reason::MalformedTimestamp);
        return Freshness {
            stamp: None,
            skew_s: None,
            fault,
        };
    };
    let now_ms = now.unix_timestamp_nanos().div_euclid(1_000_000);
    let age_ms = match rule.unit {
        Unit::UnixMs => now_ms - stamp.ms,
        // Both sides count whole seconds, so that a bound of 300 means 300.
        Unit::UnixS | Unit::Iso8601 => {
            (now_ms.div_euclid(MS_PER_S) - stamp.ms.div_euclid(MS_PER_S)) * MS_PER_S
        }
    };
    let too_old = past_s.is_some_and(|bound| {
        let bound_ms = i128::from(bound) * MS_PER_S;
        age_ms > bound_ms || (rule.past_exclusive && age_ms == bound_ms)
    });
    let too_new = future_s.is_some_and(|bound| -age_ms > i128::from(bound) * MS_PER_S);
    let before_all = rule
        .not_before_s
        .is_some_and(|bound| stamp.ms < i128::from(bound) * MS_PER_S);
    let fault = if too_old || before_all {
        Some(Reason::Stale)
    } else {
        too_new.then_some(Reason::Future)
    };
    Freshness {
        stamp: Some(stamp),
        skew_s: i64::try_from(age_ms.div_euclid(MS_PER_S)).ok(),
        fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str) -> Option<i128> {
        Stamp::read(Unit::Iso8601, text).map(|stamp| stamp.ms)
    }

    #[test]
    fn iso_times_are_read_with_zone_and_fraction() {
        assert_eq!(ms("2020-01-01T00:00:00-07:00"), Some(1_577_862_000_000));
        assert_eq!(ms("2024-03-27T15:42:29.551"), Some(1_711_554_149_551));
        assert_eq!(ms("2026-01-01 09:00:00Z"), Some(1_767_258_000_000));
        assert_eq!(
            ms("2026-01-01T09:00:00.123456789+0530"),
            ms("2026-01-01T03:30:00.123Z")
        );
        for text in [
            "",
            "2026",
            "2026-13-01T00:00:00Z",
            "2026-01-01T25:00:00Z",
            "2026-01-01T00:00:00X",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00+99:00",
        ] {
            assert_eq!(ms(text), None, "{text}");
        }
    }

    #[test]
    fn numbers_are_read_as_official_libraries_read_them() {
        for text in [
            "1767258000",
            "+1767258000",
            " 1767258000\t",
            "01767258000",
            "1767258000.9",
        ] {
            assert_eq!(canonical(text).as_deref(), Some("1767258000"), "{text}");
        }
        for text in [
            "",
            "+",
            "-1",
            "++1",
            "+ 1",
            "1 1",
            "1.",
            ".5",
            "1.5.5",
            "1_0",
            "1e3",
            "0x1",
            "99999999999999999999",
            "１",
        ] {
            assert_eq!(Stamp::read(Unit::UnixS, text), None, "{text}");
        }
    }

    #[test]
    fn a_form_says_how_numbers_may_be_written() {
        let forms = [NumberForm::Loose, NumberForm::Whole, NumberForm::Shortest];
        let allowing = |text| forms.map(|form| well_formed(form, text));
        assert_eq!(allowing("17"), [true, true, true]);
        assert_eq!(allowing("017"), [true, true, false]);
        assert_eq!(allowing(" +17"), [true, true, false]);
        assert_eq!(allowing("17.0"), [true, false, false]);
    }

    #[test]
    fn iso_times_are_judged_in_whole_seconds() {
        let rule = TimestampRule {
            future_s: crate::scheme::Limit::Seconds(0),
            ..crate::builtin("box").unwrap().timestamp.clone().unwrap()
        };
        let now = OffsetDateTime::from_unix_timestamp(1_767_258_000).unwrap();
        let fault = |text| judge(&rule, text, now, None).fault;
        assert_eq!(fault("2026-01-01T09:00:00.999Z"), None);
        assert_eq!(fault("2026-01-01T09:00:01.000Z"), Some(Reason::Future));
        assert_eq!(fault("2026-01-01T08:50:00.999Z"), None);
        assert_eq!(fault("2026-01-01T08:49:59.999Z"), Some(Reason::Stale));
    }

    #[test]
    fn event_times_are_told_apart_by_size() {
        let wanted = OffsetDateTime::from_unix_timestamp(1_767_258_000).unwrap();
        for text in [
            "1767258000",
            "1767258000000",
            "1767258000000000",
            "2026-01-01T09:00:00Z",
            "1767258000.0",
        ] {
            assert_eq!(guess(text), Some(wanted), "{text}");
        }
        assert_eq!(guess("soon"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_survived(text in ".{0,40}") {
            Stamp::read(Unit::Iso8601, &text);
            Stamp::read(Unit::UnixMs, &text);
            guess(&text);
        }
    }
}
