//! The names of PostgreSQL's roles, one per function. On a test server each may log in
//! without a password.

/// Owns the schema; migrations run as it.
pub const OWNER: &str = "hookstead_owner";
/// The receiver function.
pub const RECEIVER: &str = "hookstead_receiver";
/// The worker function.
pub const WORKER: &str = "hookstead_worker";
/// The relay function.
pub const RELAY: &str = "hookstead_relay";
/// The maintenance function.
pub const MAINTENANCE: &str = "hookstead_maintenance";
/// The admin function.
pub const ADMIN: &str = "hookstead_admin";
/// The customer's business application.
pub const PUBLISHER: &str = "hookstead_publisher";
/// Read-only views without payloads, headers or secrets.
pub const SUPPORT: &str = "hookstead_support";

/// All of them.
pub const ALL: [&str; 8] = [
    OWNER,
    RECEIVER,
    WORKER,
    RELAY,
    MAINTENANCE,
    ADMIN,
    PUBLISHER,
    SUPPORT,
];
