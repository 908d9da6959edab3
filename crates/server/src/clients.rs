//! The connected clients and the thread pools that serve them, for the tables and reports about them.

use std::sync::Arc;

use ilion_protocol::Event;
use ilion_query::StatementWeight;

use crate::client_facts::ClientFacts;
use crate::events::Events;
use crate::metrics::ServerMetrics;
use crate::queues::{Queues, RunningRequest};

/// Access to the connected clients. It stays valid when the server has stopped.
#[derive(Clone)]
pub struct Clients {
    pub(crate) events: Arc<Events>,
    pub(crate) queues: Queues,
    pub(crate) metrics: Arc<ServerMetrics>,
}

impl Clients {
    /// All clients, in the order in which they connected.
    pub fn list(&self) -> Vec<ClientFacts> {
        self.events
            .sessions()
            .iter()
            .map(|session| session.facts())
            .collect()
    }

    /// Sends an event to the clients that registered for it.
    pub(crate) fn announce(&self, event: &Event) {
        self.events.send(event);
    }

    /// Number of statements executed since the start: those sent as text, and prepared ones.
    pub fn statement_counts(&self) -> (u64, u64) {
        self.metrics.times.statement_counts()
    }

    /// Requests answered since the start.
    pub fn request_count(&self) -> u64 {
        self.metrics.request_count()
    }

    /// Counts of requests and errors.
    pub(crate) fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    /// The requests that run on the threads for heavy statements, each with the name of its thread.
    pub(crate) fn running(&self) -> Vec<(String, RunningRequest)> {
        self.queues.running()
    }

    /// The thread pools that execute requests.
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

/// Facts about a thread pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolFacts {
    /// Its name; Cassandra's name if Cassandra has such a pool.
    pub name: &'static str,
    /// Number of threads.
    pub threads: usize,
    /// Tasks in its queue.
    pub waiting: usize,
    /// Tasks that run.
    pub active: usize,
    /// Tasks completed since the start.
    pub completed: u64,
}
