//! How long requests took, for the metrics: each worker counts into numbers of its own, so that counting waits for nobody.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_protocol::Request;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

/// Requests that are timed, by opcode.
const KINDS: [&str; 5] = ["query", "prepare", "execute", "batch", "other"];
/// Upper bound of the first bucket; each of the next ones is twice that before.
const FIRST_NANOS: u64 = 32_000;
/// Buckets with an upper bound.
const BUCKETS: usize = 18;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// The numbers of one worker.
#[derive(Debug, Default)]
pub(crate) struct RequestTimes([OfKind; KINDS.len()]);

/// Requests of one kind.
#[derive(Debug, Default)]
struct OfKind {
    sum_nanos: AtomicU64,
    /// By time; the last bucket is of the longest.
    counts: [AtomicU64; BUCKETS + 1],
}

impl RequestTimes {
    /// One more request. Requires: no other thread counts here.
    #[inline]
    pub(crate) fn count(&self, request: &Request, nanos: u64) {
        let kind = match request {
            Request::Query(_) => 0,
            Request::Prepare(_) => 1,
            Request::Execute(_) => 2,
            Request::Batch(_) => 3,
            _ => 4,
        };
        let of_kind = &self.0[kind];
        add(&of_kind.sum_nanos, nanos);
        add(&of_kind.counts[bucket_of(nanos)], 1);
    }
}

/// Only the thread that counts writes: an addition need not be one step.
#[inline]
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}

#[inline]
fn bucket_of(nanos: u64) -> usize {
    let doublings = u64::BITS - (nanos.saturating_sub(1) / FIRST_NANOS).leading_zeros();
    (doublings as usize).min(BUCKETS)
}

/// The numbers of all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllRequestTimes(Arc<Mutex<Vec<Arc<RequestTimes>>>>);

impl AllRequestTimes {
    /// Where one more worker counts.
    pub(crate) fn new_worker(&self) -> Arc<RequestTimes> {
        let times = Arc::<RequestTimes>::default();
        self.0.lock().push(times.clone());
        times
    }

    /// Requests of all kinds.
    pub(crate) fn request_count(&self) -> u64 {
        (0..KINDS.len())
            .map(|kind| self.sum_of(kind).1.iter().sum::<u64>())
            .sum()
    }

    /// Nanoseconds, and requests by time.
    fn sum_of(&self, kind: usize) -> (u64, [u64; BUCKETS + 1]) {
        let (mut nanos, mut counts) = (0_u64, [0; BUCKETS + 1]);
        for times in self.0.lock().iter() {
            let of_kind = &times.0[kind];
            nanos = nanos.wrapping_add(of_kind.sum_nanos.load(Relaxed));
            for (sum, count) in counts.iter_mut().zip(&of_kind.counts) {
                *sum += count.load(Relaxed);
            }
        }
        (nanos, counts)
    }
}

#[expect(clippy::cast_precision_loss, reason = "for people")]
fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

impl Collector for AllRequestTimes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time from a request's turn to its answer, waiting for the commit log left out.";
        let mut family =
            encoder.encode_descriptor("request", help, Some(&Unit::Seconds), MetricType::Histogram)?;
        for (number, kind) in KINDS.into_iter().enumerate() {
            let (nanos, counts) = self.sum_of(number);
            let bounds = (0..BUCKETS).map(|doublings| seconds(FIRST_NANOS << doublings));
            let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
            let requests = counts.iter().sum();
            family
                .encode_family(&KindLabel { kind })?
                .encode_histogram::<NoLabelSet>(seconds(nanos), requests, &buckets, None)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    #[test]
    fn buckets_hold_the_times_up_to_their_bounds() {
        assert_eq!([0, 1, 32_000].map(bucket_of), [0; 3]);
        assert_eq!([32_001, 64_000, 64_001].map(bucket_of), [1, 1, 2]);
        let longest = FIRST_NANOS << (BUCKETS - 1);
        assert_eq!(
            [longest, longest + 1, u64::MAX].map(bucket_of),
            [BUCKETS - 1, BUCKETS, BUCKETS]
        );
    }

    #[test]
    fn what_workers_counted_is_told_as_one_histogram_a_kind() {
        let all = AllRequestTimes::default();
        let workers = [all.new_worker(), all.new_worker()];
        for worker in &workers {
            worker.count(&Request::Options, 1_000_000);
            worker.count(&Request::Options, 10);
        }
        assert_eq!(all.request_count(), 4);
        let mut registry = Registry::with_prefix("ilion_cql");
        registry.register_collector(Box::new(all));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE ilion_cql_request_seconds histogram",
            "ilion_cql_request_seconds_count{kind=\"other\"} 4",
            "ilion_cql_request_seconds_bucket{le=\"0.000032\",kind=\"other\"} 2",
            "ilion_cql_request_seconds_bucket{le=\"0.001024\",kind=\"other\"} 4",
            "ilion_cql_request_seconds_bucket{le=\"+Inf\",kind=\"query\"} 0",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
