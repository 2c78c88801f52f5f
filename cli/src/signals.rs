//! The signals that mean: stop.

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::{Doing as _, Error};

/// Ctrl-C, SIGTERM and SIGHUP, listened for from the moment it is made.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn listen() -> Result<Self, Error> {
        let listen = |kind| signal(kind).doing("cannot listen for signals");
        Ok(Self {
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next of them.
    pub(crate) async fn first(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}
