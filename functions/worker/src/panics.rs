//! Futures that may panic.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

/// A future panicked. Its text is not kept: it may quote what was being handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panicked;

/// Runs a future so that its panic is a value. What it shared with others may be
/// half-changed afterwards, so whoever uses this drops it all.
pub(crate) async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut future = pin!(future);
    poll_fn(
        |context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
            Ok(polled) => polled.map(Ok),
            Err(_) => Poll::Ready(Err(Panicked)),
        },
    )
    .await
}
