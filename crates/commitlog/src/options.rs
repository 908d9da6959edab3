//! What the log is told when it is opened.

use std::path::PathBuf;

use uuid::Uuid;

use crate::frame::{HEADER_BYTES, RECORD_OVERHEAD_BYTES, SEAL_BYTES};
use crate::{ENVELOPE_BYTES, Error, Position, Result, SegmentId};

/// How a [`crate::CommitLog`] behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a segment file.
    pub segment_bytes: u32,
    /// The largest record, body and envelope; what a segment has room for if not given. The segment that takes a larger one grows by
    /// it.
    pub record_bytes_max: Option<u32>,
    /// When a write is answered.
    pub mode: Mode,
    /// What to do with bytes that were synced and cannot be read any more.
    pub damage: Damage,
    /// Where each segment gets a second name (or a copy, on another file system) once it is sealed and synced. It is
    /// not trimmed before that.
    pub archive_dir: Option<PathBuf>,
    /// Which log this must be (the cluster's or node's id). A directory that belongs to another one is
    /// refused; if not given, the log found there is continued, or a new id is drawn.
    pub log_id: Option<Uuid>,
    /// What the log is known to have. Less than that is reported.
    pub known: Option<Stretch>,
}

/// A stretch of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The oldest segment that is still needed.
    pub from: SegmentId,
    /// Where the records end that were synced.
    pub to: Position,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            segment_bytes: 32 << 20,
            record_bytes_max: None,
            mode: Mode::default(),
            damage: Damage::Refuse,
            archive_dir: None,
            log_id: None,
            known: None,
        }
    }
}

/// When a write is durable in the sense of [`crate::CommitLog::wait_durable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When it is synced; everybody who waits shares the next sync.
    Batch,
    /// When it is synced; a sync waits this long for company.
    Group {
        /// How long.
        window_millis: u64,
    },
    /// When it has reached the kernel; a sync follows within the period, and writers wait if it is late.
    Periodic {
        /// The time between syncs.
        period_millis: u64,
    },
}

impl Default for Mode {
    /// Compat: `commitlog_sync: periodic` every 10 seconds, the default of Cassandra 5.
    fn default() -> Self {
        Self::Periodic {
            period_millis: 10_000,
        }
    }
}

/// What to do with damaged bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Damage {
    /// The log does not open.
    #[default]
    Refuse,
    /// What cannot be read is skipped and reported.
    Skip,
}

const SEGMENT_BYTES_MIN: u32 = 4096;
/// Offsets are kept in 32 bits, and Cassandra's tools read positions as signed ones. Also of a segment that grew.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 1 << 30;
/// What a segment has beside its only record.
const BESIDE_RECORD_BYTES: u32 = (HEADER_BYTES + RECORD_OVERHEAD_BYTES + SEAL_BYTES) as u32;

impl Options {
    pub(crate) fn check(&self) -> Result<()> {
        if !(SEGMENT_BYTES_MIN..=SEGMENT_BYTES_MAX).contains(&self.segment_bytes) {
            let rule = format!(
                "segments have {SEGMENT_BYTES_MIN} to {SEGMENT_BYTES_MAX} bytes, not {}",
                self.segment_bytes
            );
            return Err(Error::Refused { rule });
        }
        let room = SEGMENT_BYTES_MAX - BESIDE_RECORD_BYTES;
        match self.record_bytes_max {
            Some(max) if max > room || (max as usize) < ENVELOPE_BYTES => {
                let rule = format!("the largest record has {ENVELOPE_BYTES} to {room} bytes, not {max}");
                Err(Error::Refused { rule })
            }
            _ => Ok(()),
        }
    }

    /// What a segment has room for.
    fn record_room(&self) -> u32 {
        self.segment_bytes - BESIDE_RECORD_BYTES
    }

    /// The largest record.
    pub fn record_max(&self) -> u32 {
        self.record_bytes_max.unwrap_or(self.record_room())
    }
}
