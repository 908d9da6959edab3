//! [`Node`]: a coordinator and a replica of one tablet. Each method is one step; the scheduler decides which comes next.
//!
//! A command goes to the log, again if no answer came. A command whose outcome depends on earlier ones waits until this node has applied
//! it. A read appends a barrier, waits until it is applied, and reads. [`Mutant`] leaves one of these out, to see that a law notices.

use std::collections::BTreeMap;

use ilion_cluster::{Admission, Windows};
use ilion_codec::{Reader, Writer};
use ilion_commitlog::{Envelope, Origin, Position};
use ilion_histories::Value;

use crate::command::Command;
use crate::log::{Answer, Deleted, Side, SimLog, Ticket};
use crate::request::{Reply, Request};
use crate::toys::data::ToyData;

/// A defect that is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutant {
    /// A read does not wait for a barrier.
    NoBarrier,
    /// A read uses the end of the log that the leader reports, instead of a barrier.
    BarrierOfEndOffset,
    /// A read appends a barrier, and does not wait until it is applied.
    BarrierNotAwaited,
    /// Repeated records are applied again.
    NoWindows,
    /// The windows are not saved with the data.
    WindowsNotSaved,
    /// The first record of each process is taken for a repeated one.
    WindowsOffByOne,
    /// A record that is sent again gets a new number.
    NewNumberForRetry,
    /// A process numbers its records as the one before did.
    SameIncarnation,
    /// The position is saved before the data.
    PositionSavedEarly,
    /// The data is saved before the position.
    PositionSavedLate,
    /// A compare-and-set is decided by its coordinator, and logged as a write.
    DecidedByCoordinator,
    /// A write is acknowledged when it is sent.
    AcknowledgedWhenSent,
    /// A write without an answer is acknowledged.
    UnknownIsAcknowledged,
    /// A reader goes on where the log begins.
    GapPassedOver,
    /// A compare-and-set is answered by the value when its record is acknowledged, not where the record is.
    OutcomeOfAnotherPlace,
}

struct Pending {
    request: Request,
    command: Command,
    origin: Origin,
    ticket: Ticket,
    sends_left: u32,
    /// There is an answer once this node has applied the log up to here.
    awaited: Option<Position>,
}

/// What is on the node's disk: written at once or not at all.
#[derive(Clone)]
pub struct Saved {
    data: ToyData,
    position: Position,
    windows: Vec<u8>,
}

/// A coordinator and replica.
pub(super) struct Node {
    number: u32,
    incarnation: u32,
    next_seq: u64,
    side: Side,
    mutant: Option<Mutant>,
    data: ToyData,
    position: Position,
    windows: Windows,
    /// Outcomes of this process's commands, as they were applied.
    outcomes: BTreeMap<u64, Option<Value>>,
    saved: Saved,
    pending: BTreeMap<u64, Pending>,
}

impl Node {
    /// An empty node.
    pub fn new(number: u32, mutant: Option<Mutant>) -> Self {
        let windows = Windows::default();
        Self {
            number,
            incarnation: 1,
            next_seq: 1,
            side: Side::Majority,
            mutant,
            data: ToyData::default(),
            position: Position::START,
            saved: Saved {
                data: ToyData::default(),
                position: Position::START,
                windows: encoded(&windows),
            },
            windows,
            outcomes: BTreeMap::new(),
            pending: BTreeMap::new(),
        }
    }

    /// Takes a request of a client, which `client` identifies.
    pub fn begin(&mut self, client: u64, request: Request, log: &mut SimLog) -> Option<Reply> {
        let mut command = match request {
            Request::Change(command) => command,
            Request::Register(_)
            | Request::Nearest(_)
            | Request::Counter(_)
            | Request::Scan(_)
            | Request::Alter(_)
            | Request::Role(_) => Command::Barrier,
        };
        if command == Command::Barrier && self.is(Mutant::NoBarrier) {
            return Some(self.read(request));
        }
        if let (Command::CompareAndSet(key, expected, value), true) =
            (command, self.is(Mutant::DecidedByCoordinator))
        {
            let found = self.data.register(key);
            if found != expected {
                return Some(Reply::Done(Some(found)));
            }
            command = Command::Write(key, value);
        }
        let origin = self.next_origin();
        let ticket = self.send(command, origin, log);
        let is_end_offset = command == Command::Barrier && self.is(Mutant::BarrierOfEndOffset);
        self.pending.insert(
            client,
            Pending {
                request,
                command,
                origin,
                ticket,
                sends_left: 2,
                awaited: is_end_offset.then(|| log.end(self.side)),
            },
        );
        let is_change = matches!(command, Command::Write(..) | Command::Batch(..));
        (is_change && self.is(Mutant::AcknowledgedWhenSent)).then(|| {
            self.pending.remove(&client);
            Reply::Done(None)
        })
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    fn next_origin(&mut self) -> Origin {
        let seq = self.next_seq;
        self.next_seq += 1;
        Origin {
            node: self.number,
            incarnation: self.incarnation,
            seq,
        }
    }

    fn send(&self, command: Command, origin: Origin, log: &mut SimLog) -> Ticket {
        let body = command.encode();
        let envelope = Envelope {
            kind: command.kind(),
            tablet: 0,
            schema_epoch: 0,
            origin,
            time_micros: 0,
            is_captured: false,
            body: &body,
        };
        log.send(&envelope, self.side)
    }

    /// Checks whether a request has its answer; `None` if not yet.
    pub fn poll(&mut self, client: u64, log: &mut SimLog) -> Option<Reply> {
        let mut pending = self.pending.remove(&client)?;
        if pending.awaited.is_none() {
            match log.take_answer(pending.ticket) {
                Some(Answer::Acknowledged(position)) => pending.awaited = Some(position),
                Some(Answer::Unknown) if self.is(Mutant::UnknownIsAcknowledged) => {
                    return Some(Reply::Done(None));
                }
                Some(Answer::Unknown) if pending.sends_left == 0 => return Some(Reply::Unknown),
                Some(Answer::Unknown) => {
                    pending.sends_left -= 1;
                    if self.is(Mutant::NewNumberForRetry) {
                        pending.origin = self.next_origin();
                    }
                    pending.ticket = self.send(pending.command, pending.origin, log);
                }
                None => {}
            }
        }
        let reply = pending
            .awaited
            .and_then(|position| self.reply(&pending, position));
        if reply.is_none() {
            self.pending.insert(client, pending);
        }
        reply
    }

    fn reply(&self, pending: &Pending, position: Position) -> Option<Reply> {
        let is_applied = self.position >= position;
        let Request::Change(command) = pending.request else {
            return (is_applied || self.is(Mutant::BarrierNotAwaited)).then(|| self.read(pending.request));
        };
        let Command::CompareAndSet(key, expected, _) = command else {
            return Some(Reply::Done(None));
        };
        if self.is(Mutant::DecidedByCoordinator) {
            return Some(Reply::Done(None));
        }
        if self.is(Mutant::OutcomeOfAnotherPlace) {
            let found = self.data.register(key);
            return Some(Reply::Done((found != expected).then_some(found)));
        }
        // Without an outcome, the node has the change from a copy of another replica's data, so the command's result is not known.
        is_applied.then(|| match self.outcomes.get(&pending.origin.seq) {
            Some(found) => Reply::Done(*found),
            None => Reply::Unknown,
        })
    }

    fn read(&self, request: Request) -> Reply {
        match request {
            Request::Register(key) | Request::Nearest(key) => Reply::Register(self.data.register(key)),
            Request::Counter(key) => Reply::Counter(self.data.counter(key)),
            Request::Change(_) | Request::Scan(_) | Request::Alter(_) | Request::Role(_) => Reply::Unknown,
        }
    }

    /// Applies the next record. Returns false if there is none.
    ///
    /// # Errors
    /// The record is deleted, and the node needs a copy of another one's data.
    pub fn tail(&mut self, log: &SimLog) -> Result<bool, Deleted> {
        let next = match log.next_above(self.position, self.side) {
            Err(deleted) if self.is(Mutant::GapPassedOver) => {
                self.position = Position::new(deleted.first.segment.0 - 1, 0);
                return Ok(true);
            }
            next => next?,
        };
        let Some((position, record)) = next else {
            return Ok(false);
        };
        let is_off = self.is(Mutant::WindowsOffByOne) && record.origin.seq == 1;
        let admission = match self.windows.admit(record.origin) {
            Admission::New if is_off => Admission::Repeated,
            _ if self.is(Mutant::NoWindows) => Admission::New,
            admission => admission,
        };
        self.position = position;
        if admission != Admission::New {
            return Ok(true);
        }
        // The simulated log has only what nodes encoded; a real reader halts.
        let Ok(command) = Command::decode(record) else {
            return Ok(false);
        };
        let found = self.data.apply(command);
        let Origin {
            node,
            incarnation,
            seq,
        } = record.origin;
        if (node, incarnation) == (self.number, self.incarnation) {
            self.outcomes.insert(seq, found);
        }
        Ok(true)
    }

    /// Flushes: data, position and windows become durable together.
    pub fn flush(&mut self) {
        let is_early = self.is(Mutant::PositionSavedEarly);
        let is_late = self.is(Mutant::PositionSavedLate);
        if !is_early {
            self.saved.data = self.data.clone();
        }
        if !is_late {
            self.saved.position = self.position;
        }
        if !self.is(Mutant::WindowsNotSaved) && !is_late {
            self.saved.windows = encoded(&self.windows);
        }
    }

    /// Loses what is not flushed, and starts again. The clients that wait get no answer.
    pub fn crash(&mut self) -> Vec<u64> {
        self.restore(self.saved.clone());
        if !self.is(Mutant::SameIncarnation) {
            self.incarnation += 1;
        }
        self.next_seq = 1;
        std::mem::take(&mut self.pending).into_keys().collect()
    }

    fn restore(&mut self, saved: Saved) {
        self.windows = Windows::decode(&mut Reader::new(&saved.windows)).unwrap_or_default();
        self.data = saved.data.clone();
        self.position = saved.position;
        self.outcomes.clear();
        self.saved = saved;
    }

    /// The clients that wait.
    pub fn waiting(&self) -> Vec<u64> {
        self.pending.keys().copied().collect()
    }

    /// Up to where its data is durable.
    pub fn saved(&self) -> Position {
        self.saved.position
    }

    /// Up to where it has applied the log.
    pub fn position(&self) -> Position {
        self.position
    }

    /// Its data.
    pub(super) fn data(&self) -> &ToyData {
        &self.data
    }

    /// Takes another node's durable data. Outcomes of this process's own commands stay known.
    pub fn copy_from(&mut self, other: &Self) {
        let outcomes = std::mem::take(&mut self.outcomes);
        self.restore(other.saved.clone());
        self.outcomes = outcomes;
    }

    /// Sets the leaders of logs that it talks to from now on.
    pub fn talk_to(&mut self, side: Side) {
        self.side = side;
    }
}

fn encoded(windows: &Windows) -> Vec<u8> {
    let mut out = Writer::new();
    windows.encode(&mut out);
    out.into_vec()
}
