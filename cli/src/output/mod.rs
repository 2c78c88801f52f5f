//! What people and scripts read: aligned tables, colours on terminals, JSON.

mod moment;
mod style;
mod table;

pub(crate) use moment::{clock, seconds, seconds_or_dash};
pub(crate) use style::{bad, bold, dim, good};
pub(crate) use table::Table;

use std::io::{self, Write};

use serde::Serialize;

use crate::error::{Doing as _, Error};

/// Writes to standard output. A reader that has gone away is no error:
/// `hookstead events | head` ends quietly.
pub(crate) fn write(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.doing("cannot write to standard output"),
    }
}

/// Writes one line to standard output.
pub(crate) fn line(text: &str) -> Result<(), Error> {
    write(format!("{text}\n").as_bytes())
}

/// Writes a value as indented JSON.
pub(crate) fn json(value: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(value)
        .map_err(io::Error::other)
        .doing("cannot write the answer as JSON")?;
    line(&text)
}

/// How this command is called by the person who reads: cargo says when it runs us.
pub(crate) fn program() -> &'static str {
    if std::env::var_os("CARGO_PKG_NAME").is_some_and(|name| name == env!("CARGO_PKG_NAME")) {
        "cargo hookstead"
    } else {
        "hookstead"
    }
}

/// Text of somebody else's for one line of a terminal: control characters are
/// shown, never acted on, because a header or an id may carry escape sequences.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let escaped = c.is_control().then(|| c.escape_default().to_string());
            escaped
                .unwrap_or_else(|| c.to_string())
                .chars()
                .collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn escape_sequences_of_others_are_shown_and_not_obeyed() {
        assert_eq!(super::printable("a\u{1b}[31mb\n"), "a\\u{1b}[31mb\\n");
        assert_eq!(super::printable("Grüße"), "Grüße");
    }
}
