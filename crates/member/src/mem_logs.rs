//! [`MemLogs`]: the logs of a cluster in the memory of one process, for tests of several nodes. They last as long as they are referenced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ilion_commitlog::{
    AppendCallback, AppendError, Capabilities, Delivered, ENVELOPE_BYTES, EndCallback, Envelope, Record,
    SharedLogs, SharedTail, TailError,
};
use ilion_env::{Env, Seeded};
use parking_lot::{Condvar, Mutex};

const RECORD_BYTES_MAX: u32 = 16 << 20;
/// Maximum number of records of a log in one delivery.
const DELIVERED_MAX: usize = 256;

#[derive(Default)]
struct Log {
    /// The offset of the first record that is not deleted.
    start: u64,
    records: Vec<Record>,
}

#[derive(Default)]
struct Logs {
    logs: Mutex<BTreeMap<u32, Log>>,
    appended: Condvar,
    /// The time of the last record.
    last_micros: Mutex<i64>,
    faults: Mutex<Option<(LogFaults, Seeded)>>,
    /// Logs that no record reaches.
    cut_off: Mutex<BTreeSet<u32>>,
    are_ends_hidden: AtomicBool,
}

/// Faults, each for this many of 1,000 records.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFaults {
    /// The record is not appended, and the sender gets no answer.
    pub lost_request: u64,
    /// The record is appended, and the sender gets no answer.
    pub lost_answer: u64,
    /// The record is appended twice.
    pub duplicate: u64,
}

/// The fate of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Appended,
    RequestLost,
    AnswerLost,
    Doubled,
}

/// See the module.
#[derive(Clone)]
pub struct MemLogs {
    env: Arc<dyn Env>,
    logs: Arc<Logs>,
}

impl MemLogs {
    /// Empty logs, whose records get their times from this clock.
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self {
            env,
            logs: Arc::default(),
        }
    }

    /// From now on, faults happen.
    pub fn go_wrong(&self, faults: LogFaults, seed: u64) {
        *self.logs.faults.lock() = Some((faults, Seeded::new(seed)));
    }

    /// The first offset that a log has.
    pub fn start(&self, log: u32) -> u64 {
        self.logs.logs.lock().get(&log).map_or(0, |log| log.start)
    }

    /// The offset above the last record of a log.
    pub fn end(&self, log: u32) -> u64 {
        let logs = self.logs.logs.lock();
        logs.get(&log)
            .map_or(0, |log| log.start + log.records.len() as u64)
    }

    /// From now on, records of these logs get lost on their way, and of no others.
    pub fn cut_off(&self, logs: impl IntoIterator<Item = u32>) {
        *self.logs.cut_off.lock() = logs.into_iter().collect();
    }

    /// Sets whether the ends of the logs are not known from now on.
    pub fn hide_ends(&self, are_hidden: bool) {
        self.logs.are_ends_hidden.store(are_hidden, Relaxed);
    }

    /// From now on, no faults happen.
    pub fn go_right(&self) {
        *self.logs.faults.lock() = None;
    }

    fn fate(&self, log: u32) -> Fate {
        if self.logs.cut_off.lock().contains(&log) {
            return Fate::RequestLost;
        }
        let mut faults = self.logs.faults.lock();
        let Some((faults, random)) = &mut *faults else {
            return Fate::Appended;
        };
        let dice = random.below(1000);
        let [lost, unanswered, doubled] = [faults.lost_request, faults.lost_answer, faults.duplicate];
        match dice {
            _ if dice < lost => Fate::RequestLost,
            _ if dice < lost + unanswered => Fate::AnswerLost,
            _ if dice < lost + unanswered + doubled => Fate::Doubled,
            _ => Fate::Appended,
        }
    }
}

impl SharedLogs for MemLogs {
    fn append(&self, envelope: &Envelope<'_>, done: AppendCallback) {
        if envelope.body.len() + ENVELOPE_BYTES > RECORD_BYTES_MAX as usize {
            return done(Err(AppendError::Refused("the record is too large".to_owned())));
        }
        let fate = self.fate(envelope.tablet);
        let unknown =
            |done: AppendCallback| done(Err(AppendError::Unknown("it was lost on its way".to_owned())));
        if fate == Fate::RequestLost {
            return unknown(done);
        }
        let offset = {
            let mut logs = self.logs.logs.lock();
            let mut last_micros = self.logs.last_micros.lock();
            *last_micros = self.env.now_micros().max(*last_micros);
            let log = logs.entry(envelope.tablet).or_default();
            let record = Record {
                time_micros: *last_micros,
                ..envelope.to_record()
            };
            if fate == Fate::Doubled {
                log.records.push(record.clone());
            }
            log.records.push(record);
            log.start + log.records.len() as u64 - 1
        };
        self.logs.appended.notify_all();
        match fate {
            Fate::AnswerLost => unknown(done),
            _ => done(Ok(offset)),
        }
    }

    fn find_end(&self, log: u32, done: EndCallback) {
        let is_hidden = self.logs.are_ends_hidden.load(Relaxed);
        let is_known = !is_hidden && self.fate(log) == Fate::Appended;
        done(is_known.then(|| self.end(log)));
    }

    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError> {
        Ok(Box::new(MemTail {
            logs: self.logs.clone(),
            next: from.iter().copied().collect(),
        }))
    }

    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError> {
        let mut logs = self.logs.logs.lock();
        let log = logs.entry(log).or_default();
        let count = offset.saturating_sub(log.start).min(log.records.len() as u64);
        log.records.drain(..count as usize);
        log.start += count;
        Ok(())
    }

    fn caps(&self) -> Capabilities {
        Capabilities {
            record_bytes_max: RECORD_BYTES_MAX,
            is_shared: true,
            survives_power_loss: false,
        }
    }
}

struct MemTail {
    logs: Arc<Logs>,
    next: BTreeMap<u32, u64>,
}

impl MemTail {
    fn take(&mut self, logs: &BTreeMap<u32, Log>) -> Result<Vec<Delivered>, TailError> {
        // Checked first, since records that were already taken of other logs would be lost with the error.
        let deleted = self.next.iter().find_map(|(number, next)| {
            let start = logs.get(number)?.start;
            (*next < start).then_some((*number, start))
        });
        if let Some((log, start)) = deleted {
            self.next.remove(&log);
            return Err(TailError::Deleted { log, start });
        }
        let mut delivered = Vec::new();
        for (number, next) in &mut self.next {
            let (Some(log), number) = (logs.get(number), *number) else {
                continue;
            };
            let at = (*next - log.start) as usize;
            let records = log.records.get(at..).unwrap_or_default();
            for record in records.iter().take(DELIVERED_MAX) {
                delivered.push(Delivered {
                    log: number,
                    offset: *next,
                    record: record.clone(),
                });
                *next += 1;
            }
        }
        Ok(delivered)
    }
}

impl SharedTail for MemTail {
    fn next(&mut self, wait: Duration) -> Result<Vec<Delivered>, TailError> {
        let shared = self.logs.clone();
        let mut logs = shared.logs.lock();
        let delivered = self.take(&logs)?;
        if !delivered.is_empty() {
            return Ok(delivered);
        }
        shared.appended.wait_for(&mut logs, wait);
        self.take(&logs)
    }

    fn follow(&mut self, log: u32, from: u64) {
        self.next.insert(log, from);
    }

    fn leave(&mut self, log: u32) {
        self.next.remove(&log);
    }
}
