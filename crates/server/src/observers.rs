//! Observation of requests: costs by shape, the slow-query log, traces.
//!
//! [`Observers::begin`] starts to count before a request is executed, and starts its trace. Afterwards `Observed` has its cost.
//! The id of the trace and the cost in the custom payload become part of the answer here.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::cost::{self, CostScope};
use ilion_env::{Cost, Count, Env, trace};
use ilion_protocol::RequestFrame;
use uuid::Uuid;

use crate::costs::{SlowLog, SlowStatement, StatementCosts};
use crate::described::{is_traceable, parameters, request_name, shown};
use crate::subject::Subject;
use crate::traces::{Trace, TraceProbability, TraceStore};

/// A request whose custom payload has this key is answered with its cost as JSON under the same key.
pub const COST_KEY: &str = "ilion.cost";

/// Where the costs, slow statements and traces of requests go.
#[derive(Default)]
pub struct Observers {
    /// Costs of statements.
    pub costs: Arc<StatementCosts>,
    /// The slow-query log.
    pub slow: SlowLog,
    /// Store for traces; `None`: no request is traced.
    pub traces: Option<Arc<dyn TraceStore>>,
    /// Share of the requests that are traced without being asked to.
    pub trace_probability: TraceProbability,
}

/// A request under observation.
pub(crate) struct Observed {
    started_nanos: u64,
    scope: CostScope,
    trace: Option<BegunTrace>,
}

struct BegunTrace {
    id: Uuid,
    started_micros: i64,
    /// The client asked for it and gets its id.
    is_wanted: bool,
}

impl Observers {
    /// Starts to observe a request on this thread; `now_nanos` is the time, if the caller knows it.
    #[inline]
    pub(crate) fn begin(&self, env: &dyn Env, request: &RequestFrame, now_nanos: Option<u64>) -> Observed {
        let is_wanted = request.tracing;
        let is_traced = (is_wanted || self.trace_probability.is_met(env))
            && is_traceable(&request.request)
            && self.traces.is_some();
        Observed {
            trace: is_traced.then(|| begin_trace(env, is_wanted)),
            started_nanos: now_nanos.unwrap_or_else(|| env.monotonic_nanos()),
            scope: cost::begin(),
        }
    }

    /// Stores the trace, if there is one. Returns its id if the client asked for the trace.
    pub(crate) fn end_trace(
        &self,
        env: &dyn Env,
        observed: &mut Observed,
        client: IpAddr,
        request: &RequestFrame,
        subject: &Subject,
    ) -> Option<Uuid> {
        let begun = observed.trace.take()?;
        let elapsed = env.monotonic_nanos().saturating_sub(observed.started_nanos);
        let events = trace::finish();
        self.traces.as_ref()?.store(Trace {
            id: begun.id,
            started_micros: begun.started_micros,
            duration_micros: elapsed / 1000,
            client,
            request: request_name(&request.request),
            parameters: parameters(&request.request, subject),
            thread: std::thread::current().name().unwrap_or_default().to_owned(),
            events,
        });
        begun.is_wanted.then_some(begun.id)
    }

    /// Adds the statement to the slow-query log if it was slow.
    #[inline]
    pub(crate) fn tell_if_slow(
        &self,
        request: &RequestFrame,
        subject: &Subject,
        observed: &Observed,
        elapsed_nanos: u64,
    ) {
        if self.slow.is_slow(elapsed_nanos) {
            self.tell_slow(request, subject, &observed.scope.so_far(), elapsed_nanos);
        }
    }

    #[cold]
    fn tell_slow(&self, request: &RequestFrame, subject: &Subject, cost: &Cost, elapsed_nanos: u64) {
        let shape = subject.shape();
        self.slow.note(SlowStatement {
            text: shown(&request.request, subject, &shape),
            shape: format!("{} {}", shape.keyspace, shape.text),
            elapsed_nanos,
            cost: *cost,
        });
    }
}

fn begin_trace(env: &dyn Env, is_wanted: bool) -> BegunTrace {
    trace::begin();
    BegunTrace {
        id: env.time_uuid(),
        started_micros: env.now_micros(),
        is_wanted,
    }
}

impl Observed {
    /// When the execution began.
    pub fn started_nanos(&self) -> u64 {
        self.started_nanos
    }

    /// Its cost so far.
    pub fn scope(&self) -> &CostScope {
        &self.scope
    }

    /// True if it is traced.
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
