//! The whole of Hookstead at once, in processes of its own: killed at random moments,
//! and searched for what must not be there.
//!
//! A package of its own, apart from the rules over the repository: these tests need
//! every function and the emulator of AWS, and are built and run for minutes, where the
//! rules take seconds. It has no library: the processes that are killed are this test
//! program again, told by its environment what it is to be ([`child`]).
#![allow(clippy::unwrap_used)]

mod chance;
mod child;
mod ground;
mod http;
mod leaks;
mod processes;
mod soak;
mod waiting;

/// One at a time: each takes the whole machine, and the log of one thread is only whole
/// while no other thread logs into nothing.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
