//! A whole request under any built-in kind.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    hookstead_fuzz::whole(data);
});
