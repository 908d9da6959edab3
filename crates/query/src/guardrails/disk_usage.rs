//! [`DiskUsage`]: how full the disk is. A watcher sets it, and writes check it.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};

/// Compat: `cassandra.disk_usage.notify_interval_ms`.
const WARNING_INTERVAL_SECS: i64 = 30 * 60;

/// How full the disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fullness {
    /// Below both thresholds.
    #[default]
    Spacious,
    /// Above the warning threshold.
    Stuffed,
    /// Above the refusal threshold.
    Full,
}

/// How full the disk is, shared by its watcher and by writes.
#[derive(Debug)]
pub struct DiskUsage {
    fullness: AtomicU8,
    /// When a client was last warned.
    warned_at_secs: AtomicI64,
}

impl Default for DiskUsage {
    fn default() -> Self {
        Self {
            fullness: AtomicU8::new(Fullness::Spacious as u8),
            warned_at_secs: AtomicI64::new(i64::MIN),
        }
    }
}

impl DiskUsage {
    pub fn set(&self, fullness: Fullness) {
        self.fullness.store(fullness as u8, Relaxed);
    }

    pub fn fullness(&self) -> Fullness {
        match self.fullness.load(Relaxed) {
            0 => Fullness::Spacious,
            1 => Fullness::Stuffed,
            _ => Fullness::Full,
        }
    }

    /// True if the next client should be warned.
    pub(super) fn is_warning_due(&self, now_secs: i64) -> bool {
        let last = self.warned_at_secs.load(Relaxed);
        let is_due = now_secs.saturating_sub(last) >= WARNING_INTERVAL_SECS;
        is_due
            && self
                .warned_at_secs
                .compare_exchange(last, now_secs, Relaxed, Relaxed)
                .is_ok()
    }
}
