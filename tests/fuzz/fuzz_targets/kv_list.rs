//! Pairs and groups: Stripe, Paddle, Sanity, Persona, WorkOS.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    for kind in [
        "stripe",
        "paddle-billing",
        "sanity",
        "persona",
        "workos",
        "elevenlabs",
    ] {
        hookstead_fuzz::judge_signature(kind, data);
    }
});
