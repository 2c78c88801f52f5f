//! One run: when it is over, who wakes whom, and what it did.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use crate::phase::Phase;
use crate::report::RunReport;

/// A bell per phase.
#[derive(Debug)]
pub(crate) struct Wakes([watch::Sender<()>; Phase::ALL.len()]);

impl Default for Wakes {
    fn default() -> Self {
        Self(std::array::from_fn(|_| watch::Sender::new(())))
    }
}

impl Wakes {
    pub(crate) fn of(&self, phase: Phase) -> &watch::Sender<()> {
        &self.0[phase as usize]
    }

    pub(crate) fn wake(&self, phase: Phase) {
        self.of(phase).send_replace(());
    }
}

/// What the phases of a run share.
pub(crate) struct Run<'a> {
    pub(crate) wakes: &'a Wakes,
    over: watch::Sender<bool>,
    report: Mutex<RunReport>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(wakes: &'a Wakes) -> Self {
        Self {
            wakes,
            over: watch::Sender::new(false),
            report: Mutex::default(),
        }
    }

    /// From now on, phases end what they have begun and begin nothing.
    pub(crate) fn end(&self) {
        self.over.send_replace(true);
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Notes what was done.
    pub(crate) fn count(&self, note: impl FnOnce(&mut RunReport)) {
        note(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn report(&self) -> RunReport {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.clone()
    }

    /// Waits, unless the run ends.
    pub(crate) async fn pause(&self, wait: Duration) {
        let mut over = self.over.subscribe();
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = over.wait_for(|over| *over) => {}
        }
    }

    /// Waits, unless the run ends or somebody rings.
    pub(crate) async fn pause_or_wake(&self, wait: Duration, woken: &mut watch::Receiver<()>) {
        tokio::select! {
            () = self.pause(wait) => {}
            // Its sender is in `wakes`, so it never fails.
            _ = woken.changed() => {}
        }
    }
}
