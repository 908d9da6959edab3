//! [`MemLogs`]: the logs of a cluster in the memory of one process, for tests of several nodes. They last as long as they are referenced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use ilion_cluster::META_TABLET;
use ilion_commitlog::{
    AppendCallback, AppendError, Capabilities, Delivered, ENVELOPE_BYTES, EndCallback, Envelope, Record,
    SharedLogs, SharedTail, TailError,
};
use ilion_env::{Env, Seeded};
use parking_lot::{Condvar, Mutex};

const RECORD_BYTES_MAX: u32 = 16 << 20;
/// Maximum number of records of a sequence in one delivery of a log.
const DELIVERED_MAX: usize = 256;

/// The records of some logs.
#[derive(Default)]
struct Sequence {
    /// The offset of the first record that is not deleted.
    start: u64,
    records: Vec<Record>,
}

#[derive(Default)]
struct Logs {
    sequences: Mutex<BTreeMap<u32, Sequence>>,
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
    /// In how many sequences the logs of tablets are kept; `None`: each has its own.
    sequences: Option<u32>,
}

impl MemLogs {
    /// Empty logs, whose records get their times from this clock.
    pub fn new(env: Arc<dyn Env>) -> Self {
        Self {
            env,
            logs: Arc::default(),
            sequences: None,
        }
    }

    /// The same, and the logs of tablets are kept in so many sequences. Requires: at least one sequence, and no records yet.
    pub fn in_sequences(self, sequences: u32) -> Self {
        let sequences = Some(sequences);
        Self { sequences, ..self }
    }

    /// From now on, faults happen.
    pub fn go_wrong(&self, faults: LogFaults, seed: u64) {
        *self.logs.faults.lock() = Some((faults, Seeded::new(seed)));
    }

    /// The first offset that the sequence of a log has.
    pub fn start(&self, log: u32) -> u64 {
        let sequences = self.logs.sequences.lock();
        let sequence = sequences.get(&self.sequence_of(log));
        sequence.map_or(0, |sequence| sequence.start)
    }

    /// The offset above the last record of the sequence of a log.
    pub fn end(&self, log: u32) -> u64 {
        let sequences = self.logs.sequences.lock();
        let sequence = sequences.get(&self.sequence_of(log));
        sequence.map_or(0, |sequence| sequence.start + sequence.records.len() as u64)
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
            let mut sequences = self.logs.sequences.lock();
            let mut last_micros = self.logs.last_micros.lock();
            *last_micros = self.env.now_micros().max(*last_micros);
            let sequence = sequences.entry(self.sequence_of(envelope.tablet)).or_default();
            let record = Record {
                time_micros: *last_micros,
                ..envelope.to_record()
            };
            if fate == Fate::Doubled {
                sequence.records.push(record.clone());
            }
            sequence.records.push(record);
            sequence.start + sequence.records.len() as u64 - 1
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
            logs: self.clone(),
            next: from.iter().copied().collect(),
        }))
    }

    fn sequence_of(&self, log: u32) -> u32 {
        match self.sequences {
            Some(sequences) if log != META_TABLET => log % sequences,
            _ => log,
        }
    }

    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError> {
        let mut sequences = self.logs.sequences.lock();
        let sequence = sequences.entry(self.sequence_of(log)).or_default();
        let count = offset
            .saturating_sub(sequence.start)
            .min(sequence.records.len() as u64);
        sequence.records.drain(..count as usize);
        sequence.start += count;
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
    logs: MemLogs,
    next: BTreeMap<u32, u64>,
}

impl MemTail {
    fn take(&mut self, sequences: &BTreeMap<u32, Sequence>) -> Result<Vec<Delivered>, TailError> {
        // Checked first, since records that were already taken of other logs would be lost with the error.
        let deleted = self.next.iter().find_map(|(log, next)| {
            let start = sequences.get(&self.logs.sequence_of(*log))?.start;
            (*next < start).then_some((*log, start))
        });
        if let Some((log, start)) = deleted {
            self.next.remove(&log);
            return Err(TailError::Deleted { log, start });
        }
        let mut delivered = Vec::new();
        for (log, next) in &mut self.next {
            let log = *log;
            let Some(sequence) = sequences.get(&self.logs.sequence_of(log)) else {
                continue;
            };
            let at = (*next - sequence.start) as usize;
            let records = sequence.records.get(at..).unwrap_or_default();
            let mut from = *next;
            for record in records.iter().take(DELIVERED_MAX) {
                let offset = *next;
                *next += 1;
                if record.tablet == log {
                    let record = record.clone();
                    delivered.push(Delivered::Record {
                        log,
                        from,
                        offset,
                        record,
                    });
                    from = *next;
                }
            }
            if from < *next {
                delivered.push(Delivered::Passed { log, from, to: *next });
            }
        }
        Ok(delivered)
    }
}

impl SharedTail for MemTail {
    fn next(&mut self, wait: Duration) -> Result<Vec<Delivered>, TailError> {
        let shared = self.logs.logs.clone();
        let mut sequences = shared.sequences.lock();
        let delivered = self.take(&sequences)?;
        if !delivered.is_empty() {
            return Ok(delivered);
        }
        shared.appended.wait_for(&mut sequences, wait);
        self.take(&sequences)
    }

    fn follow(&mut self, log: u32, from: u64) {
        self.next.insert(log, from);
    }

    fn leave(&mut self, log: u32) {
        self.next.remove(&log);
    }
}
