//! Counts of entries, for metrics.

use std::sync::atomic::AtomicU64;

/// Counts of entries since the start of the node.
#[derive(Debug, Default)]
pub struct Counts {
    /// Entries written.
    pub written: AtomicU64,
    /// Entries dropped while the queue was full.
    pub dropped: AtomicU64,
    /// Entries lost because the file could not be written.
    pub failed: AtomicU64,
}
