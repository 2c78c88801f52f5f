//! What a phase is, and the loop that every phase runs in.

use std::time::Duration;

use crate::panics::caught;
use crate::run::Run;
use crate::trouble::{Alarm, PhaseError};

/// The parts of a relay. Each runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Announced events become events with their deliveries.
    Expand,
    /// Deliveries that are due go into the queue.
    Dispatch,
    /// Deliveries whose messages were lost go into the queue again.
    Redispatch,
    /// Deliveries of subscriptions that are paused or disabled leave the way.
    Tidy,
    /// Leases that ran out are taken away.
    Reap,
    /// Dead letters are announced.
    Announce,
    /// Reports go to the control plane.
    Ship,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 7] = [
        Self::Expand,
        Self::Dispatch,
        Self::Redispatch,
        Self::Tidy,
        Self::Reap,
        Self::Announce,
        Self::Ship,
    ];

    /// Its name in logs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expand => "expand",
            Self::Dispatch => "dispatch",
            Self::Redispatch => "redispatch",
            Self::Tidy => "tidy",
            Self::Reap => "reap",
            Self::Announce => "announce",
            Self::Ship => "ship",
        }
    }
}

/// What a phase does next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Goes on: there may be more.
    Again,
    /// Found nothing, and looks again after this time or when it is woken.
    Wait(Duration),
    /// Did a part of its work; what is left has to wait for this time.
    Partly {
        /// Why, as a code.
        code: String,
        /// For how long.
        wait: Duration,
    },
    /// Failed before and has to wait for this time, whoever wakes it.
    Hold(Duration),
    /// Has nothing to do in this run.
    Done,
}

/// One piece of work, bounded in size and in time. What it has begun it ends.
pub(crate) trait Step: Send {
    /// Whose it is.
    const PHASE: Phase;

    /// Does it.
    fn step(&mut self, run: &Run<'_>) -> impl Future<Output = Result<Next, PhaseError>> + Send;
}

/// Runs a phase until the run is over.
pub(crate) async fn drive<S: Step>(mut phase: S, run: &Run<'_>) {
    let mut alarm = Alarm::new(S::PHASE);
    let mut woken = run.wakes.of(S::PHASE).subscribe();
    while !run.is_over() {
        // Whoever wakes us from here on may know what this step does not see.
        woken.mark_unchanged();
        match caught(phase.step(run)).await {
            Ok(Next::Done) => return,
            Ok(Next::Again) => {
                alarm.all_is_well();
                tokio::task::yield_now().await;
            }
            Ok(Next::Wait(wait)) => {
                alarm.all_is_well();
                run.pause_or_wake(wait, &mut woken).await;
            }
            Ok(Next::Partly { code, wait }) => {
                alarm.partly(&code);
                run.pause(wait).await;
            }
            Ok(Next::Hold(wait)) => run.pause(wait).await,
            Err(error) => {
                run.count(|report| report.failures += 1);
                run.pause(alarm.failed(&error)).await;
            }
        }
    }
}
