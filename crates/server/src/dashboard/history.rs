//! What the node did in each of the last seconds: a page that opens now draws its charts at once.
//!
//! The HTTP port takes a sample every second. A sample has the differences of counters since the sample before it, and sizes as
//! they are now. The last quarter of an hour is kept, in at most a few hundred KiB.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::request_times::{BUCKETS, RequestKind, bound_nanos};

/// Time between two samples.
pub(crate) const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);
/// Samples that are kept: those of a quarter of an hour.
const SAMPLES_KEPT: usize = 900;

const KINDS: usize = RequestKind::NAMES.len();

/// Counters since the start, and sizes now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// Milliseconds since the start of the node.
    pub millis: u64,
    /// Answered requests by kind.
    pub requests: [u64; KINDS],
    /// Statements and batches of these requests by latency; the last count has no upper bound.
    pub latencies: [u64; BUCKETS + 1],
    /// Requests that were answered with an error.
    pub errors: u64,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Sizes now.
    pub sizes: Sizes,
}

/// Sizes at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Bytes of memtables.
    pub memtable_bytes: u64,
    /// Bytes of the chunk cache.
    pub chunk_cache_bytes: u64,
    /// Bytes of the other caches.
    pub other_cache_bytes: u64,
    /// Open connections of clients.
    pub clients: u64,
}

/// One sample: what happened since the sample before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistorySample {
    /// When it was taken, in milliseconds since the start of the node.
    pub millis: u64,
    /// Time since the sample before it.
    pub elapsed_millis: u64,
    /// Answered requests by kind.
    pub requests: [u32; KINDS],
    /// Statements and batches of these requests by latency, without zeros at the end.
    pub latencies: Vec<u32>,
    /// Requests that were answered with an error.
    pub errors: u32,
    /// Bytes read from files.
    pub read_bytes: u64,
    /// Bytes written to files.
    pub written_bytes: u64,
    /// Sizes when the sample was taken.
    #[serde(flatten)]
    pub sizes: Sizes,
}

/// The samples of the last minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryReport {
    /// When the node started, in milliseconds since 1970.
    pub epoch_millis: u64,
    /// The longest time that samples are kept.
    pub kept_millis: u64,
    /// Names of the kinds of requests.
    pub kinds: Vec<String>,
    /// Upper bounds of the counts by latency. One further count has the slower requests.
    pub bounds_nanos: Vec<u64>,
    /// The samples, oldest first.
    pub samples: Vec<HistorySample>,
}

/// Selects samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct HistoryOrder {
    /// Only samples that were taken later, in milliseconds since the start of the node.
    #[serde(default)]
    pub after: u64,
}

impl HistorySample {
    /// The difference between two standings. Pure.
    fn between(before: &Standing, now: &Standing) -> Self {
        let mut latencies: Vec<u32> = now
            .latencies
            .iter()
            .zip(&before.latencies)
            .map(|(now, before)| growth(*before, *now))
            .collect();
        while latencies.last() == Some(&0) {
            latencies.pop();
        }
        Self {
            millis: now.millis,
            elapsed_millis: now.millis.saturating_sub(before.millis),
            requests: std::array::from_fn(|kind| growth(before.requests[kind], now.requests[kind])),
            latencies,
            errors: growth(before.errors, now.errors),
            read_bytes: now.read_bytes.saturating_sub(before.read_bytes),
            written_bytes: now.written_bytes.saturating_sub(before.written_bytes),
            sizes: now.sizes,
        }
    }
}

fn growth(before: u64, now: u64) -> u32 {
    u32::try_from(now.saturating_sub(before)).unwrap_or(u32::MAX)
}

/// The samples of the last quarter of an hour.
#[derive(Debug, Default)]
pub(crate) struct History(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    last: Option<Standing>,
    samples: VecDeque<HistorySample>,
}

impl History {
    /// Adds a sample of what happened up to this standing. The first standing makes no sample.
    pub fn add(&self, now: Standing) {
        let mut kept = self.0.lock();
        if let Some(before) = kept.last.replace(now) {
            if kept.samples.len() == SAMPLES_KEPT {
                kept.samples.pop_front();
            }
            kept.samples.push_back(HistorySample::between(&before, &now));
        }
    }

    /// The samples that the order selects.
    pub fn report(&self, epoch_millis: u64, order: HistoryOrder) -> HistoryReport {
        let kept = self.0.lock();
        let first = kept
            .samples
            .partition_point(|sample| sample.millis <= order.after);
        HistoryReport {
            epoch_millis,
            kept_millis: u64::try_from(SAMPLE_INTERVAL.as_millis()).unwrap_or(0) * SAMPLES_KEPT as u64,
            kinds: RequestKind::NAMES.iter().map(|name| (*name).to_owned()).collect(),
            bounds_nanos: (0..BUCKETS).map(bound_nanos).collect(),
            samples: kept.samples.iter().skip(first).cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn standing(millis: u64, queries: u64) -> Standing {
        let mut standing = Standing {
            millis,
            errors: queries / 10,
            read_bytes: queries * 100,
            ..Standing::default()
        };
        standing.requests[RequestKind::Query as usize] = queries;
        standing.latencies[2] = queries;
        standing.sizes.clients = 3;
        standing
    }

    #[test]
    fn a_sample_has_what_happened_since_the_one_before() {
        let history = History::default();
        history.add(standing(1000, 50));
        assert_eq!(history.report(0, HistoryOrder::default()).samples, []);
        history.add(standing(2010, 80));
        let expected = HistorySample {
            millis: 2010,
            elapsed_millis: 1010,
            requests: [30, 0, 0, 0, 0],
            latencies: vec![0, 0, 30],
            errors: 3,
            read_bytes: 3000,
            written_bytes: 0,
            sizes: Sizes {
                clients: 3,
                ..Sizes::default()
            },
        };
        assert_eq!(history.report(0, HistoryOrder::default()).samples, [expected]);
    }

    #[test]
    fn the_last_quarter_of_an_hour_is_kept_and_only_what_is_new_is_told() {
        let history = History::default();
        for second in 0..2000 {
            history.add(standing(second * 1000, second));
        }
        let report = history.report(7, HistoryOrder::default());
        assert_eq!((report.epoch_millis, report.kept_millis), (7, 900_000));
        assert_eq!(report.samples.len(), 900);
        assert_eq!(report.samples[0].millis, 1_100_000);
        let after = HistoryOrder { after: 1_997_000 };
        let new: Vec<u64> = history
            .report(7, after)
            .samples
            .iter()
            .map(|sample| sample.millis)
            .collect();
        assert_eq!(new, [1_998_000, 1_999_000]);
    }
}
