//! Waiting for what the database says.

use std::time::{Duration, Instant};

/// How often is looked.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long nothing may change before the wait is given up: longer than a lease, a
/// queue's visibility timeout and the longest pause of a subscription's first two
/// together. A run that hangs fails then, and one that is merely slow does not.
const STANDSTILL: Duration = Duration::from_secs(180);

/// Waits until there is nothing left. `left` says how much there is.
pub(crate) async fn until_none_left<F>(what: &str, mut left: impl FnMut() -> F)
where
    F: Future<Output = i64>,
{
    let mut looks = tokio::time::interval(LOOK_EVERY);
    let mut least = i64::MAX;
    let mut since = Instant::now();
    loop {
        looks.tick().await;
        let now = left().await;
        if now == 0 {
            return;
        }
        if now < least {
            (least, since) = (now, Instant::now());
        }
        assert!(
            since.elapsed() < STANDSTILL,
            "{what}: {now} left and nothing moves"
        );
    }
}
