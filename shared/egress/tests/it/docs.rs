//! The reference page names what the code has.

use hookstead_egress::webhook::{
    CustomHeaderError, MAX_CUSTOM_HEADERS, MAX_NAME_BYTES, MAX_VALUE_BYTES,
};
use hookstead_egress::{
    DETAILS, IDLE, MAX_BODY_BYTES, MAX_CONNECTION_AGE, MAX_IDLE, MAX_IDLE_PER_DESTINATION,
    MAX_PREFIX_BYTES, MAX_URL_BYTES, REQUEST_ID_HEADERS, TargetError,
};

const PAGE: &str = include_str!("../../../../docs/outgoing.md");

#[test]
fn the_reference_page_has_every_code() {
    for (code, meaning) in DETAILS {
        let row = format!("| `{code}` | {meaning} |");
        assert!(PAGE.contains(&row), "docs/outgoing.md lacks {row}");
    }
    let targets = TargetError::ALL.map(TargetError::code);
    for code in targets.iter().chain(&CustomHeaderError::CODES) {
        let row = format!("| `{code}` | ");
        assert!(PAGE.contains(&row), "docs/outgoing.md lacks {row}");
    }
    for name in REQUEST_ID_HEADERS {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_reference_page_has_the_limits() {
    let thousands = |number: usize| match number {
        1000.. => format!("{},{:03}", number / 1000, number % 1000),
        _ => number.to_string(),
    };
    for limit in [
        format!("over {} bytes", thousands(MAX_URL_BYTES)),
        format!("more than {} bytes", thousands(MAX_VALUE_BYTES)),
        format!("1 to {MAX_NAME_BYTES} of letters"),
        format!("more than {MAX_CUSTOM_HEADERS} |"),
        format!("body that is read | {} KiB", MAX_BODY_BYTES / 1024),
        format!("body that is shown | {} KiB", MAX_PREFIX_BYTES / 1024),
        format!(
            "| {} s, {MAX_IDLE_PER_DESTINATION} per destination, {MAX_IDLE} in all |",
            IDLE.as_secs()
        ),
        format!("any connection | {} min", MAX_CONNECTION_AGE.as_secs() / 60),
    ] {
        assert!(PAGE.contains(&limit), "docs/outgoing.md lacks \"{limit}\"");
    }
}
