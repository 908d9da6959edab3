//! Times of requests as metrics. Each worker has counters of its own, so counting needs no lock.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_protocol::Request;
use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Unit;

use ilion_node::costs::{Stages, in_seconds};

/// Kinds of requests, by opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    Query,
    Prepare,
    Execute,
    Batch,
    Other,
}

impl RequestKind {
    /// Names of the kinds, in the order of the variants.
    pub const NAMES: [&str; 5] = ["query", "prepare", "execute", "batch", "other"];

    pub fn of(request: &Request) -> Self {
        match request {
            Request::Query(_) => Self::Query,
            Request::Prepare(_) => Self::Prepare,
            Request::Execute(_) => Self::Execute,
            Request::Batch(_) => Self::Batch,
            _ => Self::Other,
        }
    }
}

/// Upper bound of the first bucket, in nanoseconds; each bound is twice the previous one.
const FIRST_NANOS: u64 = 1000;
/// Number of buckets with an upper bound: the last bound is 4.2 s.
pub(crate) const BUCKETS: usize = 23;

/// Upper bound of a bucket.
pub(crate) fn bound_nanos(bucket: usize) -> u64 {
    FIRST_NANOS << bucket
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StageLabel {
    stage: &'static str,
}

/// The times of one worker.
#[derive(Debug, Default)]
pub(crate) struct RequestTimes {
    kinds: [TimeHistogram; RequestKind::NAMES.len()],
    stages: [TimeHistogram; Stages::COUNT],
}

/// A histogram of times.
#[derive(Debug, Default)]
struct TimeHistogram {
    sum_nanos: AtomicU64,
    /// Counts by bucket; the last one has no upper bound.
    counts: [AtomicU64; BUCKETS + 1],
}

impl TimeHistogram {
    #[inline]
    fn count(&self, nanos: u64) {
        add(&self.sum_nanos, nanos);
        add(&self.counts[bucket_of(nanos)], 1);
    }
}

impl RequestTimes {
    /// Counts a request. Requires: no other thread counts in these times at the moment.
    #[inline]
    pub(crate) fn count(&self, kind: RequestKind, stages: &Stages) {
        self.kinds[kind as usize].count(stages.sum());
        // The stages have the order of `Stages::NAMES`.
        let [queue, execute, log_wait, send] = &self.stages;
        queue.count(stages.queue);
        execute.count(stages.execute);
        if let Some(nanos) = stages.log_wait {
            log_wait.count(nanos);
        }
        send.count(stages.send);
    }
}

/// Adds without an atomic read-modify-write, since only one thread writes.
#[inline]
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Relaxed).wrapping_add(more), Relaxed);
}

#[inline]
fn bucket_of(nanos: u64) -> usize {
    let doublings = u64::BITS - (nanos.saturating_sub(1) / FIRST_NANOS).leading_zeros();
    (doublings as usize).min(BUCKETS)
}

/// The times of all workers.
#[derive(Clone, Debug, Default)]
pub(crate) struct AllRequestTimes(Arc<Mutex<Vec<Arc<RequestTimes>>>>);

impl AllRequestTimes {
    /// Adds the times of a new worker.
    pub(crate) fn new_worker(&self) -> Arc<RequestTimes> {
        let times = Arc::<RequestTimes>::default();
        self.0.lock().push(times.clone());
        times
    }

    /// Number of QUERY and of EXECUTE requests.
    pub(crate) fn statement_counts(&self) -> (u64, u64) {
        let count = |kind: RequestKind| self.sum_of(|times| &times.kinds[kind as usize]).1.iter().sum();
        (count(RequestKind::Query), count(RequestKind::Execute))
    }

    /// Number of requests.
    pub(crate) fn request_count(&self) -> u64 {
        self.counts().0.iter().sum()
    }

    /// Number of requests by kind; and number of statements and batches by latency.
    pub(crate) fn counts(&self) -> ([u64; RequestKind::NAMES.len()], [u64; BUCKETS + 1]) {
        let mut latencies = [0; BUCKETS + 1];
        let kinds = std::array::from_fn(|kind| {
            let (_, counts) = self.sum_of(|times| &times.kinds[kind]);
            if kind != RequestKind::Other as usize {
                for (sum, count) in latencies.iter_mut().zip(&counts) {
                    *sum += count;
                }
            }
            counts.iter().sum()
        });
        (kinds, latencies)
    }

    /// Sum of the nanoseconds, and counts by bucket, over all workers.
    fn sum_of(&self, pick: impl Fn(&RequestTimes) -> &TimeHistogram) -> (u64, [u64; BUCKETS + 1]) {
        let (mut nanos, mut counts) = (0_u64, [0; BUCKETS + 1]);
        for times in self.0.lock().iter() {
            let times = pick(times);
            nanos = nanos.wrapping_add(times.sum_nanos.load(Relaxed));
            for (sum, count) in counts.iter_mut().zip(&times.counts) {
                *sum += count.load(Relaxed);
            }
        }
        (nanos, counts)
    }
}

fn encode_times(
    encoder: &mut MetricEncoder<'_>,
    label: &impl EncodeLabelSet,
    (nanos, counts): (u64, [u64; BUCKETS + 1]),
) -> fmt::Result {
    let bounds = (0..BUCKETS).map(|bucket| in_seconds(bound_nanos(bucket)));
    let buckets: Vec<(f64, u64)> = bounds.chain([f64::INFINITY]).zip(counts).collect();
    encoder.encode_family(label)?.encode_histogram::<NoLabelSet>(
        in_seconds(nanos),
        counts.iter().sum(),
        &buckets,
        None,
    )
}

impl Collector for AllRequestTimes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Time from the last byte of a request to the first byte of its answer.";
        let (unit, histogram) = (Some(&Unit::Seconds), MetricType::Histogram);
        let mut family = encoder.encode_descriptor("request", help, unit, histogram)?;
        for (number, kind) in RequestKind::NAMES.into_iter().enumerate() {
            let sums = self.sum_of(|times| &times.kinds[number]);
            encode_times(&mut family, &KindLabel { kind }, sums)?;
        }
        let help = "Time of a stage of requests: queue until a thread takes it, execute until the answer is there, log_wait \
                    until the commit log has what was written, send until the answer's first byte leaves.";
        let mut family = encoder.encode_descriptor("request_stage", help, unit, histogram)?;
        for (number, stage) in Stages::NAMES.into_iter().enumerate() {
            let sums = self.sum_of(|times| &times.stages[number]);
            encode_times(&mut family, &StageLabel { stage }, sums)?;
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
        assert_eq!([0, 1, 1000].map(bucket_of), [0; 3]);
        assert_eq!([1001, 2000, 2001].map(bucket_of), [1, 1, 2]);
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
            let stages = Stages {
                queue: 10_000,
                execute: 20_000,
                log_wait: Some(960_000),
                send: 10_000,
            };
            worker.count(RequestKind::Other, &stages);
            worker.count(RequestKind::Other, &Stages::default());
        }
        assert_eq!(all.request_count(), 4);
        let mut registry = Registry::with_prefix("ilion_cql");
        registry.register_collector(Box::new(all));
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "# TYPE ilion_cql_request_seconds histogram",
            "ilion_cql_request_seconds_count{kind=\"other\"} 4",
            "ilion_cql_request_seconds_bucket{le=\"0.000001\",kind=\"other\"} 2",
            "ilion_cql_request_seconds_bucket{le=\"0.000512\",kind=\"other\"} 2",
            "ilion_cql_request_seconds_bucket{le=\"0.001024\",kind=\"other\"} 4",
            "ilion_cql_request_seconds_bucket{le=\"+Inf\",kind=\"query\"} 0",
            "ilion_cql_request_stage_seconds_bucket{le=\"0.000016\",stage=\"execute\"} 2",
            "ilion_cql_request_stage_seconds_bucket{le=\"0.000032\",stage=\"execute\"} 4",
            "ilion_cql_request_stage_seconds_count{stage=\"log_wait\"} 2",
            "ilion_cql_request_stage_seconds_sum{stage=\"log_wait\"} 0.00192",
        ] {
            assert!(text.contains(line), "{line} in {text}");
        }
    }
}
