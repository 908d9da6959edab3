//! STATS of Statistics.db: what is known of an SSTable's contents without reading them.

use ilion_rows::{NO_DELETION_TIME, NO_TTL};
use uuid::Uuid;

/// A place in the commit log, as Cassandra files name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitLogPosition {
    /// Id of the segment; -1 for none.
    pub segment: i64,
    /// Offset in the segment.
    pub offset: i32,
}

impl CommitLogPosition {
    /// No position.
    pub const NONE: Self = Self {
        segment: -1,
        offset: 0,
    };
}

/// What Statistics.db says about the contents.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsMetadata {
    /// Least timestamp.
    pub min_timestamp_micros: i64,
    /// Greatest timestamp.
    pub max_timestamp_micros: i64,
    /// Least local deletion time; [`NO_DELETION_TIME`] if nothing is deleted or expires.
    pub min_local_deletion_secs: u32,
    /// Greatest local deletion time; [`NO_DELETION_TIME`] if something is neither deleted nor expires.
    pub max_local_deletion_secs: u32,
    /// Least TTL.
    pub min_ttl_secs: u32,
    /// Greatest TTL.
    pub max_ttl_secs: u32,
    /// Compressed by uncompressed size; -1 if uncompressed.
    pub compression_ratio: f64,
    /// Level of leveled compaction.
    pub level: u32,
    /// Milliseconds since 1970 when it was repaired; 0 if it was not.
    pub repaired_at_millis: i64,
    /// True if counter cells hold shards of the days before Cassandra 2.1.
    pub has_legacy_counter_shards: bool,
    /// Cells.
    pub total_columns: u64,
    /// Rows, static rows with content included.
    pub total_rows: u64,
    /// Ranges of the commit log whose mutations it holds.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Session of the repair that it takes part in.
    pub pending_repair: Option<Uuid>,
    /// Held for a transient replica.
    pub is_transient: bool,
    /// Host that wrote it.
    pub originating_host: Option<Uuid>,
    /// False if it is known that no whole partition is deleted in it.
    pub has_partition_deletions: bool,
}

impl StatsMetadata {
    /// Nothing known: bounds that hold whatever the rows are.
    pub fn unknown() -> Self {
        Self {
            min_timestamp_micros: i64::MIN + 1,
            max_timestamp_micros: i64::MAX,
            min_local_deletion_secs: 0,
            max_local_deletion_secs: NO_DELETION_TIME,
            min_ttl_secs: NO_TTL,
            max_ttl_secs: u32::MAX,
            compression_ratio: -1.0,
            level: 0,
            repaired_at_millis: 0,
            has_legacy_counter_shards: false,
            total_columns: 0,
            total_rows: 0,
            commit_log_intervals: Vec::new(),
            pending_repair: None,
            is_transient: false,
            originating_host: None,
            has_partition_deletions: true,
        }
    }
}
