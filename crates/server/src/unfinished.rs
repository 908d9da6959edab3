//! [`Unfinished`]: what a thread has beside the request that it executes.
//!
//! These are requests and tasks that are not begun, requests that wait for the disk, and answers. Answers that do not wait for the
//! commit log are sent when the task is done; those of writes are sent together, when the log is durable up to the last of them. Before
//! a request waits for another node, everything is passed on, so that it does not wait with it ([`HandsOver`]).

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;
use std::vec::IntoIter;

use ilion_env::DiskReads;
use ilion_env::handover::HandsOver;
use ilion_env::parking::Waiting;
use ilion_protocol::{ErrorResponse, Response, ResponseHead, encode_response};
use ilion_query::{Awaited, LogPosition, StatementWeight};
use smallvec::SmallVec;

use crate::answer::{Columns, encode};
use crate::answer_times::{AnswerTimes, Counters, Timed};
use crate::durability::Durability;
use crate::queues::{Parked, Queues, Task};
use crate::request::Answered;
use crate::session::{InFlight, SentBy, Session, Wire, Work};

/// This many parked requests are passed on together; further ones at the end of the task.
const PARKED_MAX: usize = 8;

/// Once the ready answers have this size, they are sent before the task is done.
const READY_BYTES_MAX: usize = 256 << 10;

/// See the module.
pub(crate) struct Unfinished {
    pool: StatementWeight,
    queues: Queues,
    /// Reads from disk for parked requests; `None` if this thread parks no requests.
    disk: Option<Arc<DiskReads<Parked>>>,
    durability: Arc<dyn Durability>,
    counters: Arc<Counters>,
    /// Tasks that are executed after the current one.
    tasks: RefCell<VecDeque<Task>>,
    /// `None` between two tasks.
    rest: RefCell<Option<Rest>>,
}

struct Rest {
    session: Arc<Session>,
    wire: Wire,
    work: IntoIter<Work>,
    /// Requests that wait for the disk, and are not passed on yet.
    parked: Vec<(Parked, Waiting)>,
    answers: Answers,
}

/// Answers that are not sent yet.
#[derive(Default)]
struct Answers {
    ready: AnswerBatch,
    /// Bytes of large answers that were sent on their own since ready answers were last sent.
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

impl Unfinished {
    pub fn new(
        pool: StatementWeight,
        queues: Queues,
        disk: Option<Arc<DiskReads<Parked>>>,
        durability: Arc<dyn Durability>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            pool,
            queues,
            disk,
            durability,
            counters,
            tasks: RefCell::default(),
            rest: RefCell::default(),
        }
    }

    /// True if requests may be parked while they wait for the disk.
    pub fn parks_for_disk(&self) -> bool {
        self.disk.is_some()
    }

    /// Keeps tasks that are executed one after another.
    pub fn set_tasks(&self, tasks: Vec<Task>) {
        *self.tasks.borrow_mut() = tasks.into();
    }

    /// The next one of these tasks.
    pub fn next_task(&self) -> Option<Task> {
        self.tasks.borrow_mut().pop_front()
    }

    /// Begins a task.
    pub fn begin(&self, session: Arc<Session>, wire: Wire, work: Vec<Work>) {
        *self.rest.borrow_mut() = Some(Rest {
            session,
            wire,
            work: work.into_iter(),
            parked: Vec::new(),
            answers: Answers::default(),
        });
    }

    /// The next request that is not begun.
    pub fn next(&self) -> Option<Work> {
        self.rest.borrow_mut().as_mut()?.work.next()
    }

    /// Drops everything: the client is gone.
    pub fn clear(&self) {
        self.rest.take();
    }

    /// Keeps a request that waits for the disk.
    pub fn park(&self, parked: Parked, waiting: Waiting) {
        if let Some(rest) = &mut *self.rest.borrow_mut() {
            rest.parked.push((parked, waiting));
        }
    }

    /// Keeps an answer until it is sent.
    pub fn answer(
        &self,
        head: &ResponseHead<'_>,
        answered: &Answered,
        cost: InFlight,
        columns: &mut Columns,
    ) {
        let mut rest = self.rest.borrow_mut();
        let Some(Rest { wire, answers, .. }) = &mut *rest else {
            return;
        };
        if let Some(Awaited::Log(position)) = answered.awaited {
            answers.waiting_streams.push(head.stream);
            answers.durable_at = answers.durable_at.max(Some(position));
        }
        let batch = answers.batch_of(answered);
        batch.cost.add(cost);
        encode(
            &mut batch.envelopes,
            head,
            &answered.reply,
            wire.of_envelopes(),
            columns,
        );
    }

    /// Keeps the times of a request whose answer is kept.
    pub fn time(&self, answered: &Answered, timed: Timed) {
        if let Some(rest) = &mut *self.rest.borrow_mut() {
            rest.answers.batch_of(answered).requests.push(timed);
        }
    }

    /// Counts the bytes of an answer that was sent on its own.
    pub fn count_sent(&self, bytes: usize) {
        if let Some(rest) = &mut *self.rest.borrow_mut() {
            rest.answers.sent_bytes += bytes;
        }
    }

    /// Passes on what has gathered, if it is much. If the client leaves too many answers unread, the rest of the work is parked, too.
    /// Returns true if answers were sent.
    pub fn relieve(&self) -> bool {
        let mut borrowed = self.rest.borrow_mut();
        let Some(rest) = &mut *borrowed else {
            return false;
        };
        if rest.parked.len() >= PARKED_MAX {
            self.submit(&mut rest.parked);
        }
        if rest.answers.ready.envelopes.len() + rest.answers.sent_bytes < READY_BYTES_MAX {
            return false;
        }
        self.send_ready(rest);
        let work = std::mem::take(&mut rest.work).collect();
        if let Err(work) = rest.session.park(work) {
            rest.work = work.into_iter();
        }
        true
    }

    /// Ends the task, whose requests have all begun.
    pub fn end(&self) {
        if let Some(rest) = self.rest.take() {
            self.pass_on(rest);
        }
    }

    fn pass_on(&self, mut rest: Rest) {
        self.submit(&mut rest.parked);
        self.send_ready(&mut rest);
        self.send_when_durable(rest);
    }

    fn submit(&self, parked: &mut Vec<(Parked, Waiting)>) {
        if let Some(disk) = self.disk.as_ref().filter(|_| !parked.is_empty()) {
            disk.submit(std::mem::take(parked));
        }
    }

    fn send_ready(&self, rest: &mut Rest) {
        let ready = std::mem::take(&mut rest.answers.ready);
        rest.answers.sent_bytes = 0;
        if ready.cost.requests > 0 {
            let times = AnswerTimes::new(&self.counters, ready.requests);
            let packed = rest.wire.pack(ready.envelopes);
            rest.session
                .deliver_timed(packed, ready.cost, SentBy::Caller, Some(times));
        }
    }

    fn send_when_durable(&self, rest: Rest) {
        let Rest {
            session,
            wire,
            answers,
            ..
        } = rest;
        let Some(position) = answers.durable_at else {
            return;
        };
        let mut times = AnswerTimes::new(&self.counters, answers.waiting.requests);
        let packed = wire.pack(answers.waiting.envelopes);
        let (cost, streams) = (answers.waiting.cost, answers.waiting_streams);
        let caller = thread::current().id();
        let callback = move |durable: Result<(), String>| {
            times.durable_nanos = Some(times.counters.clock.monotonic_nanos());
            let packed = match durable {
                Ok(()) => packed,
                Err(reason) => wire.pack(refusals(wire, &streams, &reason)),
            };
            // A system call would delay the thread of the commit log, so the task of the connection sends.
            let sender = if thread::current().id() == caller {
                SentBy::Caller
            } else {
                SentBy::ConnectionTask
            };
            session.deliver_timed(packed, cost, sender, Some(times));
        };
        self.durability.on_durable(position, Box::new(callback));
    }
}

impl HandsOver for Unfinished {
    fn hand_over(&self) -> bool {
        let tasks = self.tasks.take();
        let has_tasks = !tasks.is_empty();
        for task in tasks {
            self.queues.put(self.pool, task);
        }
        let mut borrowed = self.rest.borrow_mut();
        let Some(current) = borrowed.as_mut().filter(|rest| !rest.is_empty()) else {
            return has_tasks;
        };
        let session = current.session.clone();
        let work: Vec<Work> = std::mem::take(&mut current.work).collect();
        let rest = Rest {
            session: session.clone(),
            wire: current.wire,
            work: IntoIter::default(),
            parked: std::mem::take(&mut current.parked),
            answers: std::mem::take(&mut current.answers),
        };
        drop(borrowed);
        if !work.is_empty() {
            self.queues.put(self.pool, Task { session, work });
        }
        self.pass_on(rest);
        true
    }
}

impl Rest {
    fn is_empty(&self) -> bool {
        let Answers {
            ready, durable_at, ..
        } = &self.answers;
        self.work.as_slice().is_empty()
            && self.parked.is_empty()
            && ready.cost.requests == 0
            && durable_at.is_none()
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
