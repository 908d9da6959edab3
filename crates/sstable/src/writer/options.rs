//! What the owner of a new SSTable decides.

use ilion_types::{Partitioner, Uuid};

use crate::{
    CommitLogInterval, CommitLogPosition, DataFile, EncodingStats, Format, StatsMetadata, TransactionKind,
};

/// What the owner of a new SSTable decides.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// Orders the keys.
    pub partitioner: Partitioner,
    /// Sizes the Bloom filter; more partitions than this make it answer worse, never wrong.
    pub estimated_partitions: u64,
    /// What of the commit log the rows come from.
    pub commit_log_intervals: Vec<CommitLogInterval>,
    /// What times in rows are stored relative to. Less than the rows' minimum is good, more is correct but longer.
    pub encoding_stats: EncodingStats,
    /// Static rows may come. Without any, the file says that it has no static columns, so that reads need not look for them.
    pub has_static_rows: bool,
    /// Level of leveled compaction.
    pub level: u32,
    /// When it was repaired, in milliseconds since 1970; 0 if it was not.
    pub repaired_at_millis: i64,
    /// The repair session that is to decide about it.
    pub pending_repair: Option<Uuid>,
    /// The node that wrote the commit log: the intervals mean something there only.
    pub originating_host: Option<Uuid>,
    /// A flush compresses fast, whatever the table says; a compaction as the table says.
    pub kind: TransactionKind,
    /// Bytes of rows under one entry of a partition's row index; `None`: what Cassandra takes for the format.
    pub column_index_bytes: Option<u32>,
    /// A token map is written beside the other components.
    pub writes_token_map: bool,
    /// A cell map is written beside the other components, if there are rows for it.
    pub cell_map: Option<CellMapLimits>,
}

/// Which rows the cell map has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellMapLimits {
    /// Bytes of a row in Data.db, at least.
    pub row_bytes_min: u32,
    /// So many bytes of a row, at least, for each byte that the map takes for it.
    pub row_bytes_per_map_byte: u32,
}

impl Default for CellMapLimits {
    /// Rows from half a usual chunk on, for most of them lie in a chunk of their own; and at most one hundredth of them.
    fn default() -> Self {
        Self {
            row_bytes_min: 8 << 10,
            row_bytes_per_map_byte: 100,
        }
    }
}

/// Cassandra's `column_index_size`, for BIG.
const SORTED_BLOCK_BYTES_DEFAULT: u32 = 64 << 10;
/// Cassandra's `row_index_granularity`, for BTI.
const TRIE_BLOCK_BYTES_DEFAULT: u32 = 16 << 10;

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            partitioner: Partitioner::default(),
            estimated_partitions: 1024,
            commit_log_intervals: Vec::new(),
            encoding_stats: EncodingStats::NONE,
            has_static_rows: true,
            level: 0,
            repaired_at_millis: 0,
            pending_repair: None,
            originating_host: None,
            kind: TransactionKind::Compaction,
            column_index_bytes: None,
            writes_token_map: true,
            cell_map: Some(CellMapLimits::default()),
        }
    }
}

impl WriterOptions {
    /// Bytes of a block of a row index.
    pub(super) fn block_bytes(&self, format: Format) -> u32 {
        self.column_index_bytes.unwrap_or(match format {
            Format::Big => SORTED_BLOCK_BYTES_DEFAULT,
            Format::Bti => TRIE_BLOCK_BYTES_DEFAULT,
        })
    }

    /// Adds what the rows do not tell to the statistics.
    pub(super) fn complete(&self, stats: StatsMetadata, data: &DataFile) -> StatsMetadata {
        let position = |(segment, offset): (u64, u32)| CommitLogPosition {
            segment: segment.cast_signed(),
            offset: i32::try_from(offset).unwrap_or(i32::MAX),
        };
        let intervals = self.commit_log_intervals.iter();
        StatsMetadata {
            compression_ratio: data.compression_ratio,
            level: self.level,
            repaired_at_millis: self.repaired_at_millis,
            commit_log_intervals: intervals
                .map(|(start, end)| (position(*start), position(*end)))
                .collect(),
            pending_repair: self.pending_repair,
            originating_host: self.originating_host,
            ..stats
        }
    }
}
