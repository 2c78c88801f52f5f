//! A process that cannot work says so before its first event.

use std::process::Command;

#[test]
fn the_lambda_does_not_start_without_its_configuration() {
    let output = Command::new(env!("CARGO_BIN_EXE_receiver"))
        .env_clear()
        .env("HOOKSTEAD_MAX_BODY_BYTES", "many")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("HOOKSTEAD_DATABASE_URL is not set"), "{said}");
    assert!(
        said.contains("HOOKSTEAD_MAX_BODY_BYTES is not a number"),
        "{said}"
    );
}
