//! Counters of the CQL server, in the conventions of Prometheus.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_protocol::Request;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

use crate::answer::Reply;

/// Requests that are timed, by opcode.
const KINDS: [&str; 5] = ["query", "prepare", "execute", "batch", "other"];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CodeLabel {
    code: String,
}

/// What the CQL server counts.
pub struct ServerMetrics {
    /// By the position of the kind in [`KINDS`], so that counting looks nothing up.
    seconds: [Histogram; KINDS.len()],
    seconds_family: Family<KindLabel, Histogram, fn() -> Histogram>,
    errors: Family<CodeLabel, Counter>,
    pub(crate) connections: Gauge,
    pub(crate) connections_total: Counter,
    pub(crate) connections_refused: Counter,
    pub(crate) received_bytes: Counter,
    requests: AtomicU64,
}

impl ServerMetrics {
    pub(crate) fn new() -> Arc<Self> {
        let seconds_family = Family::new_with_constructor(
            (|| Histogram::new(exponential_buckets(0.000_032, 2.0, 18))) as fn() -> _,
        );
        let seconds = KINDS.map(|kind| seconds_family.get_or_create_owned(&KindLabel { kind }));
        Arc::new(Self {
            seconds,
            seconds_family,
            errors: Family::default(),
            connections: Gauge::default(),
            connections_total: Counter::default(),
            connections_refused: Counter::default(),
            received_bytes: Counter::default(),
            requests: AtomicU64::new(0),
        })
    }

    /// Makes them readable under the prefix `cql`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        let registry = registry.sub_registry_with_prefix("cql");
        registry.register_with_unit(
            "request",
            "Time from a request's turn to its answer, waiting for the commit log left out",
            Unit::Seconds,
            self.seconds_family.clone(),
        );
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
            "Connections closed for being too many",
            self.connections_refused.clone(),
        );
        registry.register_with_unit(
            "received",
            "Bytes read from clients",
            Unit::Bytes,
            self.received_bytes.clone(),
        );
    }

    pub(crate) fn count_request(&self, request: &Request, elapsed_nanos: u64) {
        let kind = match request {
            Request::Query(_) => 0,
            Request::Prepare(_) => 1,
            Request::Execute(_) => 2,
            Request::Batch(_) => 3,
            _ => 4,
        };
        self.requests.fetch_add(1, Relaxed);
        #[expect(clippy::cast_precision_loss, reason = "requests take less than 104 days")]
        self.seconds[kind].observe(elapsed_nanos as f64 / 1e9);
    }

    pub(crate) fn count_error(&self, reply: &Reply) {
        if let Some(code) = reply.error_code() {
            let code = format!("{:#06x}", code.number());
            self.errors.get_or_create(&CodeLabel { code }).inc();
        }
    }

    /// Requests that were answered.
    pub fn request_count(&self) -> u64 {
        self.requests.load(Relaxed)
    }
}
