//! A timestamp, then signatures: Recurly.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hookstead_fuzz::judge_signature("recurly", data);
});
