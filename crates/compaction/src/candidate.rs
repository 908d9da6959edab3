//! Input and output of a strategy: [`Candidate`], [`Situation`], [`Choice`].

use std::path::PathBuf;

use ilion_rows::DecoratedKey;

use crate::space;

/// Number of levels of leveled compaction, level 0 included.
pub(crate) const LEVELS: usize = 9;

/// An SSTable as a strategy sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Path of its Data.db, which identifies the SSTable.
    pub id: PathBuf,
    /// Bytes on disk.
    pub size_bytes: u64,
    /// Approximate number of partitions.
    pub partitions: u64,
    /// Its first partition.
    pub first: DecoratedKey,
    /// Its last partition.
    pub last: DecoratedKey,
    /// Level of leveled compaction that the SSTable was written for.
    pub level: u32,
    /// Timestamp of its oldest write, in the unit of the clients' timestamps.
    pub min_timestamp: i64,
    /// Timestamp of its newest write.
    pub max_timestamp: i64,
    /// The second at which all data of the SSTable is dead; `u32::MAX` if part of it lives for ever.
    pub max_local_deletion_secs: u32,
    /// Share of its cells that are tombstones old enough to be purged, 0 to 1.
    pub droppable_ratio: f64,
    /// Time at which the SSTable was written, in seconds since 1970.
    pub created_secs: i64,
    /// True if the SSTable is an input of a running compaction.
    pub is_compacting: bool,
}

impl Candidate {
    /// True if both SSTables may have the same key.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    /// Share of the ring from its first to its last partition, 0 to 1.
    pub(crate) fn span(&self) -> f64 {
        space::span(&self.first, &self.last, self.partitions)
    }

    /// Bytes per share of the ring: the size that the file would have if it spanned the whole ring.
    pub(crate) fn density(&self) -> f64 {
        self.size_bytes as f64 / self.span()
    }

    /// True if all data of the SSTable is dead and past gc grace.
    pub(crate) fn is_expired(&self, gc_before_secs: u32) -> bool {
        self.max_local_deletion_secs < gc_before_secs
    }
}

/// What a strategy knows about a table at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Situation {
    /// All SSTables of the table.
    pub candidates: Vec<Candidate>,
    /// Timestamp of the oldest write in memtables; `i64::MAX` if they are empty.
    pub memtable_min_timestamp: i64,
    /// Seconds since 1970.
    pub now_secs: i64,
    /// Tombstones from before this second are past gc grace.
    pub gc_before_secs: u32,
    /// Average size of a flush of this table; 0 before the first flush.
    pub flush_bytes: u64,
    /// A random number that chooses among equal candidates.
    pub random: u64,
}

impl Situation {
    /// The candidates that are not in a running compaction, in their order.
    pub(crate) fn idle(&self) -> impl Iterator<Item = &Candidate> {
        self.candidates
            .iter()
            .filter(|candidate| !candidate.is_compacting)
    }
}

/// What a strategy remembers from one choice to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// When the strategy last looked for expired SSTables, in seconds since 1970.
    pub(crate) expired_check_secs: Option<i64>,
    /// Start of the newest time window that the strategy has seen.
    pub(crate) newest_window_secs: i64,
    /// For each level, the number of choices since the level was last the output.
    pub(crate) starved: [u32; LEVELS],
    /// The flush size by which density levels are divided.
    pub(crate) flush_bytes: u64,
}

/// How the result of a compaction is cut into SSTables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// One SSTable.
    Whole,
    /// A new SSTable whenever this size is reached.
    UpTo {
        /// Bytes on disk.
        bytes: u64,
    },
    /// One SSTable for each of this many equal parts of the ring.
    Shards(u32),
    /// The first SSTable gets half of the expected size, the next one half of the rest, and so on.
    Halves,
}

/// The next compaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// SSTables that are merged.
    pub inputs: Vec<PathBuf>,
    /// SSTables that are dropped unread: all their data is expired, and hides no data elsewhere.
    pub expired: Vec<PathBuf>,
    /// How the result is cut.
    pub output: Output,
    /// Level of the result.
    pub level: u32,
}

impl Choice {
    /// Merges the inputs into one SSTable.
    pub(crate) fn merge<'a>(inputs: impl IntoIterator<Item = &'a Candidate>) -> Self {
        Self {
            inputs: ids(inputs),
            expired: Vec::new(),
            output: Output::Whole,
            level: 0,
        }
    }
}

pub(crate) fn ids<'a>(candidates: impl IntoIterator<Item = &'a Candidate>) -> Vec<PathBuf> {
    candidates
        .into_iter()
        .map(|candidate| candidate.id.clone())
        .collect()
}
