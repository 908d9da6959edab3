//! What a request is counted by, beside its I/O.

/// What is counted. Numbers of files are per partition that was read: a file that two partitions were looked
/// for in counts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Count {
    /// SSTables of the tables that were read.
    SSTablesConsidered,
    /// SSTables that were asked for partitions.
    SSTablesTouched,
    /// Memtables that had something.
    Memtables,
    /// Partitions that were looked into.
    Partitions,
    /// Rows that live and were looked at, given or not.
    Rows,
    /// Tombstones that were met, but for those past gc grace.
    Tombstones,
    /// Rows of the answer.
    RowsReturned,
    /// Bytes of values of the answer.
    BytesReturned,
    /// SSTables left alone: the key is not between their first and last one.
    SkippedByKeyRange,
    /// Left alone: the token map or the Bloom filter knows that they do not have the key.
    SkippedByFilter,
    /// Left alone: the sorted view of the table knows that they do not have the key.
    SkippedBySortedView,
    /// Left alone: their clusterings lie elsewhere.
    SkippedByClustering,
    /// Left alone: everything that was wanted was found in newer data.
    SkippedByTimestamp,
    /// Left alone: the partition was deleted after the newest data in them.
    SkippedByDeletion,
    /// Chunks that came from the chunk cache.
    CachedChunks,
    /// Their bytes, uncompressed.
    CachedBytes,
    /// Places of partitions that came from the key cache.
    CachedKeys,
    /// Partitions that came from the row cache.
    CachedPartitions,
    /// Nanoseconds of waiting for a partition that somebody else held.
    LockNanos,
    /// Nanoseconds of waiting for memory of memtables or for compactions that are behind.
    ThrottleNanos,
    /// Nanoseconds of waiting for the commit log to be durable.
    LogNanos,
}

impl Count {
    /// All of them.
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

    /// As tables, logs and metrics spell it.
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

/// How many there are.
pub(crate) const COUNTS: usize = Count::ALL.len();
/// So many counts, the first ones, are of nearly every statement. The others are looked at only if one of them was added to.
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
