//! [`Error`]s of the log.

use std::path::PathBuf;

use crate::Position;

/// The result of an operation on the log.
pub type Result<T> = std::result::Result<T, Error>;

/// Why the receiver of replayed records refused one.
pub type ReplayFailure = Box<dyn std::error::Error + Send + Sync>;

/// Errors of the log. The variants differ in who must act.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Bytes that were already synced break the format. Restore the file, or open with
    /// `Damage::Skip` and lose the unreadable records.
    #[error("commit log {} is damaged at offset {offset}: expected {expected}", file.display())]
    Corrupt {
        /// The segment's file.
        file: PathBuf,
        /// Offset of the first damaged byte.
        offset: u64,
        /// What the format expects at the offset.
        expected: &'static str,
    },
    /// The operating system returned an error; the log stays open, and the caller may try again.
    #[error(transparent)]
    Io(#[from] ilion_env::Error),
    /// The caller broke a rule of the log.
    #[error("the commit log refuses this: {rule}")]
    Refused {
        /// The rule, with the numbers that matter.
        rule: String,
    },
    /// A write or sync failed earlier. Nothing more can be written: restart the process after the disk is
    /// repaired.
    #[error("the commit log stopped for good: {reason}")]
    Poisoned {
        /// The failure that stopped the log.
        reason: String,
    },
    /// The receiver of replayed records refused one.
    #[error("replay stopped at {position}: {source}")]
    Replay {
        /// The record's position.
        position: Position,
        /// The receiver's error.
        source: ReplayFailure,
    },
    /// All records were replayed, and the receiver refused the result.
    #[error("{0}")]
    Misunderstood(ReplayFailure),
    /// The space for captured records is used up: a consumer must remove segments. The record is not in the log.
    #[error("the space for captured changes is used up ({used_bytes} bytes)")]
    CaptureFull {
        /// Bytes that captured segments take.
        used_bytes: u64,
    },
    /// The log is being closed.
    #[error("the commit log is closed")]
    Closed,
}

impl Error {
    pub(crate) fn refused(rule: impl Into<String>) -> Self {
        Self::Refused { rule: rule.into() }
    }
}
