//! What workers do with deliveries: take them, end them, keep them, begin them anew.
//!
//! Each operation is one statement. Rules are not decided here: the caller brings
//! the state that [`hookstead_domain::Delivery`] gave, and the statement writes it
//! if the lease is still the caller's.

mod claim;
mod claimed;
mod entity_lock;
mod finish;
mod lease;
mod rearm;
mod subscription;

pub use claim::{CLAIM_SQL, Claim, ClaimAnswer, ClaimRequest, claim};
pub use claimed::{Claimed, ClaimedEvent, ClaimedSubscription, SealedSecret};
pub use entity_lock::lock_entity;
pub use finish::{
    AttemptFacts, FINISH_SQL, Failing, Finish, FinishAnswer, FinishedAttempt, earlier_failures,
    finish,
};
pub use lease::{ExpiredLease, ExtendLease, expired_leases, extend_lease};
pub use rearm::{rearm, rearm_dead_letters};
pub use subscription::{
    disable_failing_subscription, disable_subscription, enable_subscription, pause_subscription,
    rearm_cancelled,
};
