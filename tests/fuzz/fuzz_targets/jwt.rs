//! Signed tokens.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for kind in ["livekit", "messagebird", "plaid", "vonage", "fusionauth"] {
        hookstead_fuzz::judge_signature(kind, data);
    }
});
