//! Waits for a page of a replica, and asks a second one if the first is slow (`speculative_retry`).

use std::sync::Arc;
use std::time::Duration;

use ilion_cluster::Node;
use ilion_rows::ReadError;
use ilion_schema::TableSchema;

use crate::answer::{Answer, ReplicaError};
use crate::client::Pending;
use crate::reads::{Reads, nanos};
use crate::signal::Signal;
use crate::speculation::{Latencies, delay};

/// A read that was sent, and when.
pub(crate) struct Sent {
    pub pending: Box<dyn Pending>,
    pub sent_nanos: u64,
}

/// The answer that counts.
pub(crate) struct Won {
    pub answer: Result<Answer, ReplicaError>,
    /// The second node, if the answer came from it.
    pub by_second: Option<Node>,
}

impl Reads {
    /// Like [`Self::wait`], but if the replica is slower than the table's `speculative_retry` says, `ask_second` asks another one, and
    /// the first good answer counts.
    ///
    /// # Errors
    /// The time of the statement is over.
    pub fn race(
        &self,
        table: &TableSchema,
        first: Sent,
        ask_second: impl FnOnce() -> Option<(Node, Box<dyn Pending>)>,
    ) -> Result<Won, ReadError> {
        let Sent {
            mut pending,
            sent_nanos,
        } = first;
        let signal = Arc::new(Signal::default());
        if !pending.watch(&signal) || pending.is_answered() {
            return self.won(pending, None);
        }
        let timeout = nanos(self.shared.options.replica_timeout);
        let ends = self
            .deadline_nanos()
            .min(self.now_nanos().saturating_add(timeout));
        let left = |until: u64| Duration::from_nanos(until.saturating_sub(self.now_nanos()));
        let delay = self.delay(table);
        let asks_at = delay.map_or(ends, |delay| sent_nanos.saturating_add(nanos(delay)).min(ends));
        let is_slow = !signal.wait(left(asks_at), || pending.is_answered()) && asks_at < ends;
        let second = is_slow.then(ask_second).flatten();
        let Some((node, mut second)) = second else {
            let won = self.won(pending, None)?;
            self.record(table, sent_nanos, &won);
            return Ok(won);
        };
        tracing::debug!(
            table = table.name,
            node,
            "a second replica is asked, since the first one is slow"
        );
        if !second.watch(&signal) {
            return self.won(second, Some(node));
        }
        signal.wait(left(ends), || pending.is_answered() || second.is_answered());
        let ((one, by_one), (other, by_other)) = match second.is_answered() && !pending.is_answered() {
            true => ((second, Some(node)), (pending, None)),
            false => ((pending, None), (second, Some(node))),
        };
        let won = self.won(one, by_one)?;
        self.record(table, sent_nanos, &won);
        if won.answer.is_err() && signal.wait(left(ends), || other.is_answered()) {
            let instead = self.won(other, by_other)?;
            if instead.answer.is_ok() {
                return Ok(instead);
            }
        }
        Ok(won)
    }

    fn won(&self, pending: Box<dyn Pending>, by_second: Option<Node>) -> Result<Won, ReadError> {
        let answer = self.wait(pending)?;
        Ok(Won { answer, by_second })
    }

    /// How long a replica has before another one is asked, too.
    fn delay(&self, table: &TableSchema) -> Option<Duration> {
        let latencies = self.shared.latencies.lock();
        let none = Latencies::default();
        let of_table = latencies.get(&table.id).unwrap_or(&none);
        // Compat: without figures Cassandra waits for half of its timeout.
        let unknown = self.shared.options.replica_timeout / 2;
        delay(&table.options.speculative_retry, of_table, unknown)
    }

    /// Counts how long a good answer took.
    fn record(&self, table: &TableSchema, sent_nanos: u64, won: &Won) {
        if won.answer.is_ok() {
            let took = self.now_nanos().saturating_sub(sent_nanos);
            let mut latencies = self.shared.latencies.lock();
            latencies.entry(table.id).or_default().record(took);
        }
    }
}
