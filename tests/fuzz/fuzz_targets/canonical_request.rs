//! Canonical requests: method, URL and header list come from the input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hookstead_fuzz::canonical(data);
});
