//! Options of a new SSTable.

use ilion_types::{Partitioner, Uuid};

use crate::{CommitLogInterval, DataFile, EncodingStats, Format, StatsMetadata, TransactionKind};

/// Options of a new SSTable.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// The partitioner of the keys.
    pub partitioner: Partitioner,
    /// Expected number of partitions, for the size of the Bloom filter. With more partitions, it has more false positives.
    pub estimated_partitions: u64,
    /// The intervals of the commit log that the rows come from.
    pub commit_log_intervals: Vec<CommitLogInterval>,
    /// Times in rows are stored as differences to these minima, which may be below the rows' minima. Values above are correct,
    /// too, but some times then need more bytes.
    pub encoding_stats: EncodingStats,
    /// True if static rows may be added. If false, the file has no static columns, so that reads need not look for them.
    pub has_static_rows: bool,
    /// Level of leveled compaction.
    pub level: u32,
    /// When the data was repaired, in milliseconds since 1970; 0 if it was not repaired.
    pub repaired_at_millis: i64,
    /// The repair session that the SSTable belongs to.
    pub pending_repair: Option<Uuid>,
    /// The node whose commit log the intervals refer to.
    pub originating_host: Option<Uuid>,
    /// A flush uses a fast compressor, regardless of the table's compression; a compaction uses the table's.
    pub kind: TransactionKind,
    /// Size of a block of the row index in bytes; `None` uses Cassandra's default for the format.
    pub column_index_bytes: Option<u32>,
    /// True if a token map is written, too.
    pub writes_token_map: bool,
    /// Which rows get an entry in a cell map; `None` writes no cell map.
    pub cell_map: Option<CellMapLimits>,
}

/// Which rows get an entry in the cell map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellMapLimits {
    /// Minimum size of a row in Data.db.
    pub row_bytes_min: u32,
    /// Minimum number of bytes of a row per byte of its entry.
    pub row_bytes_per_map_byte: u32,
}

impl Default for CellMapLimits {
    /// Rows of at least half a default chunk, since most of these have their own chunk. The size of the map is at most one hundredth
    /// of that of its rows.
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
    /// Size of a block of the row index in bytes.
    pub(super) fn block_bytes(&self, format: Format) -> u32 {
        self.column_index_bytes.unwrap_or(match format {
            Format::Big => SORTED_BLOCK_BYTES_DEFAULT,
            Format::Bti => TRIE_BLOCK_BYTES_DEFAULT,
        })
    }

    /// Adds to the statistics the values that do not come from the rows.
    pub(super) fn complete(&self, stats: StatsMetadata, data: &DataFile) -> StatsMetadata {
        let mut stats = StatsMetadata {
            compression_ratio: data.compression_ratio,
            level: self.level,
            repaired_at_millis: self.repaired_at_millis,
            pending_repair: self.pending_repair,
            originating_host: self.originating_host,
            ..stats
        };
        stats.cover(&self.commit_log_intervals);
        stats
    }
}
