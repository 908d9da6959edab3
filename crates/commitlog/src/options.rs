//! [`Options`] of a log.

use std::path::PathBuf;
use std::sync::Arc;

use uuid::Uuid;

use crate::frame::{HEADER_BYTES, RECORD_OVERHEAD_BYTES, SEAL_BYTES};
use crate::{ENVELOPE_BYTES, Error, Position, ReplayProgress, Result, SegmentId};

/// How a [`crate::CommitLog`] behaves.
#[derive(Clone, Debug)]
pub struct Options {
    /// The size of a segment file.
    pub segment_bytes: u32,
    /// The largest record, envelope included; with `None` a record must fit into a segment. With a larger limit, a segment grows for a
    /// record that does not fit.
    pub record_bytes_max: Option<u32>,
    /// When a record counts as durable.
    pub mode: Mode,
    /// What to do with bytes that were synced and are damaged now.
    pub damage: Damage,
    /// The directory where each segment gets a second name (or a copy, on another file system) once it is sealed and synced. A
    /// segment is not trimmed before that. `None`: no archive.
    pub archive_dir: Option<PathBuf>,
    /// Where sealed segments with captured records are kept for consumers of changes; `None` if they are not kept.
    pub capture: Option<Capture>,
    /// The id that the log must have (the cluster's or node's id). A directory of another log is
    /// refused. With `None`, the log in the directory is continued, or a new id is made.
    pub log_id: Option<Uuid>,
    /// The stretch that the log must have. A start reports which parts of it are missing.
    pub known: Option<LogStretch>,
    /// Told how far the replay is.
    pub progress: Arc<ReplayProgress>,
    /// The log has no threads: a caller that waits for a sync does the sync, a caller that needs a segment creates it, and
    /// [`crate::CommitLog::step`] does the rest. For simulations, in which one seed decides everything.
    pub is_stepped: bool,
}

/// Change data capture: segments with captured records outlive the log in a directory of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capture {
    /// The directory. Each segment gets a second name there (or a copy, on another file system) once it is sealed and synced.
    pub dir: PathBuf,
    /// Limit for the bytes of segments that are kept for consumers, including segments that are still in the log only.
    pub bytes_max: u64,
    /// With [`WhenFull::Block`], [`crate::CommitLog::admit_captured`] refuses writes at the limit, and an append refuses captured records
    /// only at the limit plus this excess. Zero on a single node.
    pub excess_bytes: u64,
    /// What happens at this limit.
    pub when_full: WhenFull,
    /// Time between two checks for segments that consumers removed, while the space is used up.
    pub check_interval_millis: u64,
}

/// What happens when the space for captured segments is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Captured writes are refused until a consumer removes segments.
    Block,
    /// The oldest segments are removed.
    DropOldest,
}

/// A stretch of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogStretch {
    /// The oldest segment that is still needed.
    pub from: SegmentId,
    /// The end of the records that were synced.
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
            capture: None,
            log_id: None,
            known: None,
            progress: Arc::default(),
            is_stepped: false,
        }
    }
}

/// When a write is durable in the sense of [`crate::CommitLog::wait_durable`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// When the write is synced; all waiting writers share the next sync.
    Batch,
    /// When the write is synced; a sync waits for `window_millis` to cover more writes.
    Group {
        /// How long a sync waits.
        window_millis: u64,
    },
    /// When the write has reached the kernel; a sync follows within the period, and writers wait if it is late.
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
    /// Unreadable bytes are skipped and reported.
    Skip,
}

const SEGMENT_BYTES_MIN: u32 = 4096;
/// Offsets have 32 bits, and Cassandra's tools read them as signed numbers. The limit holds for a segment that grew, too.
pub(crate) const SEGMENT_BYTES_MAX: u32 = 1 << 30;
/// Bytes of a segment with one record, without the payload of that record.
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

    /// The largest record that fits into a segment.
    fn record_room(&self) -> u32 {
        self.segment_bytes - BESIDE_RECORD_BYTES
    }

    /// The largest record.
    pub(crate) fn record_max(&self) -> u32 {
        self.record_bytes_max.unwrap_or(self.record_room())
    }
}
