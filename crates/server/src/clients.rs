//! The connected clients and the pools that work for them, for whoever asks.

use std::sync::Arc;

use ilion_protocol::Event;
use ilion_query::StatementWeight;

use crate::client_facts::ClientFacts;
use crate::events::Events;
use crate::metrics::ServerMetrics;
use crate::queues::{Queues, RunningRequest};

/// The connected clients.
#[derive(Clone)]
pub struct Clients {
    pub(crate) events: Arc<Events>,
    pub(crate) queues: Queues,
    pub(crate) metrics: Arc<ServerMetrics>,
}

impl Clients {
    /// All of them, in the order of their connection.
    pub fn list(&self) -> Vec<ClientFacts> {
        self.events
            .sessions()
            .iter()
            .map(|session| session.facts())
            .collect()
    }

    /// Tells the clients that registered for it.
    pub(crate) fn announce(&self, event: &Event) {
        self.events.send(event);
    }

    /// Statements that came as text, and those that were prepared, since the start.
    pub fn statement_counts(&self) -> (u64, u64) {
        self.metrics.times.statement_counts()
    }

    /// Requests answered since the start.
    pub fn request_count(&self) -> u64 {
        self.metrics.request_count()
    }

    /// Requests that may take long and are being executed, by thread.
    pub(crate) fn running(&self) -> Vec<(String, RunningRequest)> {
        self.queues.running()
    }

    /// The pools that execute requests.
    pub fn pools(&self) -> [PoolFacts; 2] {
        [
            ("Native-Transport-Requests", StatementWeight::Point),
            ("Heavy-Statements", StatementWeight::Heavy),
        ]
        .map(|(name, pool)| {
            let (active, completed) = self.queues.done(pool);
            PoolFacts {
                name,
                threads: self.queues.thread_count(pool),
                waiting: self.queues.waiting(pool),
                active,
                completed,
            }
        })
    }
}

/// A pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Its name, Cassandra's where it has one.
    pub name: &'static str,
    /// Its threads.
    pub threads: usize,
    /// Tasks that wait for one of them.
    pub waiting: usize,
    /// Tasks that are being done.
    pub active: usize,
    /// Tasks that were done since the start.
    pub completed: u64,
}
