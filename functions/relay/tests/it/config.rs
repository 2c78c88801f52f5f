//! A process that cannot work says so before its first run.

use std::process::Command;

#[test]
fn the_lambda_does_not_start_without_its_configuration() {
    let output = Command::new(env!("CARGO_BIN_EXE_relay"))
        .env_clear()
        .env("HOOKSTEAD_CONTROL_PLANE_URL", "https://control.example/")
        .output()
        .unwrap();
    assert!(!output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    for problem in [
        "HOOKSTEAD_DATABASE_URL is not set",
        "HOOKSTEAD_DELIVERIES_QUEUE_URL is not set",
        "HOOKSTEAD_CONTROL_PLANE_SECRET is not set",
    ] {
        assert!(said.contains(problem), "{problem}: {said}");
    }
}
