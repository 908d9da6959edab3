//! What a simulated cluster consists of, and what happens in it.

use std::collections::{BTreeMap, VecDeque};

use super::machine::Nanos;
use super::ring::Shape;

/// A request of a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request {
    pub node: usize,
    pub tablet: u32,
    pub is_write: bool,
    pub sent_at: Nanos,
}

/// What happens at a moment.
#[derive(Debug)]
pub(crate) enum Event {
    /// A request has reached its node.
    Arrives(Request),
    /// Its node has read it.
    IsRead(Request),
    /// A node has waited for a crowd of records for long enough. The number is that of the wait.
    StopsGathering(usize, usize, u64),
    /// A request with records has reached its broker.
    Produces(Batch),
    /// The broker has appended them.
    Appends(Batch),
    /// Records have reached a broker that copies them from a leader.
    Copies {
        leader: usize,
        copier: usize,
        batches: Vec<usize>,
    },
    /// The leader knows that they are copied.
    AreCopied {
        leader: usize,
        copier: usize,
        batches: Vec<usize>,
    },
    /// A node knows that its records are in the log.
    IsAcknowledged(Batch),
    /// A node's request for new records has reached a broker.
    Polls(usize, usize),
    /// The answer has reached the node: the ends of partitions.
    Delivers(usize, usize, Ends),
    /// The node has rested after an answer. The number is that of the rest.
    StopsResting(usize, usize, u64),
    /// A node has applied the records below these ends.
    Applies(usize, Ends),
    /// A node has waited for a crowd of readers for long enough. The number is that of the wait.
    StopsWaiting(usize, u64),
    /// A broker has answered a round of questions for ends, as leader or not.
    TellsEnds {
        node: usize,
        round: u64,
        is_leader: bool,
        ends: Ends,
    },
    /// A client has its answer.
    IsAnswered(Request),
}

/// A partition of the topic.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    /// Records that the leader has, and records that are acknowledged.
    pub end: u64,
    pub confirmed: u64,
    /// The nodes that read it.
    pub readers: Vec<usize>,
}

/// A node of Ilion.
#[derive(Default)]
pub(crate) struct Node {
    /// By broker.
    pub senders: Vec<Sender>,
    pub tails: Vec<Tail>,
    pub asking: Asking,
    /// By partition.
    pub progress: Vec<Progress>,
}

impl Node {
    pub fn new(shape: Shape) -> Self {
        Self {
            senders: (0..shape.brokers).map(|_| Sender::default()).collect(),
            tails: (0..shape.brokers).map(|_| Tail::default()).collect(),
            progress: (0..shape.partitions).map(|_| Progress::default()).collect(),
            ..Self::default()
        }
    }
}

/// What a node has for a broker.
#[derive(Debug, Default)]
pub(crate) struct Sender {
    pub waiting: Vec<Request>,
    pub is_under_way: bool,
    pub crowd: Crowd,
}

/// A wait for more records or readers, so that a request has many of them; as in `ilion_kafka_log::crowd`.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// `None`: there is no such wait.
    enough: Option<usize>,
    /// Counts the waits.
    number: u64,
}

impl Crowd {
    /// Begins to wait for so many. Returns the number of the wait.
    pub fn wait_for(&mut self, enough: usize) -> u64 {
        self.enough = Some(enough);
        self.number += 1;
        self.number
    }

    /// True if there is no wait, or it is for `count` or fewer.
    pub fn is_there(&self, count: usize) -> bool {
        self.enough.is_none_or(|enough| count >= enough)
    }

    /// Whether the wait of this number still goes on.
    pub fn is_waiting(&self, number: u64) -> bool {
        self.enough.is_some() && self.number == number
    }

    pub fn end(&mut self) {
        self.enough = None;
    }
}

/// A request with records.
#[derive(Clone, Debug)]
pub(crate) struct Batch {
    pub node: usize,
    pub broker: usize,
    /// Records by partition.
    pub parts: Vec<(usize, Vec<Request>)>,
    /// The offset of the first record of each part, once they have one.
    pub bases: Vec<u64>,
}

impl Batch {
    /// Number of records.
    pub fn count(&self) -> usize {
        self.parts.iter().map(|(_, requests)| requests.len()).sum()
    }
}

/// A broker that copies from another one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copier {
    /// Batches that it does not have.
    pub waiting: Vec<usize>,
    pub is_busy: bool,
}

/// Ends of partitions.
pub(crate) type Ends = Vec<(usize, u64)>;

/// What a node reads from a broker.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    pub followed: Vec<usize>,
    /// Partitions with records that the node has not asked for yet.
    pub news: Vec<usize>,
    /// A request waits at the broker for news.
    pub is_parked: bool,
    pub is_resting: bool,
    /// Counts rests.
    pub number: u64,
}

/// How far a node is with a partition.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The part of its tablets that the node has.
    pub held: f64,
    /// It has read and applied the records below.
    pub read: u64,
    pub applied: u64,
    /// The end that it knows of.
    pub known: u64,
    /// Requests that wait until the record of an offset is applied.
    pub waiting: VecDeque<(u64, Request)>,
}

/// The readers of a node that wait for ends of logs.
#[derive(Debug, Default)]
pub(crate) struct Asking {
    /// By partition.
    pub waiting: BTreeMap<usize, Vec<Request>>,
    pub count: usize,
    pub last_count: usize,
    /// The round that is under way.
    pub round: Option<Round>,
    /// Counts rounds.
    pub rounds: u64,
    pub crowd: Crowd,
}

#[derive(Debug, Default)]
pub(crate) struct Round {
    pub open: BTreeMap<usize, Open>,
}

/// A partition whose end is not known yet.
#[derive(Debug, Default)]
pub(crate) struct Open {
    pub readers: Vec<Request>,
    pub end: Option<u64>,
    pub answers: u32,
}
