//! [`ClusterLogs`]: the logs of a simulated cluster, and each node's way to them ([`NodeLogs`]). Nothing arrives by itself: the scheduler
//! calls [`ClusterLogs::step`].

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ilion_commitlog::{
    AppendCallback, AppendError, Capabilities, Delivered, Envelope, Position, SharedLogs, SharedTail,
    TailError,
};
use ilion_env::{Seeded, turns};
use parking_lot::Mutex;

use crate::log::{Answer, LogFaults, Side, SimLog, Ticket};

const RECORD_BYTES_MAX: u32 = 1 << 20;
/// A delivery has fewer records of a log than this.
const DELIVERED_MAX: u64 = 12;

/// A process: its node and incarnation.
type Sender = (u32, u32);

struct Inner {
    seed: u64,
    random: Seeded,
    faults: LogFaults,
    logs: BTreeMap<u32, SimLog>,
    waiting: BTreeMap<(u32, Ticket), (Sender, AppendCallback)>,
    /// Answers on their way to their senders; those of one sender arrive in order.
    answered: Vec<(Sender, AppendCallback, Answer)>,
    now_micros: i64,
}

impl Inner {
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
            if let Some((sender, callback)) = self.waiting.remove(&(number, ticket)) {
                self.answered.push((sender, callback, answer));
            }
        }
    }
}

/// See the module. Clones share the logs.
#[derive(Clone)]
pub(super) struct ClusterLogs(Arc<Mutex<Inner>>);

impl ClusterLogs {
    /// Empty logs, whose seed decides which faults happen.
    pub fn new(seed: u64, now_micros: i64) -> Self {
        Self(Arc::new(Mutex::new(Inner {
            seed,
            random: Seeded::new(!seed),
            faults: LogFaults {
                keeps_order: true,
                ..LogFaults::default()
            },
            logs: BTreeMap::new(),
            waiting: BTreeMap::new(),
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

    /// Delivers one request to its log, or the answer to one to its sender. Returns false if none is under way.
    pub fn step(&self) -> bool {
        let (_, callback, answer) = {
            let mut inner = self.0.lock();
            let busy = inner.logs.iter().filter(|(_, log)| log.is_busy());
            let busy: Vec<u32> = busy.map(|(number, _)| *number).collect();
            let chosen = inner.random.below(busy.len() as u64) as usize;
            let is_for_sender = inner.random.one_in(2) && !inner.answered.is_empty();
            if let (Some(number), false) = (busy.get(chosen).copied(), is_for_sender) {
                inner.deliver(number);
                return true;
            }
            if inner.answered.is_empty() {
                return false;
            }
            let count = inner.answered.len() as u64;
            let chosen = inner.random.below(count) as usize;
            let sender = inner.answered[chosen].0;
            let first = inner.answered.iter().position(|(other, ..)| *other == sender);
            inner.answered.remove(first.unwrap_or(chosen))
        };
        // Called without the lock: it may append again.
        callback(match answer {
            Answer::Acknowledged(position) => Ok(position.segment.0 - 1),
            Answer::Unknown => Err(AppendError::Unknown("no answer".to_owned())),
        });
        true
    }

    /// The clock of the logs.
    pub fn now_micros(&self) -> i64 {
        self.0.lock().now_micros
    }

    /// The offset above the last record of a log, without those that are on their way.
    pub fn end(&self, log: u32) -> u64 {
        self.0.lock().log(log).end(Side::Majority).segment.0
    }

    /// Deletes the records of a log below an offset. Returns whether there were any.
    pub fn delete_below(&self, log: u32, offset: u64) -> bool {
        // The position of a record is the number of records up to it.
        self.0.lock().log(log).trim(Position::new(offset, 0))
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

    fn has_power(&self) -> bool {
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
        let ticket = inner.log(envelope.tablet).send(envelope, self.side());
        let sender = (envelope.origin.node, envelope.origin.incarnation);
        inner.waiting.insert((envelope.tablet, ticket), (sender, done));
    }

    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError> {
        Ok(Box::new(Tail {
            way: self.clone(),
            next: from.iter().copied().collect(),
        }))
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
}

impl Tail {
    /// Takes some of the next records of a log.
    fn take(&mut self, number: u32, taken: &mut Vec<Delivered>) -> Result<(), TailError> {
        let mut inner = self.way.logs.0.lock();
        let count = inner.random.below(DELIVERED_MAX);
        let log = inner.log(number);
        for _ in 0..count {
            let Some(next) = self.next.get_mut(&number) else {
                break;
            };
            match log.next_above(Position::new(*next, 0), self.way.side()) {
                Ok(None) => break,
                Ok(Some((_, record))) => {
                    taken.push(Delivered {
                        log: number,
                        offset: *next,
                        record: record.clone(),
                    });
                    *next += 1;
                }
                Err(deleted) => {
                    let start = deleted.first.segment.0 - 1;
                    return Err(TailError::Deleted { log: number, start });
                }
            }
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
