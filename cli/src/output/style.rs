//! Colours, only where a person looks.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// Whether standard output takes colours: a terminal, and no wish against them (no-color.org).
fn colours() -> bool {
    static COLOURS: OnceLock<bool> = OnceLock::new();
    *COLOURS.get_or_init(|| {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        !unwanted && std::io::stdout().is_terminal()
    })
}

fn styled(code: &str, text: &str) -> String {
    if colours() {
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    } else {
        text.to_owned()
    }
}

/// A heading.
pub(crate) fn bold(text: &str) -> String {
    styled("1", text)
}

/// Something beside the point.
pub(crate) fn dim(text: &str) -> String {
    styled("2", text)
}

/// A yes.
pub(crate) fn good(text: &str) -> String {
    styled("32", text)
}

/// A no.
pub(crate) fn bad(text: &str) -> String {
    styled("31", text)
}
