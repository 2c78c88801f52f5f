//! Templates of signed texts and whole scheme files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(template) = text.parse::<hookstead_signing::Template>() {
        assert_eq!(template.as_str(), text);
    }
    hookstead_fuzz::read_scheme(text);
});
