//! The kinds of destinations.

mod http;
mod secrets;

pub use http::HttpDestination;
pub use secrets::{NoKeys, OpenSecrets, OpeningSecret, SecretUnavailable};
