//! What a request costs: its I/O ([`crate::account`]) and what it made the layers above look at.
//!
//! Counts are plain thread-local numbers, so that counting is always on and costs an addition. The outermost [`CostScope`] of a thread
//! begins at zero, one within it remembers where they stood.

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
    /// A scope is open: counts belong to it.
    static IS_OPEN: Cell<bool> = const { Cell::new(false) };
    /// What was counted since the outermost scope began.
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

    /// See [`amplification_percent`].
    pub fn amplification_percent(&self) -> u64 {
        amplification_percent(self.io.bytes_read, self.of(Count::BytesReturned))
    }
}

impl std::ops::AddAssign<&Self> for Cost {
    #[inline]
    fn add_assign(&mut self, other: &Self) {
        if other.io != RequestIo::default() {
            self.io = self.io + other.io;
        }
        for (sum, more) in self.counts.iter_mut().zip(&other.counts) {
            *sum = sum.wrapping_add(*more);
        }
    }
}

/// Starts to count what this thread does for a request.
#[inline]
pub fn begin() -> CostScope {
    let outer = if IS_OPEN.replace(true) {
        Some(Box::new(COUNTED.get()))
    } else {
        COUNTED.set([0; COUNTS]);
        None
    };
    CostScope {
        io: account::begin(),
        outer,
    }
}

/// What this thread has counted since [`begin`].
#[derive(Debug)]
pub struct CostScope {
    io: account::Scope,
    /// Where counts stood, if this is within another scope.
    outer: Option<Box<[u64; COUNTS]>>,
}

impl CostScope {
    /// What was counted until now.
    pub fn so_far(&self) -> Cost {
        let mut cost = Cost::default();
        self.add_to(&mut cost);
        cost
    }

    /// How much of this until now.
    #[inline]
    pub fn of(&self, count: Count) -> u64 {
        let now = COUNTED.with(|counted| counted.as_array_of_cells()[count as usize].get());
        match &self.outer {
            None => now,
            Some(outer) => now.wrapping_sub(outer[count as usize]),
        }
    }

    /// Adds what was counted until now; gives the bytes read among it.
    #[inline]
    pub fn add_to(&self, sum: &mut Cost) -> u64 {
        let mut bytes_read = 0;
        if !self.io.is_idle() {
            let io = self.io.so_far();
            sum.io = sum.io + io;
            bytes_read = io.bytes_read;
        }
        COUNTED.with(|counted| {
            let counted = counted.as_array_of_cells();
            for (sum, count) in sum.counts.iter_mut().zip(counted) {
                *sum = sum.wrapping_add(count.get());
            }
        });
        if let Some(outer) = &self.outer {
            subtract(sum, outer);
        }
        bytes_read
    }
}

#[cold]
fn subtract(sum: &mut Cost, before: &[u64; COUNTS]) {
    for (sum, before) in sum.counts.iter_mut().zip(before) {
        *sum = sum.wrapping_sub(*before);
    }
}

impl Drop for CostScope {
    #[inline]
    fn drop(&mut self) {
        if self.outer.is_none() {
            IS_OPEN.set(false);
        }
    }
}

/// Bytes read from disk for each byte of the answer, in hundredths. An answer without bytes counts as one byte.
#[inline]
pub fn amplification_percent(bytes_read: u64, bytes_returned: u64) -> u64 {
    match bytes_read {
        0 => 0,
        read => read.saturating_mul(100) / bytes_returned.max(1),
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
