//! The kinds of destinations.

mod aws;
mod http;
mod secrets;

pub use aws::AwsDestination;
pub use http::HttpDestination;
pub use secrets::{NoKeys, OpenSecrets, OpeningSecret, SecretUnavailable};
