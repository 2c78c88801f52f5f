//! Addresses that are not public and may be called all the same.

use hookstead_egress::AllowList;

use crate::database::Database;
use crate::error::Error;
use crate::project::Project;

/// The variable that lists blocks of such addresses, with commas between them.
pub(crate) const VARIABLE: &str = "HOOKSTEAD_ALLOW_PRIVATE";

/// What `dev` allows unless it is told otherwise: this machine, so that a receiver under
/// development can be reached. Everywhere else nothing is allowed.
pub(crate) const OF_DEV: &str = "127.0.0.0/8,::1/128";

/// Why an address is refused, and what to do.
pub(crate) fn refusal() -> String {
    format!(
        "leads to an address that is not public; where that is meant, allow its block with {VARIABLE}"
    )
}

/// What may be called where this command's database is: what the running `dev` allows
/// where it is that one's, else what the variable says.
pub(crate) fn allowed(project: &Project) -> Result<AllowList, Error> {
    match Database::of_running(project) {
        Some(running) => read(&running.allow_private),
        None => read(&std::env::var(VARIABLE).unwrap_or_default()),
    }
}

/// The list of a text.
pub(crate) fn read(text: &str) -> Result<AllowList, Error> {
    text.parse().map_err(|error| {
        Error::usage(
            "invalid_configuration",
            format!("{VARIABLE}: each entry {error}"),
        )
    })
}
