//! What a strategy knows of an SSTable, and what it answers.

use std::path::PathBuf;

/// An SSTable as a strategy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Path of its Data.db: its identity.
    pub id: PathBuf,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Newest write in it, microseconds.
    pub max_timestamp_micros: i64,
    /// Share of its cells that are tombstones old enough to be purged, 0 to 1.
    pub droppable_ratio: f64,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Nothing.
    Nothing,
    /// Merge these.
    Merge(Vec<PathBuf>),
}
