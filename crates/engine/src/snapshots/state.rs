//! The state that an engine keeps about snapshots.

use std::sync::atomic::{AtomicI64, Ordering};

use ilion_commitlog::Position;
use parking_lot::Mutex;

/// The state that an engine keeps about snapshots.
#[derive(Default)]
pub(crate) struct Snapshots {
    /// Held while snapshots are made or removed.
    pub changing: Mutex<()>,
    /// When the next snapshot expires, milliseconds since 1970: 0 before the first check, `i64::MAX` if none expires.
    pub next_expiry_millis: AtomicI64,
    /// The position from which on the log keeps its records, while a moment of the whole node is taken.
    log_held_from: Mutex<Option<Position>>,
}

impl Snapshots {
    pub(crate) fn log_held_from(&self) -> Option<Position> {
        *self.log_held_from.lock()
    }

    pub(crate) fn hold_log(&self, from: Option<Position>) {
        *self.log_held_from.lock() = from;
    }

    /// Makes sure that expired snapshots are checked for at this time.
    pub(crate) fn expires(&self, millis: i64) {
        self.next_expiry_millis.fetch_min(millis, Ordering::Relaxed);
    }
}
