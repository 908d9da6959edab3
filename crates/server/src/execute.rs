//! Executing the requests of a task and answering them together.
//!
//! Answers that need nothing of the commit log leave when the task is done; those of writes leave together when the log
//! is durable up to the last of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use ilion_env::Env;
use ilion_protocol::{ErrorResponse, Frame, RequestFrame, Response, ResponseHead, encode_response};
use ilion_query::{ClientState, LogPosition, StatementWeight};

use crate::answer::{Columns, Reply, encode};
use crate::durability::Durability;
use crate::events::Events;
use crate::metrics::ServerMetrics;
use crate::request::{Answered, Requests, weigh_request};
use crate::session::{Cost, Sender, Session, Wire, Work};
use crate::workers::{Queues, Task};

/// Answers that are ready leave early when there are this many bytes of them.
const READY_BYTES_MAX: usize = 256 << 10;

/// What executing takes; shared by all workers.
pub(crate) struct Executor {
    pub env: Arc<dyn Env>,
    pub requests: Requests,
    pub durability: Arc<dyn Durability>,
    pub events: Arc<Events>,
    pub metrics: Arc<ServerMetrics>,
}

/// One thread of a pool.
pub(crate) struct Worker {
    executor: Arc<Executor>,
    queues: Queues,
    pool: StatementWeight,
    columns: Columns,
}

/// Answers of a task that were not sent yet.
#[derive(Default)]
struct Answers {
    ready: Batch,
    /// These leave when the log is durable up to `durable_at`.
    waiting: Batch,
    waiting_streams: Vec<i16>,
    durable_at: Option<LogPosition>,
}

#[derive(Default)]
struct Batch {
    envelopes: Vec<u8>,
    cost: Cost,
}

impl Worker {
    pub fn new(executor: Arc<Executor>, queues: Queues, pool: StatementWeight) -> Self {
        Self {
            executor,
            queues,
            pool,
            columns: Columns::default(),
        }
    }

    /// Executes a task, or parks what its client leaves no room for.
    pub fn run(&mut self, task: Task) {
        let session = task.session;
        let Some((wire, mut client)) = session.enter() else {
            return;
        };
        let Err(work) = session.park(task.work) else {
            return;
        };
        let mut answers = Answers::default();
        let mut rest = work.into_iter();
        while let Some(item) = rest.next() {
            if session.is_gone() {
                return;
            }
            self.run_item(&session, wire, &mut client, item, &mut answers);
            if answers.ready.envelopes.len() >= READY_BYTES_MAX {
                send_ready(&session, wire, &mut answers);
                match session.park(rest.collect()) {
                    Ok(()) => break,
                    Err(work) => rest = work.into_iter(),
                }
            }
        }
        send_ready(&session, wire, &mut answers);
        self.send_when_durable(&session, wire, answers);
    }

    fn run_item(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        item: Work,
        answers: &mut Answers,
    ) {
        match item {
            Work::Frame(frame) => self.run_frame(session, wire, client, &frame, answers),
            Work::Heavy(request, cost) => self.run_request(session, wire, client, &request, cost, answers),
        }
    }

    fn run_frame(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        frame: &Frame,
        answers: &mut Answers,
    ) {
        let cost = Cost::of(frame);
        let request = match RequestFrame::decode(frame) {
            Ok(request) => request,
            Err(error) => {
                let reply = Reply::error(ErrorResponse::from(error));
                self.executor.metrics.count_error(&reply);
                answers.add(wire, frame.stream, &Answered::of(reply), cost, &mut self.columns);
                return;
            }
        };
        let weight = weigh_request(&*self.executor.requests.statements, &request.request);
        if weight == StatementWeight::Heavy && self.pool == StatementWeight::Point {
            let work = vec![Work::Heavy(Box::new(request), cost)];
            let session = session.clone();
            self.queues.put(weight, Task { session, work });
            return;
        }
        self.run_request(session, wire, client, &request, cost, answers);
    }

    fn run_request(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        request: &RequestFrame,
        cost: Cost,
        answers: &mut Answers,
    ) {
        let executor = &*self.executor;
        let started = executor.env.monotonic_nanos();
        let answered = catch_unwind(AssertUnwindSafe(|| {
            executor.requests.answer(session, client, request)
        }))
        .unwrap_or_else(|_| {
            // The panic itself was printed by the hook, with its place.
            Answered::of(Reply::error(ErrorResponse::server(
                "the statement met a bug of the server; its log has more",
            )))
        });
        if answered.reply.sets_keyspace() {
            session.change_client(|known| known.state = client.clone());
        }
        for event in &answered.events {
            executor.events.send(event);
        }
        answers.add(wire, request.stream, &answered, cost, &mut self.columns);
        let elapsed = executor.env.monotonic_nanos().saturating_sub(started);
        executor.metrics.count_request(&request.request, elapsed);
        executor.metrics.count_error(&answered.reply);
    }

    fn send_when_durable(&self, session: &Arc<Session>, wire: Wire, answers: Answers) {
        let Some(position) = answers.durable_at else {
            return;
        };
        let Answers {
            waiting,
            waiting_streams,
            ..
        } = answers;
        let packed = wire.pack(waiting.envelopes);
        let cost = waiting.cost;
        let session = session.clone();
        let caller = thread::current().id();
        let callback = move |durable: Result<(), String>| {
            let packed = match durable {
                Ok(()) => packed,
                Err(reason) => wire.pack(refusals(wire, &waiting_streams, &reason)),
            };
            // The log's own thread has the next sync to do.
            let sender = if thread::current().id() == caller {
                Sender::Itself
            } else {
                Sender::Task
            };
            session.deliver(packed, cost, sender);
        };
        self.executor.durability.on_durable(position, Box::new(callback));
    }
}

fn send_ready(session: &Session, wire: Wire, answers: &mut Answers) {
    let ready = std::mem::take(&mut answers.ready);
    if ready.cost.requests > 0 {
        session.deliver(wire.pack(ready.envelopes), ready.cost, Sender::Itself);
    }
}

/// What writes are answered with whose commit log has failed: they may be lost.
fn refusals(wire: Wire, streams: &[i16], reason: &str) -> Vec<u8> {
    let mut envelopes = Vec::new();
    let response = Response::Error(ErrorResponse::server(format!("the commit log failed: {reason}")));
    for &stream in streams {
        let head = ResponseHead::new(wire.version, stream);
        // An error message is far below the limit of an envelope.
        let _ = encode_response(&mut envelopes, &head, &response, wire.of_envelopes());
    }
    envelopes
}

impl Answers {
    fn add(&mut self, wire: Wire, stream: i16, answered: &Answered, cost: Cost, columns: &mut Columns) {
        let batch = match answered.durable_at {
            Some(position) => {
                self.waiting_streams.push(stream);
                self.durable_at = self.durable_at.max(Some(position));
                &mut self.waiting
            }
            None => &mut self.ready,
        };
        batch.cost.add(cost);
        let head = ResponseHead::new(wire.version, stream).with_warnings(&answered.warnings);
        encode(
            &mut batch.envelopes,
            &head,
            &answered.reply,
            wire.of_envelopes(),
            columns,
        );
    }
}
