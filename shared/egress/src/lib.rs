//! Outgoing HTTP: the one guarded client, and the webhooks that it sends.
//!
//! Every request that leaves for an address somebody configured goes through
//! [`Egress`]: deliveries, retries, replays, tests, probes, reports. It resolves the
//! name, refuses if any of its addresses is not public, and connects to an address that
//! it checked, with the original name for TLS and `Host`. It follows no redirect, knows
//! no proxy, reads a bounded part of the answer, and has one deadline over everything.
//!
//! [`Target`] is the check that is made when a URL is saved, by the same parser.
//! [`webhook`] builds what a consumer receives.
//!
//! Nothing here logs, and no error or Debug output has a byte of a URL, a header or a
//! body in it.

mod address;
mod answer;
mod cidr;
mod client;
mod connection;
mod dial;
mod failure;
mod meter;
mod pool;
mod request;
mod resolver;
mod settings;
mod target;
mod tls;
pub mod webhook;

pub use address::{AllowList, is_public};
pub use answer::{Answer, KeptHeaders, MAX_PREFIX_BYTES, REQUEST_ID_HEADERS};
pub use cidr::{Cidr, InvalidCidr};
pub use client::Egress;
pub use failure::{DETAILS, SendFailure};
pub use request::OutgoingRequest;
pub use resolver::{Resolver, Resolving, SystemResolver};
pub use settings::{
    EgressError, EgressSettings, IDLE, MAX_BODY_BYTES, MAX_CONNECTION_AGE, MAX_IDLE,
    MAX_IDLE_PER_DESTINATION,
};
pub use target::{MAX_URL_BYTES, Target, TargetError};
