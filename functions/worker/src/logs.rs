//! The log of the Lambda.

/// Starts logging as Lambda's settings for logs ask for, and keeps the texts of panics
/// out: one may quote what was being handled. The batches that the runtime logs at its
/// lowest level hold ids alone.
pub fn start() {
    lambda_runtime::tracing::init_default_subscriber();
    hide_panics();
}

/// Makes panics say where they happened and nothing else.
pub fn hide_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(panic.location = place, "the code panicked");
    }));
}
