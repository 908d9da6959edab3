//! [`Seconds`]: latencies of clients since the last call of [`Seconds::take`].

use hdrhistogram::Histogram;
use parking_lot::Mutex;

const LATENCY_MAX_NANOS: u64 = 120_000_000_000;

/// Latencies of operations, in nanoseconds.
#[derive(Clone, Debug)]
pub struct LatencyHistograms {
    pub reads: Histogram<u64>,
    pub writes: Histogram<u64>,
}

impl LatencyHistograms {
    fn new() -> anyhow::Result<Self> {
        let empty = || Histogram::new_with_bounds(100, LATENCY_MAX_NANOS, 3);
        Ok(Self {
            reads: empty()?,
            writes: empty()?,
        })
    }

    /// The latencies of reads and writes together.
    pub fn all(&self) -> Histogram<u64> {
        let mut all = self.reads.clone();
        // Does not fail: both have the same bounds.
        let _ = all.add(&self.writes);
        all
    }

    /// Adds the latencies of `other`.
    ///
    /// # Errors
    /// Never: all histograms have the same bounds.
    pub fn add(&mut self, other: &Self) -> anyhow::Result<()> {
        self.reads.add(&other.reads)?;
        self.writes.add(&other.writes)?;
        Ok(())
    }

    fn reset(&mut self) {
        self.reads.reset();
        self.writes.reset();
    }
}

/// See the module. Each client has a lock of its own, so that no client waits for another.
pub struct Seconds(Vec<Mutex<LatencyHistograms>>);

impl Seconds {
    /// # Errors
    /// Never: the bounds of the histograms are valid.
    pub fn new(clients: usize) -> anyhow::Result<Self> {
        let places: anyhow::Result<_> = (0..clients)
            .map(|_| LatencyHistograms::new().map(Mutex::new))
            .collect();
        Ok(Self(places?))
    }

    /// Counts an operation of a client.
    pub fn count(&self, client: usize, is_write: bool, nanos: u64) {
        let mut times = self.0[client].lock();
        match is_write {
            true => times.writes.saturating_record(nanos),
            false => times.reads.saturating_record(nanos),
        }
    }

    /// The latencies since the last call.
    pub fn take(&self) -> anyhow::Result<LatencyHistograms> {
        let mut taken = LatencyHistograms::new()?;
        for place in &self.0 {
            let mut times = place.lock();
            taken.add(&times)?;
            times.reset();
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_is_not_taken_again() {
        let seconds = Seconds::new(2).unwrap();
        seconds.count(0, true, 1_000);
        seconds.count(1, false, 2_000_000);
        seconds.count(1, false, 3_000_000);
        let times = seconds.take().unwrap();
        assert_eq!(
            (times.reads.len(), times.writes.len(), times.all().len()),
            (2, 1, 3)
        );
        assert!(times.all().max() >= 3_000_000);
        assert_eq!(seconds.take().unwrap().all().len(), 0);
    }
}
