//! The counts of a request, besides its I/O.

/// What is counted. Files are counted per partition that was read: a file that was considered for two partitions counts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Count {
    /// SSTables of the tables that were read.
    SSTablesConsidered,
    /// SSTables in which partitions were looked up.
    SSTablesTouched,
    /// Memtables that had data.
    Memtables,
    /// Partitions that were read.
    Partitions,
    /// Live rows that were read, returned or not.
    Rows,
    /// Tombstones that were read, without those past gc grace.
    Tombstones,
    /// Rows of the answer.
    RowsReturned,
    /// Bytes of the values of the answer.
    BytesReturned,
    /// SSTables skipped: the key is outside of their first and last key.
    SkippedByKeyRange,
    /// SSTables skipped: token map or Bloom filter exclude the key.
    SkippedByFilter,
    /// SSTables skipped: the sorted view of the table excludes the key.
    SkippedBySortedView,
    /// SSTables skipped: their clusterings are outside of the selected slices.
    SkippedByClustering,
    /// SSTables skipped: all selected data was found in newer sources.
    SkippedByTimestamp,
    /// SSTables skipped: the partition was deleted after their newest data.
    SkippedByDeletion,
    /// Chunks that came from the chunk cache.
    CachedChunks,
    /// Bytes of these chunks, uncompressed.
    CachedBytes,
    /// Positions of partitions that came from the key cache.
    CachedKeys,
    /// Partitions that came from the row cache.
    CachedPartitions,
    /// Nanoseconds of waiting for the lock of a partition.
    LockNanos,
    /// Nanoseconds of waiting for memtable memory, or for compactions that are behind.
    ThrottleNanos,
    /// Nanoseconds of waiting for the commit log to be durable.
    LogNanos,
}

impl Count {
    /// All counts.
    pub const ALL: [Self; 21] = [
        Self::SSTablesConsidered,
        Self::SSTablesTouched,
        Self::Memtables,
        Self::Partitions,
        Self::Rows,
        Self::Tombstones,
        Self::RowsReturned,
        Self::BytesReturned,
        Self::SkippedByKeyRange,
        Self::SkippedByFilter,
        Self::SkippedBySortedView,
        Self::SkippedByClustering,
        Self::SkippedByTimestamp,
        Self::SkippedByDeletion,
        Self::CachedChunks,
        Self::CachedBytes,
        Self::CachedKeys,
        Self::CachedPartitions,
        Self::LockNanos,
        Self::ThrottleNanos,
        Self::LogNanos,
    ];

    /// Its name in tables, logs and metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::SSTablesConsidered => "sstables_considered",
            Self::SSTablesTouched => "sstables_touched",
            Self::Memtables => "memtables",
            Self::Partitions => "partitions_scanned",
            Self::Rows => "rows_scanned",
            Self::Tombstones => "tombstones_scanned",
            Self::RowsReturned => "rows_returned",
            Self::BytesReturned => "bytes_returned",
            Self::SkippedByKeyRange => "sstables_skipped_by_key_range",
            Self::SkippedByFilter => "sstables_skipped_by_filter",
            Self::SkippedBySortedView => "sstables_skipped_by_sorted_view",
            Self::SkippedByClustering => "sstables_skipped_by_clustering",
            Self::SkippedByTimestamp => "sstables_skipped_by_timestamp",
            Self::SkippedByDeletion => "sstables_skipped_by_deletion",
            Self::CachedChunks => "cached_chunks",
            Self::CachedBytes => "cached_bytes",
            Self::CachedKeys => "cached_keys",
            Self::CachedPartitions => "cached_partitions",
            Self::LockNanos => "lock_wait_nanos",
            Self::ThrottleNanos => "throttle_nanos",
            Self::LogNanos => "log_wait_nanos",
        }
    }
}

/// Number of counts.
pub(crate) const COUNTS: usize = Count::ALL.len();
/// Number of leading counts that nearly every statement uses. The others are read only if one of them was increased.
pub(crate) const COMMON: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_count_has_its_place_and_a_name_of_its_own() {
        for (index, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count as usize, index);
        }
        assert_eq!(Count::ALL[COMMON - 1], Count::BytesReturned);
        let names: std::collections::BTreeSet<_> = Count::ALL.map(Count::name).into();
        assert_eq!(names.len(), Count::ALL.len());
    }
}
