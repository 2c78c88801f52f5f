//! URLs that a subscription may name.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hookstead_fuzz::judge_target(data);
});
