//! What the kernel knows of a process.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;

/// This very program.
pub(crate) fn program() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("finding this program")
}

/// Processor time of the calling thread so far, system calls included and waiting not,
/// neither for the network nor for a processor.
pub(crate) fn thread_time() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split_whitespace().next().context("no schedstat")?;
    Ok(Duration::from_nanos(ns.parse()?))
}

/// Resident memory of this process, now and at its most, in KiB.
pub(crate) fn memory_kib() -> anyhow::Result<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    field("VmRSS:")
        .zip(field("VmHWM:"))
        .context("no memory in /proc/self/status")
}

/// The time of day in microseconds: the same clock for all processes of the machine.
pub(crate) fn unix_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let us = now.map_or(0, |since| since.as_micros());
    u64::try_from(us).unwrap_or(u64::MAX)
}
