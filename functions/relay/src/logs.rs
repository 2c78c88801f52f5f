//! The log of the Lambda.

/// Starts logging as Lambda's settings for logs ask for, and keeps the texts of panics
/// out: one may quote what was being handled. What the schedule sends, which the
/// runtime logs at its lowest level, holds nothing of anybody's.
pub fn start() {
    lambda_runtime::tracing::init_default_subscriber();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(panic.location = place, "the code panicked");
    }));
}
