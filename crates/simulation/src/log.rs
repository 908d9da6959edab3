//! [`SimLog`]: one shared log, as a node sees it from afar. Nothing happens by itself: the scheduler calls [`SimLog::step`].
//!
//! A sender gives a record and gets a [`Ticket`]. Steps then deliver the requests in any order. The answer may be lost though the record
//! was appended, the request may be lost, and a request may be delivered twice, the second time long after. A reader may talk to a leader
//! that was cut off ([`Side::Isolated`]): it sees the log as it was then, and what is sent to it is never appended.
//!
//! It could implement `commitlog::Log`, except for one thing: a log elsewhere knows the position of a record only when it answers. So
//! `append` has to become "append, then call back with the position". See the crate's page.

use ilion_commitlog::{Envelope, Origin, Position, Record};
use ilion_env::Seeded;

/// Identifies a request to append, and is exchanged for its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The record is in the log, and stays there.
    Acknowledged(Position),
    /// The outcome is unknown.
    Unknown,
}

/// Which leader a node talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The leader that the other log servers follow.
    Majority,
    /// A leader that was cut off and does not know it yet.
    Isolated,
}

/// The next records after a position are deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log begins at {first} only")]
pub struct Deleted {
    /// The first record that is not deleted.
    pub first: Position,
}

/// How often faults happen: one in this many; 0 is never.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogFaults {
    /// Requests that are lost.
    pub lost_request: u64,
    /// Answers that are lost, though the record was appended.
    pub lost_answer: u64,
    /// Requests that are delivered once more later.
    pub duplicate: u64,
    /// They are delivered once more within this time.
    pub duplicate_micros_max: u64,
    /// Requests of one sender are delivered in their order, apart from those that are delivered once more.
    pub keeps_order: bool,
}

struct Flight {
    ticket: Ticket,
    record: Record,
    side: Side,
    /// True if the sender still waits for the answer.
    is_first: bool,
    /// It is not delivered before this time.
    due_micros: i64,
}

impl Flight {
    /// True if the process of this origin sent it, and still waits for the answer.
    fn is_first_of(&self, origin: Origin) -> bool {
        let own = self.record.origin;
        self.is_first && (own.node, own.incarnation) == (origin.node, origin.incarnation)
    }
}

/// A log of one partition.
pub struct SimLog {
    random: Seeded,
    faults: LogFaults,
    records: Vec<Record>,
    /// Number of records that were deleted.
    trimmed: usize,
    /// Number of records when the leader was cut off; `None` if it is not.
    isolated_at: Option<usize>,
    time_micros: i64,
    flights: Vec<Flight>,
    answers: Vec<(Ticket, Answer)>,
    next_ticket: u64,
}

impl SimLog {
    /// An empty log, whose seed decides what goes wrong.
    pub fn new(seed: u64, faults: LogFaults) -> Self {
        Self {
            random: Seeded::new(seed),
            faults,
            records: Vec::new(),
            trimmed: 0,
            isolated_at: None,
            time_micros: 0,
            flights: Vec::new(),
            answers: Vec::new(),
            next_ticket: 0,
        }
    }

    /// Sends a record. The log gives it a time when it is appended.
    pub fn send(&mut self, envelope: &Envelope<'_>, side: Side) -> Ticket {
        self.send_late(envelope, side, i64::MIN)
    }

    /// Sends a record that does not arrive before this time, nor before an earlier record of the sender.
    pub(crate) fn send_late(&mut self, envelope: &Envelope<'_>, side: Side, due_micros: i64) -> Ticket {
        let earlier = self.flights.iter();
        let earlier = earlier.filter(|flight| flight.is_first_of(envelope.origin));
        let earlier = earlier.map(|flight| flight.due_micros).max();
        let ticket = Ticket(self.next_ticket);
        self.next_ticket += 1;
        self.flights.push(Flight {
            ticket,
            record: envelope.to_record(),
            side,
            is_first: true,
            due_micros: due_micros.max(earlier.unwrap_or(i64::MIN)),
        });
        ticket
    }

    /// Advances the log's clock: later records get this time or a later one.
    pub(crate) fn set_clock(&mut self, micros: i64) {
        self.time_micros = self.time_micros.max(micros);
    }

    /// True if a request can be delivered now.
    pub(crate) fn is_busy(&self) -> bool {
        self.flights.iter().any(|flight| self.is_due(flight))
    }

    fn is_due(&self, flight: &Flight) -> bool {
        flight.due_micros <= self.time_micros
    }

    /// Sets the faults from now on.
    pub(crate) fn set_faults(&mut self, faults: LogFaults) {
        self.faults = faults;
    }

    /// The request that is delivered when this one is chosen: if senders keep their order, the oldest request of the same sender.
    fn first_of_sender(&self, chosen: usize) -> usize {
        let flight = &self.flights[chosen];
        if !self.faults.keeps_order || !flight.is_first {
            return chosen;
        }
        let is_same = |other: &Flight| other.is_first_of(flight.record.origin);
        self.flights.iter().position(is_same).unwrap_or(chosen)
    }

    /// Delivers one of the requests that are under way. Returns false if there are none.
    pub fn step(&mut self) -> bool {
        let due = (0..self.flights.len()).filter(|index| self.is_due(&self.flights[*index]));
        let due: Vec<usize> = due.collect();
        let Some(chosen) = due.get(self.random.below(due.len() as u64) as usize).copied() else {
            return false;
        };
        let flight = self.flights.remove(self.first_of_sender(chosen));
        let is_cut_off = flight.side == Side::Isolated && self.isolated_at.is_some();
        if is_cut_off || self.happens(self.faults.lost_request) {
            self.answer(&flight, Answer::Unknown);
            return true;
        }
        let position = self.append(flight.record.clone());
        let is_lost = self.happens(self.faults.lost_answer);
        self.answer(
            &flight,
            if is_lost {
                Answer::Unknown
            } else {
                Answer::Acknowledged(position)
            },
        );
        if self.happens(self.faults.duplicate) {
            let later = self.random.below(self.faults.duplicate_micros_max) as i64;
            self.flights.push(Flight {
                is_first: false,
                due_micros: self.time_micros + later,
                ..flight
            });
        }
        true
    }

    fn happens(&mut self, one_in: u64) -> bool {
        one_in != 0 && self.random.one_in(one_in)
    }

    /// All answers that nobody has taken.
    pub(crate) fn take_answers(&mut self) -> Vec<(Ticket, Answer)> {
        std::mem::take(&mut self.answers)
    }

    fn answer(&mut self, flight: &Flight, answer: Answer) {
        if flight.is_first {
            self.answers.push((flight.ticket, answer));
        }
    }

    fn append(&mut self, mut record: Record) -> Position {
        self.time_micros += self.random.below(3) as i64;
        record.time_micros = self.time_micros;
        self.records.push(record);
        position_of(self.records.len() - 1)
    }

    /// The answer to a request, once. `None` if there is none yet.
    pub fn take_answer(&mut self, ticket: Ticket) -> Option<Answer> {
        let index = self.answers.iter().position(|(of, _)| *of == ticket)?;
        Some(self.answers.swap_remove(index).1)
    }

    /// The first record above a position, if it is there.
    ///
    /// # Errors
    /// The record is deleted: the reader must get what it has missed from elsewhere.
    pub fn next_above(&self, position: Position, side: Side) -> Result<Option<(Position, &Record)>, Deleted> {
        let index = usize::try_from(position.segment.0).unwrap_or(usize::MAX);
        if index < self.trimmed {
            let first = position_of(self.trimmed);
            return Err(Deleted { first });
        }
        let visible = index < self.visible(side);
        Ok(self
            .records
            .get(index)
            .filter(|_| visible)
            .map(|record| (position_of(index), record)))
    }

    /// The position of the last record: what a leader says without asking the others. Stale where the leader is cut off.
    pub fn end(&self, side: Side) -> Position {
        self.visible(side)
            .checked_sub(1)
            .map_or(Position::START, position_of)
    }

    fn visible(&self, side: Side) -> usize {
        match (side, self.isolated_at) {
            (Side::Isolated, Some(count)) => count,
            _ => self.records.len(),
        }
    }

    /// Whether a leader is cut off.
    pub(crate) fn is_isolated(&self) -> bool {
        self.isolated_at.is_some()
    }

    /// Cuts a leader off. Nodes on its side see nothing new until [`SimLog::heal`].
    pub fn isolate(&mut self) {
        self.isolated_at.get_or_insert(self.records.len());
    }

    /// The leader learns that it is not the leader any more.
    pub fn heal(&mut self) {
        self.isolated_at = None;
    }

    /// Deletes the records up to a position, that one included. Returns whether there were any.
    pub fn trim(&mut self, upto: Position) -> bool {
        let count = usize::try_from(upto.segment.0).unwrap_or(usize::MAX);
        let before = self.trimmed;
        self.trimmed = self.trimmed.max(count.min(self.records.len()));
        self.trimmed > before
    }
}

/// The position of the record with this index: the number of records up to it.
fn position_of(index: usize) -> Position {
    Position::new(index as u64 + 1, 0)
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::{Envelope, Origin, Position};

    use super::{Answer, Deleted, LogFaults, Side, SimLog};

    const ALL: LogFaults = LogFaults {
        lost_request: 5,
        lost_answer: 5,
        duplicate: 5,
        duplicate_micros_max: 0,
        keeps_order: false,
    };

    fn envelope(seq: u64) -> Envelope<'static> {
        let mut envelope = Envelope::mutation(b"body");
        envelope.origin = Origin {
            node: 1,
            incarnation: 1,
            seq,
        };
        envelope
    }

    fn all(log: &SimLog, side: Side) -> Vec<(Position, u64, i64)> {
        let (mut at, mut read) = (Position::START, Vec::new());
        while let Some((position, record)) = log.next_above(at, side).unwrap() {
            read.push((position, record.origin.seq, record.time_micros));
            at = position;
        }
        read
    }

    #[test]
    fn what_is_acknowledged_is_there_at_its_position_and_everything_that_can_go_wrong_does() {
        let (mut repeated, mut silent, mut lost) = (0, 0, 0);
        for seed in 0..30 {
            println!("seed {seed}");
            let mut log = SimLog::new(seed, ALL);
            let tickets: Vec<_> = (0..30)
                .map(|seq| (seq, log.send(&envelope(seq), Side::Majority)))
                .collect();
            while log.step() {}
            let read = all(&log, Side::Majority);
            assert!(
                read.is_sorted_by(|one, other| one.0 < other.0 && one.2 <= other.2),
                "{read:?}"
            );
            for (seq, ticket) in tickets {
                let copies = read.iter().filter(|(_, of, _)| *of == seq).count();
                match log.take_answer(ticket).unwrap() {
                    Answer::Acknowledged(position) => {
                        assert!(read.iter().any(|(at, of, _)| (*at, *of) == (position, seq)));
                        repeated += u32::from(copies > 1);
                    }
                    Answer::Unknown if copies == 0 => lost += 1,
                    Answer::Unknown => silent += 1,
                }
                assert_eq!(log.take_answer(ticket), None);
            }
        }
        assert!(
            repeated > 10 && silent > 10 && lost > 10,
            "{repeated} {silent} {lost}"
        );
    }

    #[test]
    fn one_seed_is_one_run() {
        let run = |seed| {
            let mut log = SimLog::new(seed, ALL);
            (0..50).for_each(|seq| {
                log.send(&envelope(seq), Side::Majority);
            });
            while log.step() {}
            all(&log, Side::Majority)
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn an_isolated_leader_is_stale_and_takes_nothing() {
        let mut log = SimLog::new(1, LogFaults::default());
        log.send(&envelope(1), Side::Majority);
        log.step();
        log.isolate();
        let refused = log.send(&envelope(2), Side::Isolated);
        let taken = log.send(&envelope(3), Side::Majority);
        while log.step() {}
        assert_eq!(log.take_answer(refused), Some(Answer::Unknown));
        assert_eq!(
            log.take_answer(taken),
            Some(Answer::Acknowledged(Position::new(2, 0)))
        );
        assert_eq!(log.end(Side::Isolated), Position::new(1, 0));
        assert_eq!(all(&log, Side::Isolated).len(), 1);
        log.heal();
        assert_eq!(log.end(Side::Isolated), Position::new(2, 0));
    }

    #[test]
    fn deleted_records_are_an_error_not_a_gap() {
        let mut log = SimLog::new(1, LogFaults::default());
        (1..=3).for_each(|seq| {
            log.send(&envelope(seq), Side::Majority);
        });
        while log.step() {}
        log.trim(Position::new(2, 0));
        let first = Position::new(3, 0);
        assert_eq!(
            log.next_above(Position::new(1, 0), Side::Majority),
            Err(Deleted { first })
        );
        let next = log.next_above(Position::new(2, 0), Side::Majority).unwrap();
        assert_eq!(next.map(|(position, _)| position), Some(first));
    }
}
