//! Counts what a connection reads, and ends it where that is too much.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::failure::Cause;

/// The books of one connection.
#[derive(Debug)]
pub(crate) struct Meter {
    read: AtomicU64,
    limit: AtomicU64,
    broken: Mutex<Option<Cause>>,
}

impl Meter {
    /// New books; nothing limits what is read until [`Meter::allow`] does.
    pub(crate) fn new() -> Self {
        Self {
            read: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            broken: Mutex::new(None),
        }
    }

    /// Begins an exchange that may read this many bytes. Returns what was read before it.
    pub(crate) fn allow(&self, bytes: u64) -> u64 {
        let read = self.read.load(Ordering::Relaxed);
        self.limit
            .store(read.saturating_add(bytes), Ordering::Relaxed);
        read
    }

    /// How many bytes were read since the connection began.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Ordering::Relaxed)
    }

    /// Whether the exchange has read all that it may.
    pub(crate) fn is_spent(&self) -> bool {
        self.read() >= self.limit.load(Ordering::Relaxed)
    }

    /// The first fault of the connection itself. What the HTTP library says about one
    /// depends on what it was doing at the time.
    pub(crate) fn broken(&self) -> Option<Cause> {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, error: &io::Error) {
        let mut broken = self.broken.lock().unwrap_or_else(PoisonError::into_inner);
        broken.get_or_insert(Cause::of_io(error));
    }
}

/// A stream with its books kept.
pub(crate) struct Metered<S> {
    inner: S,
    meter: Arc<Meter>,
}

impl<S> Metered<S> {
    pub(crate) const fn new(inner: S, meter: Arc<Meter>) -> Self {
        Self { inner, meter }
    }

    fn noted<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|error| self.meter.note(error))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // One read may go beyond the limit, by what the reader has room for.
        if self.meter.is_spent() {
            return Poll::Ready(Err(io::Error::other("the answer is too large")));
        }
        let before = buf.filled().len();
        match ready!(Pin::new(&mut self.inner).poll_read(cx, buf)) {
            Ok(()) => {
                let bytes = u64::try_from(buf.filled().len() - before).unwrap_or(u64::MAX);
                self.meter.read.fetch_add(bytes, Ordering::Relaxed);
                Poll::Ready(Ok(()))
            }
            // TLS ended without a farewell. Whether anything is missing is for HTTP to say,
            // which knows how long the answer is.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(self.noted(Err(error))),
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write(cx, buf));
        Poll::Ready(self.noted(result))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = ready!(Pin::new(&mut self.inner).poll_write_vectored(cx, bufs));
        Poll::Ready(self.noted(result))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = ready!(Pin::new(&mut self.inner).poll_flush(cx));
        Poll::Ready(self.noted(result))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Closing is no part of an exchange: what fails here broke nothing.
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
