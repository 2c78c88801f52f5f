//! Steps that may panic.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use crate::trouble::PhaseError;

/// Runs a step so that its panic is a failure like any other, and ends neither the
/// phase nor its neighbours. A step keeps nothing between its awaits that others see.
pub(crate) async fn caught<T>(
    step: impl Future<Output = Result<T, PhaseError>>,
) -> Result<T, PhaseError> {
    let mut step = pin!(step);
    poll_fn(|context| {
        catch_unwind(AssertUnwindSafe(|| step.as_mut().poll(context)))
            .unwrap_or(Poll::Ready(Err(PhaseError::Panicked)))
    })
    .await
}
