//! When a second replica is asked for a page: `speculative_retry` of the table, and how long its reads took so far.
//!
//! Compat: the policies of Cassandra 5.0: `99p`, `50ms`, `ALWAYS`, `NEVER`, `MIN(99p,50ms)`, `MAX(99p,50ms)`. Unlike Cassandra, Ilion times
//! and repeats single pages.

use std::time::Duration;

/// Minimum number of reads for a percentile.
const READS_MIN: u32 = 32;
/// When this many reads are counted, all counts are halved, so that old reads fade.
const READS_MAX: u32 = 4096;
const BUCKETS: usize = 100;
/// The upper bound of each bucket is this many times that of the bucket before: 1 us for the first bucket, 69 s for the last.
const GROWTH: f64 = 1.2;

/// How long reads took.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    counts: [u32; BUCKETS],
    count: u32,
}

impl Default for Latencies {
    fn default() -> Self {
        Self {
            counts: [0; BUCKETS],
            count: 0,
        }
    }
}

impl Latencies {
    /// Counts a read.
    pub fn record(&mut self, nanos: u64) {
        let micros = nanos as f64 / 1000.0;
        let bucket = micros.max(1.0).log(GROWTH).ceil() as usize;
        self.counts[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
        if self.count >= READS_MAX {
            self.counts.iter_mut().for_each(|count| *count /= 2);
            self.count = self.counts.iter().sum();
        }
    }

    /// The time that `percent` (0 to 100) of the reads did not exceed; `None` if there were few reads.
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        if self.count < READS_MIN {
            return None;
        }
        let wanted = f64::from(self.count) * percent / 100.0;
        let mut sum = 0;
        let bucket = self.counts.iter().position(|count| {
            sum += count;
            f64::from(sum) >= wanted
        })?;
        let micros = GROWTH.powi(i32::try_from(bucket).unwrap_or(i32::MAX));
        Some(Duration::from_secs_f64(micros / 1e6))
    }
}

/// How long a replica has before another one is asked, too; `None`: no second replica is asked. `unknown` stands for percentiles of few
/// reads. Pure.
pub(crate) fn delay(policy: &str, latencies: &Latencies, unknown: Duration) -> Option<Duration> {
    let policy = policy.trim().to_ascii_uppercase();
    let two = |name: &str| {
        let inner = policy.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
        let (one, two) = inner.split_once(',')?;
        let of = |part: &str| simple(part.trim(), latencies, unknown);
        Some((of(one)?, of(two)?))
    };
    if let Some((one, two)) = two("MIN") {
        return Some(one.min(two));
    }
    if let Some((one, two)) = two("MAX") {
        return Some(one.max(two));
    }
    match policy.as_str() {
        "ALWAYS" => Some(Duration::ZERO),
        policy => simple(policy, latencies, unknown),
    }
}

fn simple(policy: &str, latencies: &Latencies, unknown: Duration) -> Option<Duration> {
    let number = |suffix: &str| policy.strip_suffix(suffix)?.parse::<f64>().ok();
    if let Some(percent) = number("PERCENTILE").or_else(|| number("P")) {
        return Some(latencies.percentile(percent).unwrap_or(unknown));
    }
    Duration::try_from_secs_f64(number("MS")? / 1000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn millis(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn filled(times: impl IntoIterator<Item = Duration>) -> Latencies {
        let mut latencies = Latencies::default();
        for time in times {
            latencies.record(u64::try_from(time.as_nanos()).unwrap());
        }
        latencies
    }

    #[test]
    fn policies_are_those_of_cassandra() {
        // 1 to 100 ms.
        let latencies = filled((1..=100).map(millis));
        let delay = |policy: &str| delay(policy, &latencies, millis(1000));
        assert_eq!(delay("ALWAYS"), Some(Duration::ZERO));
        assert_eq!(delay("NEVER"), None);
        assert_eq!(delay("NONE"), None);
        assert_eq!(delay("50ms"), Some(millis(50)));
        assert_eq!(delay("what?"), None);
        // A bucket is 20 % wide.
        for (policy, from, to) in [("99p", 99, 120), ("50PERCENTILE", 50, 60), ("10.5p", 11, 14)] {
            let found = delay(policy).unwrap();
            assert!(
                found >= millis(from) && found <= millis(to),
                "{policy}: {found:?}"
            );
        }
        assert_eq!(delay("MIN(99p,50ms)"), Some(millis(50)));
        assert_eq!(delay("MAX(99p,50ms)"), delay("99p"));
        assert_eq!(delay("MIN(99p,7s)"), None, "it is refused when a table is made");
    }

    #[test]
    fn percentiles_of_few_reads_are_unknown() {
        let few = filled([millis(1); READS_MIN as usize - 1]);
        assert_eq!(delay("99p", &few, millis(1000)), Some(millis(1000)));
        assert_eq!(delay("MIN(99p,50ms)", &few, millis(1000)), Some(millis(50)));
    }

    #[test]
    fn old_reads_fade() {
        let slow = std::iter::repeat_n(millis(500), 3000);
        let latencies = filled(slow.chain(std::iter::repeat_n(millis(1), 20_000)));
        let half = latencies.percentile(50.0).unwrap();
        assert!(half < millis(2), "{half:?}");
        let nearly_all = latencies.percentile(95.0).unwrap();
        assert!(nearly_all < millis(2), "{nearly_all:?}");
    }

    #[test]
    fn any_time_can_be_recorded() {
        let mut latencies = Latencies::default();
        for nanos in [0, 1, 999, u64::MAX] {
            latencies.record(nanos);
        }
        assert_eq!(latencies.count, 4);
    }
}
