//! Basic credentials and tokens behind a word.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for kind in ["postmark", "chargebee", "cloudevents", "gitlab"] {
        hookstead_fuzz::judge_signature(kind, data);
    }
});
