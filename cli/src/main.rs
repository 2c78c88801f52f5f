//! The hookstead command: dev, send, verify, events, apply.

fn main() {}
