//! Logs of `dev`: lines for people on standard error, or JSON where asked for.

use tracing_subscriber::EnvFilter;

use crate::error::Error;

/// What is logged unless `HOOKSTEAD_LOG` says otherwise: all of ours, and what others warn about.
const DEFAULT_FILTER: &str = "warn,hookstead=info,hookstead_receiver=info,hookstead_secrets=info";

/// Starts logging. Also keeps the texts of panics out: one may quote what was being handled.
pub(crate) fn start(json: bool) -> Result<(), Error> {
    let chosen = std::env::var("HOOKSTEAD_LOG")
        .ok()
        .filter(|text| !text.is_empty());
    let filter = chosen
        .as_deref()
        .unwrap_or(DEFAULT_FILTER)
        .parse::<EnvFilter>();
    let filter = filter.map_err(|error| {
        Error::usage(
            "invalid_configuration",
            format!("HOOKSTEAD_LOG is no filter: {error}"),
        )
    })?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()));
    // A second start in one process keeps the first one's logs.
    let started = if json {
        builder.json().flatten_event(true).try_init()
    } else {
        builder.compact().with_target(false).try_init()
    };
    started.ok();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(
            panic.location = place,
            "a fault of Hookstead: the code panicked"
        );
    }));
    Ok(())
}
