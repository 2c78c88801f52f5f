//! Versioned and prefixed lists: Standard Webhooks, Svix, Replicate, PagerDuty, Orb.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for kind in [
        "standard-webhooks",
        "svix",
        "replicate",
        "openai",
        "pagerduty",
        "orb",
    ] {
        hookstead_fuzz::judge_signature(kind, data);
    }
});
