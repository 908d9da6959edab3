//! [`MemberFacts`]: what a node of a cluster has counted, and how far it is with its tablets; for metrics.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A tablet that this node follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabletFacts {
    /// Its number.
    pub tablet: u32,
    /// Records below this offset of its log are applied.
    pub applied: u64,
    /// Whether this node may answer reads of it.
    pub is_ready: bool,
    /// Whether its records are not applied any more.
    pub is_halted: bool,
}

/// Facts of a node of a cluster. Counts are since the start of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemberFacts {
    /// The tablets that it follows.
    pub tablets: Vec<TabletFacts>,
    /// Tablets that it still copies from others.
    pub lacking: usize,
    /// Records of tablets that it has applied, no-ops included.
    pub applied: u64,
    /// Records that the log has acknowledged, those of the meta log included.
    pub appended: u64,
    /// Records that were sent again, since their acknowledgement was lost.
    pub repeated: u64,
    /// Records that the log refused, or whose outcome is unknown.
    pub not_appended: u64,
    /// Blocks of followed tablets in which replicas came to different outcomes, so that nobody can say which of them is right.
    pub disputed: u64,
    /// No-ops that were appended for reads, since the end of a log was not known.
    pub barriers_appended: u64,
    /// Time until a read knew the ends of its logs.
    pub barriers_raised: WaitTimes,
    /// Time until this node had applied the records below them.
    pub barriers_applied: WaitTimes,
}

/// Upper bound of the first bucket; each bound is twice the previous one.
const FIRST_NANOS: u64 = 64_000;
/// Buckets with an upper bound: up to 16.8 s.
const BUCKETS: usize = 19;

/// A histogram of times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WaitTimes {
    /// The sum of all.
    pub sum_nanos: u64,
    /// Upper bounds with the number of times in each bucket, ascending; the last bound is [`u64::MAX`].
    pub buckets: Vec<(u64, u64)>,
}

/// Counts while the node runs.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub applied: AtomicU64,
    pub appended: AtomicU64,
    pub repeated: AtomicU64,
    pub not_appended: AtomicU64,
    pub disputed: AtomicU64,
    pub barriers_appended: AtomicU64,
    pub barriers_raised: WaitHistogram,
    pub barriers_applied: WaitHistogram,
}

/// Counts times.
#[derive(Debug, Default)]
pub(crate) struct WaitHistogram {
    sum_nanos: AtomicU64,
    /// The last one has no upper bound.
    counts: [AtomicU64; BUCKETS + 1],
}

impl WaitHistogram {
    pub fn count(&self, nanos: u64) {
        self.sum_nanos.fetch_add(nanos, Relaxed);
        if let Some(count) = self.counts.get(bucket_of(nanos)) {
            count.fetch_add(1, Relaxed);
        }
    }

    fn read(&self) -> WaitTimes {
        let bounds = (0..BUCKETS).map(|doublings| FIRST_NANOS << doublings);
        let counts = self.counts.iter().map(|count| count.load(Relaxed));
        WaitTimes {
            sum_nanos: self.sum_nanos.load(Relaxed),
            buckets: bounds.chain([u64::MAX]).zip(counts).collect(),
        }
    }
}

fn bucket_of(nanos: u64) -> usize {
    let doublings = u64::BITS - (nanos.saturating_sub(1) / FIRST_NANOS).leading_zeros();
    (doublings as usize).min(BUCKETS)
}

impl Counting {
    pub fn facts(&self, tablets: Vec<TabletFacts>, lacking: usize) -> MemberFacts {
        MemberFacts {
            tablets,
            lacking,
            applied: self.applied.load(Relaxed),
            appended: self.appended.load(Relaxed),
            repeated: self.repeated.load(Relaxed),
            not_appended: self.not_appended.load(Relaxed),
            disputed: self.disputed.load(Relaxed),
            barriers_appended: self.barriers_appended.load(Relaxed),
            barriers_raised: self.barriers_raised.read(),
            barriers_applied: self.barriers_applied.read(),
        }
    }
}

pub(crate) fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_the_bucket_of_their_bound() {
        let times = WaitHistogram::default();
        for nanos in [0, FIRST_NANOS, FIRST_NANOS + 1, 3 * FIRST_NANOS, u64::MAX / 2] {
            times.count(nanos);
        }
        let read = times.read();
        let filled = read.buckets.iter().filter(|(_, count)| *count > 0);
        let filled: Vec<(u64, u64)> = filled.copied().collect();
        assert_eq!(
            filled,
            [
                (FIRST_NANOS, 2),
                (2 * FIRST_NANOS, 1),
                (4 * FIRST_NANOS, 1),
                (u64::MAX, 1)
            ]
        );
        assert_eq!(read.sum_nanos, 5 * FIRST_NANOS + 1 + u64::MAX / 2);
    }
}
