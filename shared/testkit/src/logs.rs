//! Everything that is logged, kept for the test to search.

use std::io::Write;
use std::sync::{Arc, Mutex, Once, PoisonError};

use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Catches every log line of the current thread, from trace level up, until it is dropped.
///
/// A test on a current-thread runtime has all of its tasks on that thread. Lines are JSON,
/// so a value hidden in any field is in the text.
pub struct LogCapture {
    buffer: Buffer,
    _guard: DefaultGuard,
}

impl LogCapture {
    /// Starts catching.
    #[must_use]
    pub fn start() -> Self {
        keep_every_place_awake();
        let buffer = Buffer::default();
        let subscriber = tracing_subscriber::fmt()
            .json()
            .with_max_level(Level::TRACE)
            .with_writer(buffer.clone())
            .finish();
        Self {
            buffer,
            _guard: tracing::subscriber::set_default(subscriber),
        }
    }

    /// Everything logged so far.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.buffer.bytes()).into_owned()
    }

    /// The lines logged so far.
    #[must_use]
    pub fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    /// Whether any line holds this text.
    #[must_use]
    pub fn contains(&self, text: &str) -> bool {
        self.text().contains(text)
    }
}

/// A place in the code that logs asks once whether anybody listens, and remembers a no:
/// with captures of other threads alone around, it may ask between two of them. So
/// somebody always listens, and throws away what is heard.
fn keep_every_place_awake() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let nowhere = tracing_subscriber::fmt()
            .with_max_level(Level::TRACE)
            .with_writer(std::io::sink)
            .finish();
        // A test program with a subscriber of its own has somebody who listens.
        tracing::subscriber::set_global_default(nowhere).ok();
    });
}

#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Buffer {
    fn bytes(&self) -> Vec<u8> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let mut buffer = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Buffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
