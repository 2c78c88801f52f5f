//! What a queue takes: SQS's limits, which the local queue keeps as well, so that
//! nothing works on one machine that AWS refuses.

use std::time::Duration;

use super::SendRefused;

/// Messages in one call to SQS: its own limit, for sending, receiving and deleting.
pub const MAX_ENTRIES: usize = 10;

/// Bytes of one body: SQS's limit since 2026, 1 MiB.
pub const MAX_BODY_BYTES: usize = 1_048_576;

/// Bytes of all bodies of one call: SQS's limit, the same as for one.
pub const MAX_BATCH_BYTES: usize = 1_048_576;

/// The longest that a receive waits for a message: SQS's limit.
pub const MAX_WAIT: Duration = Duration::from_secs(20);

/// Refuses, before it is sent, what SQS would refuse. One such message would make
/// SQS refuse the whole call, and with it nine innocent ones.
pub(crate) fn check(body: &str) -> Result<(), SendRefused> {
    if body.is_empty() {
        return Err(SendRefused::permanent("empty_body"));
    }
    if body.len() > MAX_BODY_BYTES {
        return Err(SendRefused::permanent("body_too_large"));
    }
    if !body.chars().all(is_allowed) {
        return Err(SendRefused::permanent("invalid_characters"));
    }
    Ok(())
}

/// Whether SQS takes a text as a body or as the value of an attribute.
pub(crate) fn is_allowed(letter: char) -> bool {
    matches!(letter,
        '\t' | '\n' | '\r'
        | ' '..='\u{D7FF}'
        | '\u{E000}'..='\u{FFFD}'
        | '\u{10000}'..='\u{10FFFF}')
}

/// Cuts messages into calls: as many as fit by number and by bytes, in order. `bytes`
/// are those of each message, none above [`MAX_BATCH_BYTES`].
pub(crate) fn calls(bytes: impl IntoIterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    let mut calls: Vec<Vec<usize>> = Vec::new();
    let mut room = 0;
    for (place, bytes) in bytes {
        match calls.last_mut() {
            Some(call) if call.len() < MAX_ENTRIES && bytes <= room => call.push(place),
            _ => {
                calls.push(vec![place]);
                room = MAX_BATCH_BYTES;
            }
        }
        room = room.saturating_sub(bytes);
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_sqs_would_refuse_is_refused_with_its_reason() {
        let code = |body: &str| check(body).unwrap_err().code().to_owned();
        assert_eq!(code(""), "empty_body");
        assert_eq!(code(&"x".repeat(MAX_BODY_BYTES + 1)), "body_too_large");
        assert_eq!(code("a\u{0}b"), "invalid_characters");
        assert_eq!(code("a\u{FFFE}b"), "invalid_characters");
        assert_eq!(check(&"x".repeat(MAX_BODY_BYTES)), Ok(()));
        assert_eq!(check("{\"id\":\"é 😊\"}\t\r\n"), Ok(()));
    }

    proptest! {
        #[test]
        fn every_message_is_in_one_call_and_every_call_is_within_the_limits(
            bytes in prop::collection::vec(prop_oneof![1..400_usize, 1..=MAX_BODY_BYTES], 0..60)
        ) {
            let calls = calls(bytes.iter().copied().enumerate());
            for call in &calls {
                prop_assert!((1..=MAX_ENTRIES).contains(&call.len()));
                let sum: usize = call.iter().map(|place| bytes[*place]).sum();
                prop_assert!(sum <= MAX_BATCH_BYTES);
            }
            let places: Vec<usize> = calls.concat();
            prop_assert_eq!(places, (0..bytes.len()).collect::<Vec<_>>());
            // No call ends while the next message would still have fitted.
            for pair in calls.windows(2) {
                let sum: usize = pair[0].iter().map(|place| bytes[*place]).sum();
                let next = bytes[pair[1][0]];
                prop_assert!(pair[0].len() == MAX_ENTRIES || sum + next > MAX_BATCH_BYTES);
            }
        }
    }
}
