//! Processes that are killed and frozen at random while they work.

use std::time::Duration;

use sqlx::PgConnection;
use tokio::sync::watch;

use crate::chance::Chance;
use crate::ground::{Ground, number};
use crate::processes::{Process, Processes, Role};

use super::plan::Plan;

/// Workers and relays that run at a time.
pub(crate) const WORKERS: usize = 3;
pub(crate) const RELAYS: usize = 2;

/// Shortest and longest pause between two blows, in milliseconds.
const PAUSE_MS: (u64, u64) = (50, 400);

/// Up to so many attempts end between two blows at least: fewer than the workers have
/// under way, so that most blows hit some.
const PROGRESS: u64 = 30;

/// How often is looked for them, in milliseconds.
const LOOK_EVERY_MS: u64 = 50;

/// Shortest and longest time for which a worker is frozen, in milliseconds. What it holds
/// runs out meanwhile, as in a freeze of many seconds.
const FREEZE_MS: (u64, u64) = (300, 1_500);

/// One blow in so many is a freeze.
const FREEZES: u64 = 5;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Blows {
    pub(crate) workers: u64,
    pub(crate) relays: u64,
    pub(crate) freezes: u64,
}

pub(crate) struct Storm {
    plan: Plan,
    chance: Chance,
    processes: Processes,
    running: Vec<Process>,
    connection: PgConnection,
    blows: Blows,
    attempts_seen: i64,
}

impl Storm {
    /// Starts the processes.
    pub(crate) async fn gather(plan: Plan, ground: &Ground, mut processes: Processes) -> Self {
        let roles = [Role::Worker].repeat(WORKERS);
        let roles = roles.into_iter().chain([Role::Relay].repeat(RELAYS));
        let running = roles.map(|role| processes.start(role)).collect();
        Self {
            plan,
            chance: Chance::new(plan.seed),
            processes,
            running,
            connection: ground.database.connect().await,
            blows: Blows::default(),
            attempts_seen: 0,
        }
    }

    /// Rages until `over` is true, and leaves everything running.
    pub(crate) async fn rage(mut self, mut over: watch::Receiver<bool>) -> Self {
        loop {
            let pause = self.chance.between(PAUSE_MS.0, PAUSE_MS.1);
            if is_over_within(&mut over, pause).await
                || self.is_over_before_progress(&mut over).await
            {
                return self;
            }
            let place = self.chance.place(self.running.len());
            let freezes = self.chance.once_in(FREEZES);
            match self.running[place].role {
                Role::Worker if freezes => self.freeze(place, &mut over).await,
                role => self.kill(place, role).await,
            }
        }
    }

    /// Waits until enough attempts have ended since the last blow. On a busy machine
    /// processes would otherwise be killed before they have done anything, forever.
    async fn is_over_before_progress(&mut self, over: &mut watch::Receiver<bool>) -> bool {
        let wanted = self.attempts_seen + i64::try_from(self.chance.between(1, PROGRESS)).unwrap();
        let attempts = "select count(*) from hookstead.attempts";
        while number(&mut self.connection, attempts).await < wanted {
            if is_over_within(over, LOOK_EVERY_MS).await {
                return true;
            }
        }
        self.attempts_seen = number(&mut self.connection, attempts).await;
        false
    }

    pub(crate) fn blows(&self) -> Blows {
        self.blows
    }

    /// Fails where a process has ended by itself.
    pub(crate) fn assert_running(&mut self) {
        for process in &mut self.running {
            process.assert_running();
        }
    }

    async fn kill(&mut self, place: usize, role: Role) {
        let next = self.processes.start(role);
        let victim = std::mem::replace(&mut self.running[place], next);
        let name = victim.name.clone();
        victim.kill().await;
        match role {
            Role::Relay => self.blows.relays += 1,
            Role::Worker => {
                self.blows.workers += 1;
                if self.plan.leases_are_moved {
                    self.expire_leases_of(&name).await;
                }
            }
        }
    }

    /// A worker stands still until others have got what it holds, and then goes on with it.
    async fn freeze(&mut self, place: usize, over: &mut watch::Receiver<bool>) {
        self.blows.freezes += 1;
        self.running[place].freeze().await;
        let name = self.running[place].name.clone();
        self.expire_leases_of(&name).await;
        let length = self.chance.between(FREEZE_MS.0, FREEZE_MS.1);
        is_over_within(over, length).await;
        self.running[place].thaw().await;
    }

    async fn expire_leases_of(&mut self, name: &str) {
        sqlx::query(
            "update hookstead.live_deliveries set lease_expires_at = clock_timestamp()
             where state = 'leased' and leased_by like $1 || '/%'",
        )
        .bind(name)
        .execute(&mut self.connection)
        .await
        .unwrap();
    }
}

/// Whether the storm is over, asked for so long.
async fn is_over_within(over: &mut watch::Receiver<bool>, ms: u64) -> bool {
    let asking = over.wait_for(|over| *over);
    tokio::time::timeout(Duration::from_millis(ms), asking)
        .await
        .is_ok()
}
