//! docs/states.md.

use std::fmt::Write as _;

use super::{code, table, written_from_the_code};
use crate::{CancelReason, DeadLetterReason, MAX_LOST_LEASES, ReasonCode, StateName, TRANSITIONS};

/// docs/states.md as it has to be.
#[must_use]
pub fn states_page() -> String {
    let mut page = "# States of a delivery\n\n".to_owned();
    written_from_the_code(&mut page);
    page.push_str(
        "A delivery is what one event owes one subscription. [retries.md](retries.md) says what \
an answer makes of it and when it is tried again; [data-model.md](data-model.md) where it is kept.\n\n",
    );
    drawing(&mut page);
    states(&mut page);
    transitions(&mut page);
    page.push_str(RULES);
    reasons(&mut page);
    page
}

const RULES: &str = "\
- **Claim** takes a delivery only if it is pending, in the round that the message names, and the \
attempt that the message names is the next one. Stale and repeated messages do nothing.
- **An attempt is counted when it is claimed**, so a delivery that kills its worker uses up its \
budget like any other.
- **Finish** and every extension of a lease name the lease. Where it is not the delivery's own any \
more, nothing changes: a late worker cannot overwrite what came after it.
- **A deferral is no failure.** It adds one to the budget and uses no wait of the schedule. The \
same holds for an attempt that a stopping worker broke off.
- **An attempt under way is not cancelled.** It may finish; if that does not end the delivery, the \
delivery is cancelled then.
- **Only re-arming leads out of a finished state.** It begins a new round with a new budget, under \
the subscription's policy of that moment; the earlier rounds stay in the archive.

";

fn drawing(page: &mut String) {
    page.push_str("```mermaid\nstateDiagram-v2\n    [*] --> pending: an event matches\n");
    for way in TRANSITIONS {
        let (from, to, by) = (way.from.as_str(), way.to.as_str(), way.by.as_str());
        writeln!(page, "    {from} --> {to}: {by}").expect("writing to a String never fails");
    }
    page.push_str("```\n\n");
}

fn states(page: &mut String) {
    page.push_str("## States\n\n");
    let rows = StateName::ALL.into_iter().map(|state| {
        let over = if state.is_terminal() { "yes" } else { "no" };
        [
            code(state.as_str()),
            over.to_owned(),
            state.meaning().to_owned(),
        ]
    });
    table(page, ["state", "finished", "a delivery in it"], rows);
}

fn transitions(page: &mut String) {
    page.push_str("## Transitions\n\nThere are no others.\n\n");
    let rows = TRANSITIONS.iter().map(|way| {
        let (from, to) = (code(way.from.as_str()), code(way.to.as_str()));
        [from, to, way.by.as_str().to_owned(), way.when.to_owned()]
    });
    table(page, ["from", "to", "by", "when"], rows);
}

fn reasons(page: &mut String) {
    page.push_str(
        "## Reasons\n\nWhat did not simply succeed says why in `state_reason`. Codes are stable.\n\n",
    );
    let dead = DeadLetterReason::ALL.iter();
    let dead = dead.map(|reason| (StateName::DeadLetter, reason.as_str(), reason.meaning()));
    let cancelled = CancelReason::ALL.iter();
    let cancelled =
        cancelled.map(|reason| (StateName::Cancelled, reason.as_str(), reason.meaning()));
    let others = [
        (
            StateName::Skipped,
            ReasonCode::CONSUMER_SKIPPED,
            "The consumer answered that it has no use for the event.",
        ),
        (
            StateName::Pending,
            ReasonCode::CONSUMER_DEFERRED,
            "The consumer answered that it wants the event later.",
        ),
        (
            StateName::Pending,
            ReasonCode::WORKER_STOPPED,
            "The worker shut down before the attempt was over.",
        ),
    ];
    let others = others
        .iter()
        .map(|(state, reason, meaning)| (*state, reason.as_str(), *meaning));
    let rows = dead.chain(cancelled).chain(others);
    let rows = rows
        .map(|(state, reason, meaning)| [code(state.as_str()), code(reason), meaning.to_owned()]);
    table(page, ["state", "reason", "meaning"], rows);
    writeln!(
        page,
        "Handlers that skip or defer give a code of their own: 1 to 64 of `a`–`z`, `0`–`9` and \
`_`, starting with a letter. {MAX_LOST_LEASES} leases of a round that run out are too often.",
    )
    .expect("writing to a String never fails");
}
