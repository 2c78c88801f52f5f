//! No value of Retry-After asks for more than its limit, and none panics.
#![no_main]

use std::time::Duration;

use hookstead_domain::{MAX_RETRY_AFTER_S, Timestamp, retry_after};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (i32, &str)| {
    let (now, text) = input;
    let now = Timestamp::UNIX_EPOCH + Duration::from_secs(u64::from(now.unsigned_abs()));
    let wait = retry_after(text.split('\n'), now);
    assert!(wait.unwrap_or_default() <= Duration::from_secs(MAX_RETRY_AFTER_S));
});
