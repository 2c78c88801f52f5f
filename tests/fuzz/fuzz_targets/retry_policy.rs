//! A policy that is accepted keeps its limits and is read as it was written.
#![no_main]

use hookstead_domain::{MAX_RETRIES, MAX_TIMEOUT_MS, RetryPolicy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(policy) = serde_json::from_str::<RetryPolicy>(text) {
        assert!(policy.attempt_budget() as usize <= MAX_RETRIES + 1);
        assert!((1..=MAX_TIMEOUT_MS).contains(&policy.timeout_ms()));
        let written = serde_json::to_string(&policy).expect("a policy can be written");
        let read: RetryPolicy = serde_json::from_str(&written).expect("and read");
        assert_eq!(read, policy);
    }
});
