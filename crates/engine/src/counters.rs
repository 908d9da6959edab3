//! [`Counters`] of background work, which `facts` shows.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts since the start.
#[derive(Default)]
pub(crate) struct Counters {
    pub flushes_running: AtomicU64,
    pub flushes: AtomicU64,
    pub flushed_bytes: AtomicU64,
    pub compactions: AtomicU64,
    pub compactions_failed: AtomicU64,
    pub compacted_bytes_in: AtomicU64,
    pub compacted_bytes_out: AtomicU64,
    pub schema_readings: AtomicU64,
}

impl Counters {
    /// Counts a flush as running until this is dropped.
    pub(crate) fn begin_flush(&self) -> RunningFlush<'_> {
        self.flushes_running.fetch_add(1, Relaxed);
        RunningFlush(self)
    }

    pub(crate) fn flushed(&self, bytes: u64) {
        self.flushes.fetch_add(1, Relaxed);
        self.flushed_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn compacted(&self, bytes_in: u64, bytes_out: u64) {
        self.compactions.fetch_add(1, Relaxed);
        self.compacted_bytes_in.fetch_add(bytes_in, Relaxed);
        self.compacted_bytes_out.fetch_add(bytes_out, Relaxed);
    }

    pub(crate) fn schema_read(&self) {
        self.schema_readings.fetch_add(1, Relaxed);
    }

    pub(crate) fn compaction_failed(&self) {
        self.compactions_failed.fetch_add(1, Relaxed);
    }
}

/// A running flush.
pub(crate) struct RunningFlush<'c>(&'c Counters);

impl Drop for RunningFlush<'_> {
    fn drop(&mut self) {
        self.0.flushes_running.fetch_sub(1, Relaxed);
    }
}
