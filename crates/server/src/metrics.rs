//! Counters of the CQL server, in the conventions of Prometheus.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use crate::answer::Reply;
use crate::client_memory::ClientMemory;
use crate::request_times::AllRequestTimes;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabel {
    code: String,
}

/// The counters of the CQL server.
pub struct ServerMetrics {
    /// Times of requests.
    pub(crate) times: AllRequestTimes,
    errors: Family<CodeLabel, Counter>,
    /// All errors, whatever their code.
    errors_total: Counter,
    pub(crate) connections: Gauge,
    pub(crate) connections_total: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) connections_stalled: Counter,
    pub(crate) requests_delayed: Counter,
    pub(crate) logins: Counter,
    pub(crate) logins_failed: Counter,
    pub(crate) logins_overloaded: Counter,
    memory: Arc<ClientMemory>,
    pub(crate) received_bytes: Counter,
}

impl ServerMetrics {
    pub(crate) fn new(memory: Arc<ClientMemory>) -> Arc<Self> {
        Arc::new(Self {
            times: AllRequestTimes::default(),
            errors: Family::default(),
            errors_total: Counter::default(),
            connections: Gauge::default(),
            connections_total: Counter::default(),
            connections_refused: Counter::default(),
            connections_stalled: Counter::default(),
            requests_delayed: Counter::default(),
            logins: Counter::default(),
            logins_failed: Counter::default(),
            logins_overloaded: Counter::default(),
            memory,
            received_bytes: Counter::default(),
        })
    }

    /// Registers the metrics under the prefix `cql`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("cql");
        registry.register_collector(Box::new(self.times.clone()));
        registry.register(
            "errors",
            "Requests answered with an error, by code",
            self.errors.clone(),
        );
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_opened",
            "Connections opened",
            self.connections_total.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections closed for being too many, or for lack of file descriptors",
            self.connections_refused.clone(),
        );
        registry.register(
            "connections_stalled",
            "Connections closed since their clients stopped amid a request, or took none of their answers",
            self.connections_stalled.clone(),
        );
        registry.register(
            "requests_delayed",
            "Requests that waited for native_transport_max_requests_per_second",
            self.requests_delayed.clone(),
        );
        registry.register("logins", "Logins with the right password", self.logins.clone());
        registry.register(
            "logins_failed",
            "Logins that were refused for their role or password",
            self.logins_failed.clone(),
        );
        registry.register(
            "logins_overloaded",
            "Logins that were refused because too many waited for the check of their passwords",
            self.logins_overloaded.clone(),
        );
        registry.register_with_unit(
            "memory",
            "Requests and answers that are held for clients, as native_transport_max_request_data_in_flight counts them",
            Unit::Bytes,
            self.memory.gauge().clone(),
        );
        registry.register_with_unit(
            "received",
            "Bytes read from clients",
            Unit::Bytes,
            self.received_bytes.clone(),
        );
    }

    pub(crate) fn count_error(&self, reply: &Reply) {
        if let Some(code) = reply.error_code() {
            let code = format!("{:#06x}", code.number());
            self.errors.get_or_create(&CodeLabel { code }).inc();
            self.errors_total.inc();
        }
    }

    /// Bytes of requests and answers in memory for clients.
    pub fn client_bytes(&self) -> u64 {
        u64::try_from(self.memory.gauge().get()).unwrap_or(0)
    }

    /// Requests answered with an error since the start.
    pub(crate) fn error_count(&self) -> u64 {
        self.errors_total.get()
    }

    /// Requests answered since the start.
    pub fn request_count(&self) -> u64 {
        self.times.request_count()
    }
}
