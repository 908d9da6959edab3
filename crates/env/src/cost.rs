//! What a request costs: its I/O ([`crate::account`]) and what it made the layers above look at.
//!
//! Counts are plain thread-local numbers that only ever grow, so that counting is always on and costs an addition. A
//! [`CostScope`] remembers where they stood; scopes nest.

use std::cell::Cell;
use std::time::Instant;

use crate::account::{self, RequestIo};

/// What is counted beside I/O. Numbers of files are per partition that was read: a file that two partitions were looked
/// for in counts twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Count {
    /// SSTables of the tables that were read.
    SSTablesConsidered,
    /// Left alone: the key is not between their first and last one.
    SkippedByKeyRange,
    /// Left alone: the token map or the Bloom filter knows that they do not have the key.
    SkippedByFilter,
    /// Left alone: their clusterings lie elsewhere.
    SkippedByClustering,
    /// Left alone: everything that was wanted was found in newer data.
    SkippedByTimestamp,
    /// Left alone: the partition was deleted after the newest data in them.
    SkippedByDeletion,
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
    /// Chunks that came from the chunk cache.
    CachedChunks,
    /// Their bytes, uncompressed.
    CachedBytes,
    /// Places of partitions that came from the key cache.
    CachedKeys,
    /// Partitions that came from the row cache.
    CachedPartitions,
    /// Rows of the answer.
    RowsReturned,
    /// Bytes of values of the answer.
    BytesReturned,
    /// Nanoseconds of waiting for a partition that somebody else held.
    LockNanos,
    /// Nanoseconds of waiting for memory of memtables or for compactions that are behind.
    ThrottleNanos,
    /// Nanoseconds of waiting for the commit log to be durable.
    LogNanos,
}

impl Count {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::SSTablesConsidered,
        Self::SkippedByKeyRange,
        Self::SkippedByFilter,
        Self::SkippedByClustering,
        Self::SkippedByTimestamp,
        Self::SkippedByDeletion,
        Self::SSTablesTouched,
        Self::Memtables,
        Self::Partitions,
        Self::Rows,
        Self::Tombstones,
        Self::CachedChunks,
        Self::CachedBytes,
        Self::CachedKeys,
        Self::CachedPartitions,
        Self::RowsReturned,
        Self::BytesReturned,
        Self::LockNanos,
        Self::ThrottleNanos,
        Self::LogNanos,
    ];

    /// As tables, logs and metrics spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::SSTablesConsidered => "sstables_considered",
            Self::SkippedByKeyRange => "sstables_skipped_by_key_range",
            Self::SkippedByFilter => "sstables_skipped_by_filter",
            Self::SkippedByClustering => "sstables_skipped_by_clustering",
            Self::SkippedByTimestamp => "sstables_skipped_by_timestamp",
            Self::SkippedByDeletion => "sstables_skipped_by_deletion",
            Self::SSTablesTouched => "sstables_touched",
            Self::Memtables => "memtables",
            Self::Partitions => "partitions_scanned",
            Self::Rows => "rows_scanned",
            Self::Tombstones => "tombstones_scanned",
            Self::CachedChunks => "cached_chunks",
            Self::CachedBytes => "cached_bytes",
            Self::CachedKeys => "cached_keys",
            Self::CachedPartitions => "cached_partitions",
            Self::RowsReturned => "rows_returned",
            Self::BytesReturned => "bytes_returned",
            Self::LockNanos => "lock_wait_nanos",
            Self::ThrottleNanos => "throttle_nanos",
            Self::LogNanos => "log_wait_nanos",
        }
    }
}

const COUNTS: usize = Count::ALL.len();

thread_local! {
    static COUNTED: Cell<[u64; COUNTS]> = const { Cell::new([0; COUNTS]) };
}

/// Counts for this thread's request.
#[inline]
pub fn add(count: Count, amount: u64) {
    COUNTED.with(|counted| {
        let cell = &counted.as_array_of_cells()[count as usize];
        cell.set(cell.get().wrapping_add(amount));
    });
}

/// Runs something that may wait, and counts how long it took.
pub fn timed<T>(count: Count, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let done = work();
    add(
        count,
        u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX),
    );
    done
}

/// What a request cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Reads, writes and syncs of files, and the time that they took.
    pub io: RequestIo,
    counts: [u64; COUNTS],
}

impl Cost {
    /// How much of this.
    #[inline]
    pub fn of(&self, count: Count) -> u64 {
        self.counts[count as usize]
    }

    /// The same cost with a count put right.
    #[must_use]
    pub fn with(mut self, count: Count, amount: u64) -> Self {
        self.counts[count as usize] = amount;
        self
    }

    /// Bytes read from disk for each byte of the answer, in hundredths. An answer without bytes counts as one byte.
    #[inline]
    pub fn amplification_percent(&self) -> u64 {
        let read = self.io.bytes_read;
        if read == 0 {
            return 0;
        }
        read.saturating_mul(100) / self.of(Count::BytesReturned).max(1)
    }
}

impl std::ops::AddAssign for Cost {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.io = self.io + other.io;
        for (sum, more) in self.counts.iter_mut().zip(other.counts) {
            *sum = sum.wrapping_add(more);
        }
    }
}

/// Starts to count what this thread does for a request.
#[inline]
pub fn begin() -> CostScope {
    CostScope {
        io: account::begin(),
        counts: COUNTED.get(),
    }
}

/// What this thread has counted since [`begin`].
#[derive(Debug)]
pub struct CostScope {
    io: account::Scope,
    counts: [u64; COUNTS],
}

impl CostScope {
    /// What was counted until now.
    #[inline]
    pub fn so_far(&self) -> Cost {
        let mut counts = COUNTED.get();
        for (count, before) in counts.iter_mut().zip(self.counts) {
            *count = count.wrapping_sub(before);
        }
        Cost {
            io: self.io.so_far(),
            counts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_those_of_the_scope_and_scopes_nest() {
        add(Count::Rows, 5);
        let outer = begin();
        add(Count::Rows, 1);
        let inner = begin();
        add(Count::Rows, 2);
        add(Count::Tombstones, 7);
        assert_eq!(inner.so_far().of(Count::Rows), 2);
        let cost = outer.so_far();
        assert_eq!((cost.of(Count::Rows), cost.of(Count::Tombstones)), (3, 7));
        assert_eq!(cost.of(Count::Memtables), 0);
    }

    #[test]
    fn every_count_has_its_place_and_a_name_of_its_own() {
        for (index, count) in Count::ALL.into_iter().enumerate() {
            assert_eq!(count as usize, index);
        }
        let names: std::collections::BTreeSet<_> = Count::ALL.map(Count::name).into();
        assert_eq!(names.len(), Count::ALL.len());
    }

    #[test]
    fn amplification_is_what_was_read_over_what_was_answered() {
        let mut cost = Cost::default();
        assert_eq!(cost.amplification_percent(), 0);
        cost.io.bytes_read = 300;
        assert_eq!(cost.amplification_percent(), 30_000);
        assert_eq!(cost.with(Count::BytesReturned, 200).amplification_percent(), 150);
    }
}
