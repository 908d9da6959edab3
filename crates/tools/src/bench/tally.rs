//! Counts of operations, latencies and failures.

use anyhow::bail;
use hdrhistogram::Histogram;

/// The counts of one or more clients.
#[derive(Debug)]
pub struct Tally {
    /// Answers, including errors.
    pub operations: u64,
    /// Rows written or read.
    pub rows: u64,
    /// Nanoseconds from sending a request to its answer.
    pub latency: Histogram<u64>,
    /// Failures.
    pub faults: Faults,
}

/// The number of failures, and the first different messages.
#[derive(Debug, Default)]
pub struct Faults {
    count: u64,
    messages: Vec<String>,
}

const MESSAGES_MAX: usize = 5;
const LATENCY_MAX_NANOS: u64 = 120_000_000_000;

impl Faults {
    /// Counts a failure.
    pub fn add(&mut self, message: String) {
        self.count += 1;
        if self.messages.len() < MESSAGES_MAX && !self.messages.contains(&message) {
            self.messages.push(message);
        }
    }

    /// Number of failures.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The first message.
    pub fn first(&self) -> Option<&str> {
        self.messages.first().map(String::as_str)
    }

    /// The first different messages.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    fn merge(&mut self, other: Self) {
        let known = other.messages.len() as u64;
        for message in other.messages {
            self.add(message);
        }
        self.count += other.count - known;
    }
}

impl Tally {
    /// Empty counts.
    ///
    /// # Errors
    /// Never: the bounds of the histogram are valid.
    pub fn new() -> anyhow::Result<Self> {
        Ok(Self {
            operations: 0,
            rows: 0,
            latency: Histogram::new_with_bounds(100, LATENCY_MAX_NANOS, 3)?,
            faults: Faults::default(),
        })
    }

    /// Checks that there was no failure.
    ///
    /// # Errors
    /// There was at least one.
    pub fn check(&self) -> anyhow::Result<()> {
        match self.faults.first() {
            None => Ok(()),
            Some(first) => bail!("{} operations failed; the first: {first}", self.faults.count()),
        }
    }

    /// Counts an answer.
    pub fn count(&mut self, outcome: Result<u64, String>, latency_nanos: u64) {
        self.operations += 1;
        self.latency.saturating_record(latency_nanos);
        match outcome {
            Ok(rows) => self.rows += rows,
            Err(message) => self.faults.add(message),
        }
    }

    /// Adds the counts of another client.
    ///
    /// # Errors
    /// Never: all histograms have the same bounds.
    pub fn merge(&mut self, other: Self) -> anyhow::Result<()> {
        self.operations += other.operations;
        self.rows += other.rows;
        self.latency.add(other.latency)?;
        self.faults.merge(other.faults);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_all_counted_and_told_once() {
        let mut faults = Faults::default();
        for _ in 0..10 {
            faults.add("timed out".to_owned());
        }
        let mut other = Faults::default();
        other.add("timed out".to_owned());
        other.add("wrong".to_owned());
        other.add("wrong".to_owned());
        faults.merge(other);
        assert_eq!(faults.count(), 13);
        assert_eq!(faults.messages(), ["timed out", "wrong"]);
    }
}
