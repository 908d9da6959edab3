//! [`LogCounts`]: what the logs have sent and read since they were opened, and where they end.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use parking_lot::Mutex;

/// Counts since the logs were opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogCounts {
    /// Requests with records that brokers have answered.
    pub produce_requests: u64,
    /// Batches that a broker has not acknowledged, and connections for them that could not be opened.
    pub produce_errors: u64,
    /// Requests for records that brokers have answered.
    pub fetch_requests: u64,
    /// Requests for records that failed, and logs that a broker refused in its answer.
    pub fetch_errors: u64,
    /// Requests for the ends of logs that brokers have answered.
    pub end_requests: u64,
    /// Requests for the ends of logs that failed.
    pub end_errors: u64,
}

/// Counts while the logs are used.
#[derive(Debug, Default)]
pub(crate) struct Counting {
    pub produce_requests: AtomicU64,
    pub produce_errors: AtomicU64,
    pub fetch_requests: AtomicU64,
    pub fetch_errors: AtomicU64,
    pub end_requests: AtomicU64,
    pub end_errors: AtomicU64,
    /// The offset behind the last record of each partition, as brokers said last.
    ends: Mutex<BTreeMap<u32, u64>>,
}

impl Counting {
    pub(crate) fn counts(&self) -> LogCounts {
        LogCounts {
            produce_requests: self.produce_requests.load(Relaxed),
            produce_errors: self.produce_errors.load(Relaxed),
            fetch_requests: self.fetch_requests.load(Relaxed),
            fetch_errors: self.fetch_errors.load(Relaxed),
            end_requests: self.end_requests.load(Relaxed),
            end_errors: self.end_errors.load(Relaxed),
        }
    }

    /// Notes that a partition ends here, as a broker says. An older answer may come later, so the end never moves back.
    pub(crate) fn reach(&self, partition: u32, end: i64) {
        let end = u64::try_from(end).unwrap_or(0);
        let mut ends = self.ends.lock();
        let known = ends.entry(partition).or_default();
        *known = end.max(*known);
    }

    /// By partition.
    pub(crate) fn ends(&self) -> BTreeMap<u32, u64> {
        self.ends.lock().clone()
    }
}

pub(crate) fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_log_never_moves_back() {
        let counting = Counting::default();
        for end in [7, 9, 8, -1] {
            counting.reach(3, end);
        }
        assert_eq!(counting.ends(), BTreeMap::from([(3, 9)]));
    }
}
