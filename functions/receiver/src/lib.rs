//! The receiver: `POST /webhooks/{source}`.
//!
//! A request passes these steps, in this order: size limit, source look-up,
//! signature over the exact bytes, parsing, one database statement, answer. A
//! 2xx means that the event is committed; nothing that was promised is left to
//! run after the answer. The Lambda adapter is in [`http_api`]; the local
//! server of the `hookstead` command calls the same [`Receiver`].

mod answer;
mod body;
mod clock;
pub mod config;
mod dedupe;
mod directory;
mod event;
pub mod http_api;
mod kick;
pub mod logs;
mod receiver;
mod rejection;
mod request;
mod stored_headers;
mod verification;

pub use answer::Answer;
pub use body::{Coding, coding as content_coding, decode as decode_body};
pub use clock::Clock;
pub use dedupe::{DedupeRule, InvalidDedupeRule};
pub use directory::DirectoryLimits;
pub use receiver::{Limits, Receiver};
pub use request::InboundRequest;
