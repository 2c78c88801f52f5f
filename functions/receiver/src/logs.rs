//! The log of the Lambda.
//!
//! The runtime's own subscriber is not used: at the level TRACE, which an operator
//! sets with one click, the runtime writes whole events, bodies and headers included.

use std::io::stdout;

use lambda_runtime::tracing::subscriber::filter::{FilterExt as _, LevelFilter, filter_fn};
use lambda_runtime::tracing::subscriber::fmt::{MakeWriter, layer};
use lambda_runtime::tracing::subscriber::layer::SubscriberExt as _;
use lambda_runtime::tracing::subscriber::util::SubscriberInitExt as _;
use lambda_runtime::tracing::subscriber::{EnvFilter, Layer as _, Registry};
use lambda_runtime::tracing::{Level, Metadata, Subscriber};

/// The crates that handle raw events.
const RUNTIME: &str = "lambda_runtime";

/// Starts logging as Lambda's settings for logs ask for. Also keeps the texts of panics
/// out: one may quote what was being handled.
pub fn start() {
    subscriber(|name| std::env::var(name).ok(), stdout).init();
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(
            panic.location = place,
            "a fault of Hookstead: the code panicked"
        );
    }));
}

/// `AWS_LAMBDA_LOG_LEVEL`, else `RUST_LOG`, else everything from INFO on;
/// `AWS_LAMBDA_LOG_FORMAT` asks for JSON.
fn subscriber<W>(read: impl Fn(&str) -> Option<String>, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let chosen = read("AWS_LAMBDA_LOG_LEVEL").or_else(|| read("RUST_LOG"));
    let chosen = match chosen.as_deref() {
        // Lambda's word for a level that only it has.
        Some("FATAL") => "error",
        Some(chosen) => chosen,
        None => "",
    };
    let filter = EnvFilter::builder()
        .with_default_directive(LevelFilter::INFO.into())
        .parse_lossy(chosen)
        .and(filter_fn(holds_no_event));
    let is_json = read("AWS_LAMBDA_LOG_FORMAT").is_some_and(|it| it.eq_ignore_ascii_case("json"));
    // Lambda stamps each line itself.
    let lines = layer()
        .with_writer(writer)
        .with_target(false)
        .without_time();
    let lines = if is_json {
        lines.json().boxed()
    } else {
        lines.with_ansi(false).boxed()
    };
    Registry::default().with(lines.with_filter(filter))
}

fn holds_no_event(metadata: &Metadata<'_>) -> bool {
    !metadata.target().starts_with(RUNTIME) || *metadata.level() <= Level::INFO
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// What is written with these settings.
    fn written(settings: &[(&str, &str)]) -> String {
        let lines = Lines::default();
        let writer = lines.clone();
        let read = |name: &str| {
            let found = settings.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let subscriber = subscriber(read, move || writer.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::trace!(target: "lambda_runtime::layers::api_response", body = "CANARY");
            tracing::debug!(target: "lambda_runtime_api_client", body = "CANARY");
            tracing::trace!("ours, in detail");
            tracing::info!("ours");
        });
        let bytes = lines.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn no_level_makes_the_runtime_write_events() {
        for settings in [
            [("AWS_LAMBDA_LOG_LEVEL", "TRACE")],
            [("RUST_LOG", "trace")],
            [("RUST_LOG", "lambda_runtime::layers=trace,trace")],
        ] {
            let text = written(&settings);
            assert!(text.contains("ours, in detail"), "{text}");
            assert!(!text.contains("CANARY"), "{text}");
        }
    }

    #[test]
    fn the_level_and_the_form_are_those_of_lambda_s_settings() {
        let text = written(&[]);
        assert!(
            text.contains("ours") && !text.contains("in detail"),
            "{text}"
        );
        assert_eq!(written(&[("AWS_LAMBDA_LOG_LEVEL", "FATAL")]), "");
        let text = written(&[("AWS_LAMBDA_LOG_FORMAT", "JSON")]);
        assert!(text.starts_with('{') && text.contains("ours"), "{text}");
    }
}
