//! Form bodies, plain and multipart.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let multipart = [("Content-Type", "multipart/form-data; boundary=x")];
    for kind in [
        "twilio",
        "mandrill",
        "paddle-classic",
        "braintree",
        "slack",
        "woocommerce",
    ] {
        hookstead_fuzz::judge(kind, &form, data);
    }
    hookstead_fuzz::judge("dropbox-sign", &multipart, data);
});
