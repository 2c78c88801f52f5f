//! Developer commands: test, bench, sqlx, docs.

fn main() {}
