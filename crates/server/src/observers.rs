//! Observation of requests: costs by shape, the slow-query log, traces, spans.
//!
//! [`Observers::begin`] starts to count before a request is executed, and starts its trace. Afterwards `Observed` has its cost.
//! This module also adds the trace's id, and the cost in the custom payload, to the answer.

use std::sync::Arc;

use bytes::Bytes;
use ilion_env::cost::{self, CostScope};
use ilion_env::{Cost, Count, Env, trace};
use ilion_node::costs::StatementCosts;
use ilion_protocol::RequestFrame;
use ilion_telemetry::Telemetry;
use uuid::Uuid;

use crate::described::{is_traceable, parameters, request_name, shown};
use crate::slow_log::{SlowLog, SlowStatement};
use crate::spans::{Done, Ended, parent_of};
use crate::traces::{Trace, TraceProbability, TraceStore};

/// A request whose custom payload has this key is answered with its cost as JSON under the same key.
pub const COST_KEY: &str = "ilion.cost";

/// Collects the costs, slow statements, traces and spans of requests.
#[derive(Default)]
pub struct Observers {
    /// Costs of statements.
    pub costs: Arc<StatementCosts>,
    /// The slow-query log.
    pub slow: SlowLog,
    /// Store for traces; `None` if no request is traced.
    pub traces: Option<Arc<dyn TraceStore>>,
    /// Share of the requests that are traced although their clients did not request it.
    pub trace_probability: TraceProbability,
    /// The exporter of spans; `None` if spans are not sent.
    pub telemetry: Option<Arc<Telemetry>>,
}

/// A request under observation.
pub(crate) struct Observed {
    started_nanos: u64,
    scope: CostScope,
    trace: Option<BegunTrace>,
    /// Whether its span was sent.
    is_sent: bool,
}

struct BegunTrace {
    id: Uuid,
    started_micros: i64,
    /// Whether the client requested the trace, and gets its id.
    is_wanted: bool,
    /// Whether the trace is stored. If the caller records a trace of its own, this one is sent to the collector only.
    is_stored: bool,
}

impl Observers {
    /// Starts to observe a request on this thread; `now_nanos` is the current time if the caller has it, else `None`.
    #[inline]
    pub(crate) fn begin(&self, env: &dyn Env, request: &RequestFrame, now_nanos: Option<u64>) -> Observed {
        let is_wanted = request.tracing;
        let is_stored = (is_wanted || self.trace_probability.is_met(env)) && self.traces.is_some();
        let is_traced = (is_stored || self.has_recording_caller(request)) && is_traceable(&request.request);
        Observed {
            trace: is_traced.then(|| begin_trace(env, is_wanted, is_stored)),
            is_sent: false,
            started_nanos: now_nanos.unwrap_or_else(|| env.monotonic_nanos()),
            scope: cost::begin(),
        }
    }

    /// Goes on with a request that was parked. It is not traced, whatever is decided for others meanwhile: traced requests are never
    /// parked, and what this one has waited for is given to an attempt, which a traced request has not.
    pub(crate) fn resume(&self, started_nanos: u64) -> Observed {
        Observed {
            trace: None,
            is_sent: false,
            started_nanos,
            scope: cost::begin(),
        }
    }

    /// The exporter; `None` if spans are not sent.
    fn spans(&self) -> Option<&Telemetry> {
        self.telemetry
            .as_deref()
            .filter(|telemetry| telemetry.sends_spans())
    }

    /// True if spans are sent and the caller sends its own spans, too.
    #[inline]
    fn has_recording_caller(&self, request: &RequestFrame) -> bool {
        !request.custom_payload.is_empty()
            && self.spans().is_some()
            && parent_of(request).is_some_and(|parent| parent.is_sampled)
    }

    /// Stores and sends the trace, if there is one. Returns its id if the client requested the trace.
    pub(crate) fn end_trace(&self, env: &dyn Env, observed: &mut Observed, ended: Ended<'_>) -> Option<Uuid> {
        let begun = observed.trace.take()?;
        let elapsed = env.monotonic_nanos().saturating_sub(observed.started_nanos);
        let events = trace::finish();
        if let Some(telemetry) = self.spans() {
            let done = Done {
                ended,
                cost: &observed.scope.so_far(),
                started_micros: begun.started_micros,
                elapsed_nanos: elapsed,
                session: begun.is_stored.then_some(begun.id),
                steps: &events,
            };
            telemetry.send(done.span());
            observed.is_sent = true;
        }
        let traces = self.traces.as_ref().filter(|_| begun.is_stored)?;
        traces.store(Trace {
            id: begun.id,
            started_micros: begun.started_micros,
            duration_micros: elapsed / 1000,
            client: ended.client,
            request: request_name(&ended.request.request),
            parameters: parameters(&ended.request.request, ended.subject),
            thread: std::thread::current().name().unwrap_or_default().to_owned(),
            events,
        });
        begun.is_wanted.then_some(begun.id)
    }

    /// Adds the statement to the slow-query log if it was slow, and sends its span.
    #[inline]
    pub(crate) fn tell_if_slow(
        &self,
        env: &dyn Env,
        observed: &Observed,
        ended: Ended<'_>,
        elapsed_nanos: u64,
    ) {
        if !self.slow.is_slow(elapsed_nanos) {
            return;
        }
        let cost = observed.scope.so_far();
        if let Some(telemetry) = self.spans().filter(|_| !observed.is_sent) {
            let elapsed_micros = i64::try_from(elapsed_nanos / 1000).unwrap_or(i64::MAX);
            let done = Done {
                ended,
                cost: &cost,
                started_micros: env.now_micros().saturating_sub(elapsed_micros),
                elapsed_nanos,
                session: None,
                steps: &[],
            };
            telemetry.send(done.span());
        }
        self.tell_slow(ended, &cost, elapsed_nanos);
    }

    #[cold]
    fn tell_slow(&self, ended: Ended<'_>, cost: &Cost, elapsed_nanos: u64) {
        let shape = ended.subject.shape();
        self.slow.note(SlowStatement {
            text: shown(&ended.request.request, ended.subject, &shape),
            shape: format!("{} {}", shape.keyspace, shape.text),
            elapsed_nanos,
            cost: *cost,
        });
    }
}

fn begin_trace(env: &dyn Env, is_wanted: bool, is_stored: bool) -> BegunTrace {
    trace::begin();
    BegunTrace {
        id: env.time_uuid(),
        started_micros: env.now_micros(),
        is_wanted,
        is_stored,
    }
}

impl Observed {
    /// When the execution began, in nanoseconds of the monotonic clock.
    pub fn started_nanos(&self) -> u64 {
        self.started_nanos
    }

    /// The request's cost so far.
    pub fn scope(&self) -> &CostScope {
        &self.scope
    }

    /// True if the request is traced.
    pub fn is_traced(&self) -> bool {
        self.trace.is_some()
    }
}

/// The custom payload of an answer: the cost, if the payload of the request has [`COST_KEY`].
pub(crate) fn payload(request: &RequestFrame, observed: &Observed) -> Vec<(String, Option<Bytes>)> {
    if !request.custom_payload.iter().any(|(key, _)| key == COST_KEY) {
        return Vec::new();
    }
    vec![(
        COST_KEY.to_owned(),
        Some(cost_as_json(&observed.scope.so_far()).into()),
    )]
}

fn cost_as_json(cost: &Cost) -> String {
    let io = &cost.io;
    let of_disk = [
        ("disk_reads", io.reads),
        ("disk_bytes", io.bytes_read),
        ("disk_wait_nanos", io.read_nanos),
    ];
    let counts = Count::ALL.map(|count| (count.name(), cost.of(count)));
    let pairs = of_disk.into_iter().chain(counts);
    let members: serde_json::Map<String, serde_json::Value> = pairs
        .map(|(name, amount)| (name.to_owned(), amount.into()))
        .collect();
    serde_json::Value::Object(members).to_string()
}
