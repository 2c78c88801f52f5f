//! Points in time as people write them.

use time::format_description::well_known::Rfc3339;
use time::{Duration, OffsetDateTime};

/// `15m` ago, `2h`, `3d`, `90s`, or a time with its zone.
pub(crate) fn parse(text: &str) -> Result<OffsetDateTime, String> {
    parse_at(text, OffsetDateTime::now_utc())
}

fn parse_at(text: &str, now: OffsetDateTime) -> Result<OffsetDateTime, String> {
    let wrong = || "write 90s, 15m, 2h or 3d, or a time like 2026-01-31T12:00:00Z".to_owned();
    if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
        return Ok(at);
    }
    let unit_at = text
        .len()
        .checked_sub(1)
        .filter(|&at| text.is_char_boundary(at));
    let (number, unit) = text.split_at(unit_at.ok_or_else(wrong)?);
    let number: i64 = number.parse::<u32>().map_err(|_| wrong())?.into();
    let seconds = match unit {
        "s" => number,
        "m" => number * 60,
        "h" => number * 3_600,
        "d" => number * 86_400,
        _ => return Err(wrong()),
    };
    now.checked_sub(Duration::seconds(seconds))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_ages_or_as_they_stand() {
        let now = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let read = |text| parse_at(text, now).map(OffsetDateTime::unix_timestamp);
        assert_eq!(read("90s"), Ok(1_800_000_000 - 90));
        assert_eq!(read("2h"), Ok(1_800_000_000 - 7_200));
        assert_eq!(read("3d"), Ok(1_800_000_000 - 259_200));
        assert_eq!(read("2026-01-31T12:00:00Z"), Ok(1_769_860_800));
        for text in [
            "",
            "h",
            "-1h",
            "1y",
            "1é",
            "yesterday",
            "4294967295d",
            "99999999999999999999h",
        ] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
