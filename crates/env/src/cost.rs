//! What a request costs: its I/O ([`crate::account`]) and what it made the layers above look at.
//!
//! Counts are plain thread-local numbers, so that counting is always on and costs an addition. The outermost [`CostScope`] of a thread
//! begins at zero, one within it remembers where they stood.

use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Instant;

use crate::account::RequestIo;
use crate::books::{BOOKS, Books};

/// What is counted beside I/O. Numbers of files are per partition that was read: a file that two partitions were looked
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
    pub const ALL: [Self; 20] = [
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

/// Counts for this thread's request.
#[inline]
pub fn add(count: Count, amount: u64) {
    BOOKS.with(|books| books.add(count as usize, amount));
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

    #[cold]
    fn add_io(&mut self, io: RequestIo) -> u64 {
        self.io = self.io + io;
        io.bytes_read
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
    let outer = BOOKS.with(|books| {
        if books.is_open.replace(true) {
            return Some(Box::new(Start::now(books)));
        }
        books.clear();
        None
    });
    CostScope {
        outer,
        this_thread: PhantomData,
    }
}

/// What this thread has counted since [`begin`].
#[derive(Debug)]
pub struct CostScope {
    /// Where everything stood, if this is within another scope; otherwise it stood at zero.
    outer: Option<Box<Start>>,
    this_thread: PhantomData<*const ()>,
}

#[derive(Debug)]
struct Start {
    io: RequestIo,
    counts: [u64; COUNTS],
}

impl Start {
    #[cold]
    fn now(books: &Books) -> Self {
        Self {
            io: books.charged(),
            counts: books.counts.each_ref().map(Cell::get),
        }
    }
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
        let now = BOOKS.with(|books| books.counts[count as usize].get());
        match &self.outer {
            None => now,
            Some(outer) => now.wrapping_sub(outer.counts[count as usize]),
        }
    }

    /// Adds what was counted until now; gives the bytes read among it.
    #[inline]
    pub fn add_to(&self, sum: &mut Cost) -> u64 {
        let io = match &self.outer {
            None => BOOKS.with(|books| books.add_to(&mut sum.counts)),
            Some(outer) => Some(outer.add_later_to(sum)),
        };
        match io {
            None => 0,
            Some(io) => sum.add_io(io),
        }
    }
}

impl Start {
    /// Adds what was counted since; gives the I/O.
    #[cold]
    fn add_later_to(&self, sum: &mut Cost) -> RequestIo {
        BOOKS.with(|books| {
            for ((sum, now), before) in sum.counts.iter_mut().zip(&books.counts).zip(&self.counts) {
                *sum = sum.wrapping_add(now.get()).wrapping_sub(*before);
            }
            books.charged() - self.io
        })
    }
}

impl Drop for CostScope {
    #[inline]
    fn drop(&mut self) {
        if self.outer.is_none() {
            BOOKS.with(|books| books.is_open.set(false));
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
        assert_eq!(Count::ALL[COMMON - 1], Count::BytesReturned);
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
