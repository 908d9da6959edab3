//! [`ClusterLogs`]: the logs of a simulated cluster, and each node's way to them ([`NodeLogs`]). Nothing arrives by itself: the scheduler
//! calls [`ClusterLogs::step`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ilion_cluster::META_TABLET;
use ilion_commitlog::{
    AppendCallback, AppendError, Capabilities, Delivered, EndCallback, Envelope, Position, SharedLogs,
    SharedTail, TailError,
};
use ilion_env::{Seeded, turns};
use parking_lot::Mutex;

use crate::log::{Answer, LogFaults, Side, SimLog, Ticket};

const RECORD_BYTES_MAX: u32 = 1 << 20;
/// For a delivery of a log, fewer records of its sequence than this are read.
const DELIVERED_MAX: u64 = 12;

/// The end of a log is not known once in this many questions.
const UNKNOWN_ENDS: u64 = 4;

/// A process: its node and incarnation.
type Sender = (u32, u32);

/// Requests, answers and deliveries are late by less than one of these. A read is stale only if a delivery is later than an answer.
const LATE_MICROS_MAX: [u64; 2] = [100_000, 1_500_000];

/// A process that waits for the answer of a log.
struct Waiting {
    sender: Sender,
    way: Arc<Way>,
    callback: AppendCallback,
}

/// A question for the end of a log, on its way to the log.
struct Question {
    log: u32,
    way: Arc<Way>,
    side: Side,
    callback: EndCallback,
    /// It does not arrive before this time.
    due_micros: i64,
}

/// What a log answers, and to whom.
enum Reply {
    Append(Sender, AppendCallback, Answer),
    End(EndCallback, Option<u64>),
}

/// The answer of a log on its way to its sender.
struct Answered {
    log: u32,
    reply: Reply,
    /// It does not arrive before this time.
    due_micros: i64,
}

struct Inner {
    seed: u64,
    random: Seeded,
    faults: LogFaults,
    /// In how many sequences the logs of tablets are kept.
    sequences: u32,
    /// By the number of their sequence.
    logs: BTreeMap<u32, SimLog>,
    waiting: BTreeMap<(u32, Ticket), Waiting>,
    questions: Vec<Question>,
    /// Those of one log to one sender of records arrive in order.
    answered: Vec<Answered>,
    now_micros: i64,
}

impl Inner {
    /// See [`SharedLogs::sequence_of`].
    fn sequence_of(&self, log: u32) -> u32 {
        match log {
            META_TABLET => log,
            _ => log % self.sequences,
        }
    }

    /// The log of a sequence.
    fn log(&mut self, number: u32) -> &mut SimLog {
        let (seed, faults, now) = (self.seed, self.faults, self.now_micros);
        let log = self.logs.entry(number);
        let log = log.or_insert_with(|| SimLog::new(seed.wrapping_add(u64::from(number) << 32), faults));
        log.set_clock(now);
        log
    }

    /// Delivers one request to a log.
    fn deliver(&mut self, number: u32) {
        let log = self.log(number);
        log.step();
        for (ticket, answer) in log.take_answers() {
            if let Some(waiting) = self.waiting.remove(&(number, ticket)) {
                let late = self.late_until(&waiting.way.late_answers);
                let due_micros = late.unwrap_or(i64::MIN);
                self.answered.push(Answered {
                    log: number,
                    reply: Reply::Append(waiting.sender, waiting.callback, answer),
                    due_micros,
                });
            }
        }
    }

    /// Delivers one of the questions for ends that can arrive now. Returns false if there are none.
    fn deliver_question(&mut self) -> bool {
        let due = self.questions.iter().enumerate();
        let due = due.filter(|(_, question)| question.due_micros <= self.now_micros);
        let due: Vec<usize> = due.map(|(index, _)| index).collect();
        let chosen = self.random.below(due.len() as u64) as usize;
        let Some(index) = due.get(chosen) else {
            return false;
        };
        let question = self.questions.remove(*index);
        let is_unknown = self.random.one_in(UNKNOWN_ENDS);
        let log = self.log(self.sequence_of(question.log));
        // A leader that was cut off is not confirmed.
        let is_confirmed = question.side == Side::Majority || !log.is_isolated();
        let end = (is_confirmed && !is_unknown).then(|| log.end(Side::Majority).segment.0);
        let late = self.late_until(&question.way.late_answers);
        self.answered.push(Answered {
            log: question.log,
            reply: Reply::End(question.callback, end),
            due_micros: late.unwrap_or(i64::MIN),
        });
        true
    }

    /// Until when something is late; `None` if it is not. One in this many is, none if that is 0.
    fn late_until(&mut self, one_in: &AtomicU64) -> Option<i64> {
        let one_in = one_in.load(Relaxed);
        let is_late = one_in != 0 && self.random.one_in(one_in);
        let max = LATE_MICROS_MAX[self.random.below(2) as usize];
        is_late.then(|| self.now_micros + self.random.below(max) as i64)
    }

    /// Takes one of the answers that can arrive now.
    fn take_answer(&mut self) -> Option<Answered> {
        let mut behind = BTreeSet::new();
        let firsts = self.answered.iter().enumerate();
        let firsts = firsts.filter(|(_, answered)| match answered.reply {
            Reply::Append(sender, ..) => behind.insert((answered.log, sender)),
            Reply::End(..) => true,
        });
        let due = firsts.filter(|(_, answered)| answered.due_micros <= self.now_micros);
        let due: Vec<usize> = due.map(|(index, _)| index).collect();
        let chosen = self.random.below(due.len() as u64) as usize;
        due.get(chosen).map(|index| self.answered.remove(*index))
    }
}

/// See the module. Clones share the logs.
#[derive(Clone)]
pub(super) struct ClusterLogs(Arc<Mutex<Inner>>);

impl ClusterLogs {
    /// Empty logs, whose seed decides which faults happen. Those of tablets are kept in so many sequences.
    pub fn new(seed: u64, sequences: u32, now_micros: i64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            seed,
            random: Seeded::new(!seed),
            faults: LogFaults {
                keeps_order: true,
                ..LogFaults::default()
            },
            sequences,
            logs: BTreeMap::new(),
            waiting: BTreeMap::new(),
            questions: Vec::new(),
            answered: Vec::new(),
            now_micros,
        })))
    }

    /// Sets the faults from now on.
    pub fn set_faults(&self, faults: LogFaults) {
        let mut inner = self.0.lock();
        inner.faults = faults;
        inner.logs.values_mut().for_each(|log| log.set_faults(faults));
    }

    /// Advances the clock of the logs.
    pub fn advance_micros(&self, micros: i64) {
        self.0.lock().now_micros += micros;
    }

    /// Delivers one request to its log, or the answer to one to its sender. Returns false if none can arrive now.
    pub fn step(&self) -> bool {
        let arrived = {
            let mut inner = self.0.lock();
            if inner.random.one_in(2) && inner.deliver_question() {
                return true;
            }
            let busy = inner.logs.iter().filter(|(_, log)| log.is_busy());
            let busy: Vec<u32> = busy.map(|(number, _)| *number).collect();
            let chosen = inner.random.below(busy.len() as u64) as usize;
            let is_for_sender = busy.is_empty() || inner.random.one_in(2);
            let arrived = is_for_sender.then(|| inner.take_answer()).flatten();
            if let (Some(number), None) = (busy.get(chosen).copied(), &arrived) {
                inner.deliver(number);
                return true;
            }
            arrived
        };
        let Some(Answered { reply, .. }) = arrived else {
            return self.0.lock().deliver_question();
        };
        // Called without the lock: it may append again.
        match reply {
            Reply::Append(_, callback, Answer::Acknowledged(position)) => {
                callback(Ok(position.segment.0 - 1))
            }
            Reply::Append(_, callback, Answer::Unknown) => {
                callback(Err(AppendError::Unknown("no answer".to_owned())));
            }
            Reply::End(callback, end) => callback(end),
        }
        true
    }

    /// The clock of the logs.
    pub fn now_micros(&self) -> i64 {
        self.0.lock().now_micros
    }

    /// See [`SharedLogs::sequence_of`].
    pub fn sequence_of(&self, log: u32) -> u32 {
        self.0.lock().sequence_of(log)
    }

    /// The offset above the last record of the sequence of a log, without those that are on their way.
    pub fn end(&self, log: u32) -> u64 {
        let mut inner = self.0.lock();
        let sequence = inner.sequence_of(log);
        inner.log(sequence).end(Side::Majority).segment.0
    }

    /// Deletes the records of the sequence of a log below an offset. Returns whether there were any.
    pub fn delete_below(&self, log: u32, offset: u64) -> bool {
        let mut inner = self.0.lock();
        let sequence = inner.sequence_of(log);
        // The position of a record is the number of records up to it.
        inner.log(sequence).trim(Position::new(offset, 0))
    }

    /// Cuts off the leader of one log, chosen by this number.
    pub fn isolate(&self, chosen: u64) {
        let mut inner = self.0.lock();
        let count = inner.logs.len().max(1) as u64;
        if let Some(log) = inner.logs.values_mut().nth((chosen % count) as usize) {
            log.isolate();
        }
    }

    /// Leaders that were cut off learn that they are not leaders any more.
    pub fn heal(&self) {
        self.0.lock().logs.values_mut().for_each(SimLog::heal);
    }
}

/// The logs as one process of a node sees them. Clones are the same process.
#[derive(Clone)]
pub(super) struct NodeLogs {
    logs: ClusterLogs,
    way: Arc<Way>,
}

/// The connection of a process to the logs.
#[derive(Default)]
struct Way {
    has_no_power: AtomicBool,
    is_isolated: AtomicBool,
    /// How often a request is late, or its answer, or the delivery of new records: one in this many; 0 is never.
    late_requests: AtomicU64,
    late_answers: AtomicU64,
    late_deliveries: AtomicU64,
}

impl NodeLogs {
    pub fn new(logs: &ClusterLogs) -> Self {
        Self {
            logs: logs.clone(),
            way: Arc::default(),
        }
    }

    /// From now on, nothing that the process does gets to the logs.
    pub fn lose_power(&self) {
        self.way.has_no_power.store(true, Relaxed);
    }

    /// Sets which leaders it talks to.
    pub fn talk_to(&self, side: Side) {
        self.way.is_isolated.store(side == Side::Isolated, Relaxed);
    }

    /// Sets how often its requests are late, answers to it, and new records that it reads: one in this many, or never if that is 0.
    pub fn be_late(&self, requests: u64, answers: u64, deliveries: u64) {
        self.way.late_requests.store(requests, Relaxed);
        self.way.late_answers.store(answers, Relaxed);
        self.way.late_deliveries.store(deliveries, Relaxed);
    }

    /// Whether the process can still do anything.
    pub fn has_power(&self) -> bool {
        !self.way.has_no_power.load(Relaxed)
    }

    fn side(&self) -> Side {
        match self.way.is_isolated.load(Relaxed) {
            true => Side::Isolated,
            false => Side::Majority,
        }
    }
}

impl SharedLogs for NodeLogs {
    fn append(&self, envelope: &Envelope<'_>, done: AppendCallback) {
        if !self.has_power() {
            return done(Err(AppendError::Unknown("the power is gone".to_owned())));
        }
        let mut inner = self.logs.0.lock();
        let due_micros = inner.late_until(&self.way.late_requests).unwrap_or(i64::MIN);
        let sequence = inner.sequence_of(envelope.tablet);
        let ticket = inner.log(sequence).send_late(envelope, self.side(), due_micros);
        let waiting = Waiting {
            sender: (envelope.origin.node, envelope.origin.incarnation),
            way: self.way.clone(),
            callback: done,
        };
        inner.waiting.insert((sequence, ticket), waiting);
    }

    fn find_end(&self, log: u32, done: EndCallback) {
        if !self.has_power() {
            return done(None);
        }
        let mut inner = self.logs.0.lock();
        let due_micros = inner.late_until(&self.way.late_requests).unwrap_or(i64::MIN);
        inner.questions.push(Question {
            log,
            way: self.way.clone(),
            side: self.side(),
            callback: done,
            due_micros,
        });
    }

    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError> {
        Ok(Box::new(Tail {
            way: self.clone(),
            next: from.iter().copied().collect(),
            late: BTreeMap::new(),
        }))
    }

    fn sequence_of(&self, log: u32) -> u32 {
        self.logs.sequence_of(log)
    }

    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError> {
        if self.has_power() {
            self.logs.delete_below(log, offset);
        }
        Ok(())
    }

    fn caps(&self) -> Capabilities {
        Capabilities {
            record_bytes_max: RECORD_BYTES_MAX,
            is_shared: true,
            survives_power_loss: true,
        }
    }
}

struct Tail {
    way: NodeLogs,
    /// The next offset of each log.
    next: BTreeMap<u32, u64>,
    /// Logs whose new records are late: until when, and how many records they had before.
    late: BTreeMap<u32, (i64, u64)>,
}

impl Tail {
    /// The offset below which records of a log have arrived: while they are late, only those that the log had before.
    fn end_seen(late: &mut BTreeMap<u32, (i64, u64)>, inner: &mut Inner, number: u32, way: &NodeLogs) -> u64 {
        if let Some((until_micros, end)) = late.get(&number) {
            // Nothing stays late once deliveries are never late.
            if inner.now_micros < *until_micros && way.way.late_deliveries.load(Relaxed) != 0 {
                return *end;
            }
            late.remove(&number);
        }
        let Some(until_micros) = inner.late_until(&way.way.late_deliveries) else {
            return u64::MAX;
        };
        let sequence = inner.sequence_of(number);
        let end = inner.log(sequence).end(way.side()).segment.0;
        late.insert(number, (until_micros, end));
        end
    }

    /// Takes some of the next records of a log.
    fn take(&mut self, number: u32, taken: &mut Vec<Delivered>) -> Result<(), TailError> {
        let side = self.way.side();
        let mut inner = self.way.logs.0.lock();
        let count = inner.random.below(DELIVERED_MAX);
        let end = Self::end_seen(&mut self.late, &mut inner, number, &self.way);
        let Some(next) = self.next.get_mut(&number) else {
            return Ok(());
        };
        let sequence = inner.sequence_of(number);
        let log = inner.log(sequence);
        let mut from = *next;
        for _ in 0..count {
            if *next >= end {
                break;
            }
            match log.next_above(Position::new(*next, 0), side) {
                Ok(None) => break,
                Ok(Some((_, record))) => {
                    let offset = *next;
                    *next += 1;
                    if record.tablet == number {
                        taken.push(Delivered::Record {
                            log: number,
                            from,
                            offset,
                            record: record.clone(),
                        });
                        from = *next;
                    }
                }
                Err(deleted) => {
                    let start = deleted.first.segment.0 - 1;
                    return Err(TailError::Deleted { log: number, start });
                }
            }
        }
        if from < *next {
            taken.push(Delivered::Passed {
                log: number,
                from,
                to: *next,
            });
        }
        Ok(())
    }
}

impl SharedTail for Tail {
    fn next(&mut self, _wait: Duration) -> Result<Vec<Delivered>, TailError> {
        turns::give_turn();
        let mut taken = Vec::new();
        for number in self.next.keys().copied().collect::<Vec<u32>>() {
            match self.take(number, &mut taken) {
                Ok(()) => {}
                // The records that were taken would be lost with the error. The next call finds it again.
                Err(_) if !taken.is_empty() => {}
                Err(error) => {
                    self.next.remove(&number);
                    return Err(error);
                }
            }
        }
        Ok(taken)
    }

    fn follow(&mut self, log: u32, from: u64) {
        self.next.insert(log, from);
    }

    fn leave(&mut self, log: u32) {
        self.next.remove(&log);
    }
}
