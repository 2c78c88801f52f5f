//! Paths, and bodies they are followed through.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((path, body)) = hookstead_fuzz::split(data) else {
        return;
    };
    hookstead_fuzz::extract_at(path, body);
});
