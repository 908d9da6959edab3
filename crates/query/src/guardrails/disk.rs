//! Writes to a disk that is nearly full.
//!
//! Compat: `replica_disk_usage` of Cassandra's guardrails. Who watches the disk says how full it is; every change of data by a
//! client asks. A warning goes to a client now and then, a refusal to everybody.

use std::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};

use super::violated;
use crate::Error;
use crate::context::Execution;

/// Compat: `cassandra.disk_usage.notify_interval_ms`.
const WARNING_INTERVAL_SECS: i64 = 30 * 60;

/// How full the disk is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fullness {
    /// There is room.
    #[default]
    Spacious,
    /// Above the threshold of warnings.
    Stuffed,
    /// Above the threshold of refusals.
    Full,
}

/// How full the disk is now, shared by who watches it and by those who write.
#[derive(Debug)]
pub struct DiskUsage {
    fullness: AtomicU8,
    /// When a client was last warned, in seconds of the clock.
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
    /// Says how full the disk is from now on.
    pub fn set(&self, fullness: Fullness) {
        self.fullness.store(fullness as u8, Relaxed);
    }

    /// How full it is.
    pub fn fullness(&self) -> Fullness {
        match self.fullness.load(Relaxed) {
            0 => Fullness::Spacious,
            1 => Fullness::Stuffed,
            _ => Fullness::Full,
        }
    }

    /// True if it is time to warn a client again.
    fn is_warning_due(&self, now_secs: i64) -> bool {
        let last = self.warned_at_secs.load(Relaxed);
        let is_due = now_secs.saturating_sub(last) >= WARNING_INTERVAL_SECS;
        is_due
            && self
                .warned_at_secs
                .compare_exchange(last, now_secs, Relaxed, Relaxed)
                .is_ok()
    }
}

/// Refuses a write to a disk that is full, and warns if it is nearly so.
///
/// # Errors
/// It is full.
pub(crate) fn check_disk(execution: &Execution<'_>) -> Result<(), Error> {
    let usage = &execution.query_options.disk_usage;
    let said = |what: &str| violated("replica_disk_usage", what);
    match usage.fullness() {
        Fullness::Spacious => Ok(()),
        Fullness::Stuffed => {
            if usage.is_warning_due(execution.now_secs) {
                execution.warn(said("Replica disk usage exceeds warning threshold"));
            }
            Ok(())
        }
        Fullness::Full => Err(Error::Invalid(said(
            "Write request failed because disk usage exceeds failure threshold",
        ))),
    }
}
