//! Executes the requests of a task and sends their answers together.
//!
//! Answers that do not wait for the commit log are sent when the task is done. Those of writes are sent together, when the log is
//! durable up to the last of them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use crossbeam_channel::bounded;
use ilion_codec::Rope;
use ilion_env::cost::{self, Count};
use ilion_env::parking::{self, Attempt, Event, Given, Parks, Waiting};
use ilion_env::{DiskReads, Env, trace};
use ilion_protocol::{ErrorResponse, Frame, RequestFrame, Response, ResponseHead, encode_response};
use ilion_query::{Awaited, ClientState, ClusterWrite, LogPosition, StatementWeight};

use ilion_node::costs::Spent;
use smallvec::SmallVec;

use crate::answer::{Columns, Reply, encode, encode_shared};
use crate::answer_times::{AnswerTimes, Counters, Timed};
use crate::auditor::{Auditor, Done};
use crate::described::task_text;
use crate::durability::Durability;
use crate::error_table::error_response;
use crate::events::Events;
use crate::metrics::ServerMetrics;
use crate::observers::{Observers, payload};
use crate::queues::{Doing, Parked, Queues, RunningRequest, Task};
use crate::request::{Answered, Requests, weigh_request};
use crate::request_times::RequestKind;
use crate::session::{Begun, InFlight, SentBy, Session, Wire, Work};
use crate::spans::Ended;

/// This many parked requests are passed on together; further ones at the end of the task.
const PARKED_MAX: usize = 8;

/// Once the ready answers have this size, they are sent before the task is done.
const READY_BYTES_MAX: usize = 256 << 10;

/// What all workers need for executing requests.
pub(crate) struct Executor {
    pub env: Arc<dyn Env>,
    pub requests: Requests,
    pub durability: Arc<dyn Durability>,
    pub events: Arc<Events>,
    pub metrics: Arc<ServerMetrics>,
    pub observers: Arc<Observers>,
    pub auditor: Arc<Auditor>,
}

/// The state of one thread of a pool.
pub(crate) struct Worker {
    executor: Arc<Executor>,
    queues: Queues,
    pool: StatementWeight,
    doing: Arc<Doing>,
    columns: Columns,
    /// Reads from disk for parked requests; `None` if this worker parks no requests.
    disk: Option<Arc<DiskReads<Parked>>>,
    /// What requests of the current task may be parked for; `None` on threads for heavy statements.
    parks: Option<Parks>,
    /// Requests that wait for the disk, and are not passed on yet.
    parked: Vec<(Parked, Waiting)>,
    /// Counts the costs of statements and the times of requests of this thread.
    counters: Arc<Counters>,
    /// When the previous request ended, if the next one follows at once: the clock need not be read for its start.
    follows_nanos: Option<u64>,
}

/// A request's counted size and time of arrival.
struct Arrived {
    cost: InFlight,
    received_nanos: u64,
    begun: Option<Box<Begun>>,
}

/// The outcome of an attempt to execute a request.
enum Attempted {
    /// The answer is sent or added to those of the task, or the request went to another thread.
    Done,
    /// The request waits for the disk. Has the time when a thread first took it, in nanoseconds.
    Waits(u64, Waiting),
    /// As before, but it waits for an event.
    WaitsFor(u64, Event),
}

/// Answers of a task that are not sent yet.
#[derive(Default)]
struct Answers {
    ready: AnswerBatch,
    /// Bytes of large answers that were sent on their own since `park` was last called.
    sent_bytes: usize,
    /// Answers that are sent when the log is durable up to `durable_at`.
    waiting: AnswerBatch,
    waiting_streams: Vec<i16>,
    durable_at: Option<LogPosition>,
}

#[derive(Default)]
struct AnswerBatch {
    envelopes: Vec<u8>,
    cost: InFlight,
    requests: SmallVec<[Timed; 2]>,
}

impl Worker {
    pub fn new(
        executor: Arc<Executor>,
        queues: Queues,
        pool: StatementWeight,
        doing: Arc<Doing>,
        disk: Option<Arc<DiskReads<Parked>>>,
    ) -> Self {
        Self {
            disk,
            parks: None,
            parked: Vec::new(),
            counters: Arc::new(Counters {
                clock: executor.env.clone(),
                costs: executor.observers.costs.new_shard(),
                times: executor.metrics.times.new_worker(),
            }),
            follows_nanos: None,
            executor,
            queues,
            pool,
            doing,
            columns: Columns::default(),
        }
    }

    /// Executes a task. Parks the rest of it if the client leaves too many answers unread, or if the memory for clients is used up.
    pub fn run(&mut self, task: Task) {
        let session = task.session;
        let Some((wire, mut client)) = session.enter() else {
            return;
        };
        let Err(work) = session.park(task.work) else {
            return;
        };
        let mut answers = Answers::default();
        let may_wait = self.disk.as_ref().and_then(|_| self.queues.may_wait(&work));
        self.parks = match self.pool {
            StatementWeight::Point if self.disk.is_some() && may_wait.is_none() => Some(Parks::All),
            StatementWeight::Point => Some(Parks::Events),
            StatementWeight::Heavy => None,
        };
        self.follows_nanos = None;
        let mut rest = work.into_iter();
        while let Some(item) = rest.next() {
            if session.is_gone() {
                self.parked.clear();
                return;
            }
            self.run_item(&session, wire, &mut client, item, &mut answers);
            if self.parked.len() >= PARKED_MAX {
                self.submit_parked();
            }
            if answers.ready.envelopes.len() + answers.sent_bytes >= READY_BYTES_MAX {
                self.send_ready(&session, wire, &mut answers);
                self.follows_nanos = None;
                match session.park(rest.collect()) {
                    Ok(()) => break,
                    Err(work) => rest = work.into_iter(),
                }
            }
        }
        self.submit_parked();
        self.send_ready(&session, wire, &mut answers);
        self.send_when_durable(&session, wire, answers);
    }

    fn submit_parked(&mut self) {
        if let Some(disk) = self.disk.as_ref().filter(|_| !self.parked.is_empty()) {
            disk.submit(std::mem::take(&mut self.parked));
        }
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
            Work::Frame {
                frame,
                received_nanos,
                begun,
            } => {
                let arrived = Arrived {
                    cost: InFlight::of(&frame),
                    received_nanos,
                    begun,
                };
                let attempted = self.run_frame(session, wire, client, &frame, arrived, answers);
                let session = session.clone();
                let parked = |started_nanos| Parked {
                    session,
                    frame,
                    received_nanos,
                    started_nanos,
                };
                match attempted {
                    Attempted::Done => {}
                    Attempted::Waits(started_nanos, waiting) => {
                        self.parked.push((parked(started_nanos), waiting));
                    }
                    Attempted::WaitsFor(started_nanos, event) => {
                        let (parked, queues) = (parked(started_nanos), self.queues.clone());
                        event.begin(move |given| queues.resume(vec![(parked, given)]));
                    }
                }
            }
            Work::Heavy {
                request,
                cost,
                received_nanos,
            } => {
                let arrived = Arrived {
                    cost,
                    received_nanos,
                    begun: None,
                };
                self.run_request(session, wire, client, &request, arrived, answers);
            }
        }
    }

    fn run_frame(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        frame: &Frame,
        arrived: Arrived,
        answers: &mut Answers,
    ) -> Attempted {
        let Arrived {
            cost, received_nanos, ..
        } = arrived;
        let request = match RequestFrame::decode(frame) {
            Ok(request) => request,
            Err(error) => {
                let reply = Reply::error(ErrorResponse::from(error));
                self.executor.metrics.count_error(&reply);
                answers.add(wire, frame.stream, &Answered::of(reply), cost, &mut self.columns);
                return Attempted::Done;
            }
        };
        let weight = weigh_request(&*self.executor.requests.statements, &request.request);
        if weight == StatementWeight::Heavy && self.pool == StatementWeight::Point {
            let work = vec![Work::Heavy {
                request: Box::new(request),
                cost,
                received_nanos,
            }];
            let session = session.clone();
            self.queues.put(weight, Task { session, work });
            return Attempted::Done;
        }
        self.run_request(session, wire, client, &request, arrived, answers)
    }

    fn run_request(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        request: &RequestFrame,
        arrived: Arrived,
        answers: &mut Answers,
    ) -> Attempted {
        let executor = &*self.executor;
        let follows = self.follows_nanos.take();
        let (first, given) = match arrived.begun {
            Some(begun) => (Some(begun.started_nanos), begun.given),
            None => (None, Given::default()),
        };
        let started = first.or(follows);
        let mut observed = executor.observers.begin(&*executor.env, request, started);
        let _running = (self.pool == StatementWeight::Heavy).then(|| {
            self.doing.request(RunningRequest {
                text: task_text(&request.request, &*executor.requests.statements),
                received_nanos: arrived.received_nanos,
                started_nanos: observed.started_nanos(),
            })
        });
        let was_told = client.is_told_of_use;
        let mut execute = || {
            catch_unwind(AssertUnwindSafe(|| {
                executor.requests.answer(session, client, request)
            }))
            .unwrap_or_else(|_| {
                // The panic hook has logged the panic itself.
                Answered::of(Reply::error(ErrorResponse::server(
                    "the statement met a bug of the server; its log has more",
                )))
            })
        };
        let attempt = match self.parks {
            Some(parks) if !observed.is_traced() => parking::attempt(given, parks, execute),
            _ => Attempt::Done(execute()),
        };
        let mut answered = match attempt {
            Attempt::Done(answered) => answered,
            Attempt::Waits(waiting) => return Attempted::Waits(observed.started_nanos(), waiting),
            Attempt::WaitsFor(event) => return Attempted::WaitsFor(observed.started_nanos(), event),
        };
        if answered.reply.sets_keyspace() {
            session.change_client(|known| known.state = client.clone());
        } else if client.is_told_of_use && !was_told {
            session.change_client(|known| known.state.is_told_of_use = true);
        }
        for event in &answered.events {
            executor.events.send(event);
        }
        let mut waited_nanos = 0;
        if observed.is_traced() {
            waited_nanos = executor.wait_until_durable(&mut answered);
            answered.tracing_id = executor.observers.end_trace(
                &*executor.env,
                &mut observed,
                Ended {
                    request,
                    subject: &answered.subject,
                    error: answered.reply.error_code(),
                    client: session.peer.ip(),
                },
            );
        }
        executor.auditor.request(Done {
            session,
            client,
            request: &request.request,
            answered: &answered,
            statements: &*executor.requests.statements,
            started_nanos: observed.started_nanos(),
        });
        answered.payload = payload(request, &observed);
        let stream = request.stream;
        let shared = shared_envelope(wire, stream, &answered, &mut self.columns);
        let on_its_way = match &answered.awaited {
            Some(Awaited::Cluster(write)) => Some(write.clone()),
            _ => None,
        };
        if shared.is_none() && on_its_way.is_none() {
            answers.add(wire, stream, &answered, arrived.cost, &mut self.columns);
        }
        let started = observed.started_nanos();
        let ended = executor.env.monotonic_nanos();
        self.follows_nanos = Some(ended);
        executor.metrics.count_error(&answered.reply);
        if let Some(id) = answered.subject.id() {
            let spent = Spent {
                cost: observed.scope(),
                elapsed_nanos: None,
                is_error: answered.reply.error_code().is_some(),
            };
            let subject = &answered.subject;
            self.counters.costs.lock().record(id, || subject.shape(), &spent);
            executor.observers.tell_if_slow(
                &*executor.env,
                &observed,
                Ended {
                    request,
                    subject,
                    error: answered.reply.error_code(),
                    client: session.peer.ip(),
                },
                ended.saturating_sub(started),
            );
        }
        let timed = Timed {
            kind: RequestKind::of(&request.request),
            statement: answered.subject.id(),
            received_nanos: arrived.received_nanos,
            started_nanos: started,
            ended_nanos: ended,
            waited_nanos,
        };
        if let Some(write) = on_its_way {
            let times = self.times_of(SmallVec::from_iter([timed]), None);
            self.send_when_acknowledged(session, wire, (stream, &answered), arrived.cost, times, &write);
            return Attempted::Done;
        }
        match shared {
            Some(envelope) => {
                answers.sent_bytes += envelope.len();
                let times = self.times_of(SmallVec::from_iter([timed]), None);
                session.deliver_timed(
                    wire.pack_shared(envelope),
                    arrived.cost,
                    SentBy::Caller,
                    Some(times),
                );
            }
            None => answers.batch_of(&answered).requests.push(timed),
        }
        Attempted::Done
    }

    fn times_of(&self, requests: SmallVec<[Timed; 2]>, durable_nanos: Option<u64>) -> AnswerTimes {
        AnswerTimes {
            counters: self.counters.clone(),
            durable_nanos,
            requests,
        }
    }

    fn send_ready(&self, session: &Session, wire: Wire, answers: &mut Answers) {
        let ready = std::mem::take(&mut answers.ready);
        answers.sent_bytes = 0;
        if ready.cost.requests > 0 {
            let times = self.times_of(ready.requests, None);
            let packed = wire.pack(ready.envelopes);
            session.deliver_timed(packed, ready.cost, SentBy::Caller, Some(times));
        }
    }

    /// Sends the answer to a write when the logs of the cluster have acknowledged the write; if they refuse it, sends the error.
    fn send_when_acknowledged(
        &self,
        session: &Arc<Session>,
        wire: Wire,
        (stream, answered): (i16, &Answered),
        cost: InFlight,
        mut times: AnswerTimes,
        write: &ClusterWrite,
    ) {
        let encoded = move |head: &ResponseHead<'_>, reply: &Reply| {
            let mut envelope = Vec::new();
            encode(
                &mut envelope,
                head,
                reply,
                wire.of_envelopes(),
                &mut Columns::default(),
            );
            envelope
        };
        let mut envelope = encoded(&head_of(wire, stream, answered), &answered.reply);
        let (session, executor) = (session.clone(), self.executor.clone());
        write.on_done(move |done| {
            times.durable_nanos = Some(times.counters.clock.monotonic_nanos());
            if let Err(error) = done {
                let reply = Reply::error(error_response(error, executor.requests.node));
                executor.metrics.count_error(&reply);
                envelope = encoded(&ResponseHead::new(wire.version, stream), &reply);
            }
            session.deliver_timed(wire.pack(envelope), cost, SentBy::ConnectionTask, Some(times));
        });
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
        let mut times = self.times_of(waiting.requests, None);
        let packed = wire.pack(waiting.envelopes);
        let cost = waiting.cost;
        let session = session.clone();
        let caller = thread::current().id();
        let callback = move |durable: Result<(), String>| {
            times.durable_nanos = Some(times.counters.clock.monotonic_nanos());
            let packed = match durable {
                Ok(()) => packed,
                Err(reason) => wire.pack(refusals(wire, &waiting_streams, &reason)),
            };
            // A system call would delay the thread of the commit log, so the task of the connection sends.
            let sender = if thread::current().id() == caller {
                SentBy::Caller
            } else {
                SentBy::ConnectionTask
            };
            session.deliver_timed(packed, cost, sender, Some(times));
        };
        self.executor.durability.on_durable(position, Box::new(callback));
    }
}

impl Executor {
    /// Waits until the write of a traced request is durable, so that the trace contains the wait. Returns its nanoseconds.
    fn wait_until_durable(&self, answered: &mut Answered) -> u64 {
        let Some(awaited) = answered.awaited.take() else {
            return 0;
        };
        let began = self.env.monotonic_nanos();
        match awaited {
            Awaited::Log(position) => {
                let (sender, receiver) = bounded(1);
                let tell = move |durable| drop(sender.send(durable));
                self.durability.on_durable(position, Box::new(tell));
                match receiver.recv() {
                    Ok(Ok(())) => trace::note(|| "Commitlog is durable"),
                    Ok(Err(reason)) => answered.reply = refusal(&reason),
                    Err(_) => answered.reply = refusal("it was closed"),
                }
            }
            Awaited::Cluster(write) => {
                let (sender, receiver) = bounded(1);
                write.on_done(move |done| drop(sender.send(done)));
                match receiver.recv() {
                    Ok(Ok(())) => trace::note(|| "The logs of the cluster have acknowledged the write"),
                    Ok(Err(error)) => {
                        answered.reply = Reply::error(error_response(error, self.requests.node))
                    }
                    Err(_) => answered.reply = refusal("it was closed"),
                }
            }
        }
        let waited = self.env.monotonic_nanos().saturating_sub(began);
        cost::add(Count::LogNanos, waited);
        waited
    }
}

fn refusal(reason: &str) -> Reply {
    Reply::error(ErrorResponse::server(format!("the commit log failed: {reason}")))
}

/// Encodes errors as the answers to writes after a failure of the commit log: these writes may be lost.
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

/// Encodes an answer whose large values are not copied. Returns `None` if the answer has no large values, must be compressed as a
/// whole, or waits for the commit log.
fn shared_envelope(wire: Wire, stream: i16, answered: &Answered, columns: &mut Columns) -> Option<Rope> {
    if wire.of_envelopes().is_some() || answered.awaited.is_some() {
        return None;
    }
    encode_shared(&head_of(wire, stream, answered), &answered.reply, columns)
}

fn head_of(wire: Wire, stream: i16, answered: &Answered) -> ResponseHead<'_> {
    ResponseHead {
        tracing_id: answered.tracing_id,
        custom_payload: &answered.payload,
        ..ResponseHead::new(wire.version, stream).with_warnings(&answered.warnings)
    }
}

impl Answers {
    /// The batch with which this answer is sent.
    fn batch_of(&mut self, answered: &Answered) -> &mut AnswerBatch {
        match answered.awaited {
            Some(_) => &mut self.waiting,
            None => &mut self.ready,
        }
    }

    fn add(&mut self, wire: Wire, stream: i16, answered: &Answered, cost: InFlight, columns: &mut Columns) {
        if let Some(Awaited::Log(position)) = answered.awaited {
            self.waiting_streams.push(stream);
            self.durable_at = self.durable_at.max(Some(position));
        }
        let batch = self.batch_of(answered);
        batch.cost.add(cost);
        let head = head_of(wire, stream, answered);
        encode(
            &mut batch.envelopes,
            &head,
            &answered.reply,
            wire.of_envelopes(),
            columns,
        );
    }
}
