//! Executes the requests of a task one after another.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use crossbeam_channel::bounded;
use ilion_codec::Rope;
use ilion_env::cost::{self, Count};
use ilion_env::parking::{self, Attempt, Event, Given, Parks, Waiting};
use ilion_env::{DiskReads, Env, handover, trace};
use ilion_protocol::{ErrorResponse, Frame, RequestFrame, ResponseHead};
use ilion_query::{Awaited, ClientState, ClusterWrite, StatementWeight};

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
use crate::queues::{Doing, Message, Parked, Queues, RunningRequest, Task};
use crate::request::{Answered, Requests, weigh_request};
use crate::request_times::RequestKind;
use crate::session::{Begun, InFlight, SentBy, Session, Wire, Work};
use crate::spans::Ended;
use crate::unfinished::Unfinished;

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
    /// What this thread has of its task beside the request that it executes.
    unfinished: Rc<Unfinished>,
    _hands_over: handover::Scope,
    /// What requests of the current task may be parked for; `None` on threads for heavy statements.
    parks: Option<Parks>,
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

impl Worker {
    /// A worker of this thread.
    pub fn new(
        executor: Arc<Executor>,
        queues: Queues,
        pool: StatementWeight,
        doing: Arc<Doing>,
        disk: Option<Arc<DiskReads<Parked>>>,
    ) -> Self {
        let counters = Arc::new(Counters {
            clock: executor.env.clone(),
            costs: executor.observers.costs.new_shard(),
            times: executor.metrics.times.new_worker(),
        });
        let unfinished = Rc::new(Unfinished::new(
            pool,
            queues.clone(),
            disk,
            executor.durability.clone(),
            counters.clone(),
        ));
        Self {
            _hands_over: handover::set(unfinished.clone()),
            unfinished,
            parks: None,
            counters,
            follows_nanos: None,
            executor,
            queues,
            pool,
            doing,
            columns: Columns::default(),
        }
    }

    /// Executes what a message of the queue has.
    pub fn run(&mut self, message: Message) {
        match message {
            Message::Task(task) => self.run_task(task),
            Message::Resumed => {
                self.unfinished.set_tasks(self.queues.take_resumed());
                while let Some(task) = self.unfinished.next_task() {
                    self.run_task(task);
                }
            }
            Message::Stop => {}
        }
    }

    /// Executes a task. Parks the rest of it if the client leaves too many answers unread, or if the memory for clients is used up.
    fn run_task(&mut self, task: Task) {
        let session = task.session;
        let Some((wire, mut client)) = session.enter() else {
            return;
        };
        let Err(work) = session.park(task.work) else {
            return;
        };
        let parks_for_disk = self.unfinished.parks_for_disk();
        let may_wait = parks_for_disk.then(|| self.queues.may_wait(&work)).flatten();
        self.parks = match self.pool {
            StatementWeight::Point if parks_for_disk && may_wait.is_none() => Some(Parks::All),
            StatementWeight::Point => Some(Parks::Events),
            StatementWeight::Heavy => None,
        };
        self.follows_nanos = None;
        self.unfinished.begin(session.clone(), wire, work);
        while let Some(item) = self.unfinished.next() {
            if session.is_gone() {
                return self.unfinished.clear();
            }
            self.run_item(&session, wire, &mut client, item);
            if self.unfinished.relieve() {
                self.follows_nanos = None;
            }
        }
        self.unfinished.end();
    }

    fn run_item(&mut self, session: &Arc<Session>, wire: Wire, client: &mut ClientState, item: Work) {
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
                let attempted = self.run_frame(session, wire, client, &frame, arrived);
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
                        self.unfinished.park(parked(started_nanos), waiting);
                    }
                    Attempted::WaitsFor(started_nanos, event) => {
                        let (parked, queues) = (parked(started_nanos), self.queues.clone());
                        event.begin(move |given| queues.resume_after_event(parked, given));
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
                self.run_request(session, wire, client, &request, arrived);
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
    ) -> Attempted {
        let Arrived {
            cost, received_nanos, ..
        } = arrived;
        let request = match RequestFrame::decode(frame) {
            Ok(request) => request,
            Err(error) => {
                let reply = Reply::error(ErrorResponse::from(error));
                self.executor.metrics.count_error(&reply);
                let head = ResponseHead::new(wire.version, frame.stream);
                let answered = Answered::of(reply);
                self.unfinished.answer(&head, &answered, cost, &mut self.columns);
                return Attempted::Done;
            }
        };
        // A request that was parked is not moved any more: another thread would not get what it has waited for.
        let is_heavy = self.pool == StatementWeight::Point
            && arrived.begun.is_none()
            && weigh_request(&*self.executor.requests.statements, &request.request) == StatementWeight::Heavy;
        if is_heavy {
            let work = vec![Work::Heavy {
                request: Box::new(request),
                cost,
                received_nanos,
            }];
            let session = session.clone();
            self.queues.put(StatementWeight::Heavy, Task { session, work });
            return Attempted::Done;
        }
        self.run_request(session, wire, client, &request, arrived)
    }

    fn run_request(
        &mut self,
        session: &Arc<Session>,
        wire: Wire,
        client: &mut ClientState,
        request: &RequestFrame,
        arrived: Arrived,
    ) -> Attempted {
        let executor = &*self.executor;
        let follows = self.follows_nanos.take();
        let (mut observed, given) = match arrived.begun {
            Some(begun) => (executor.observers.resume(begun.started_nanos), begun.given),
            None => {
                let observed = executor.observers.begin(&*executor.env, request, follows);
                (observed, Given::default())
            }
        };
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
            let head = head_of(wire, stream, &answered);
            self.unfinished
                .answer(&head, &answered, arrived.cost, &mut self.columns);
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
            let times = AnswerTimes::new(&self.counters, SmallVec::from_iter([timed]));
            self.send_when_acknowledged(session, wire, (stream, &answered), arrived.cost, times, &write);
            return Attempted::Done;
        }
        match shared {
            Some(envelope) => {
                self.unfinished.count_sent(envelope.len());
                let times = AnswerTimes::new(&self.counters, SmallVec::from_iter([timed]));
                session.deliver_timed(
                    wire.pack_shared(envelope),
                    arrived.cost,
                    SentBy::Caller,
                    Some(times),
                );
            }
            None => self.unfinished.time(&answered, timed),
        }
        Attempted::Done
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
}

impl Executor {
    /// Waits until the write of a traced request is durable, so that the trace contains the wait. Returns its nanoseconds.
    fn wait_until_durable(&self, answered: &mut Answered) -> u64 {
        let Some(awaited) = answered.awaited.take() else {
            return 0;
        };
        let began = self.env.monotonic_nanos();
        handover::before_wait();
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
