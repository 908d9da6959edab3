//! [`SharedLogs`]: the interface of the logs of a cluster, which all of its nodes append to and read.
//!
//! A cluster has a log for each tablet (a slice of the token ring), and the meta log, whose number is that of no tablet. All readers get the
//! same records of a log at the same offsets. Several logs may be kept in one *sequence* of records, to save requests: a record's offset is
//! its place in the sequence, so the offsets of a log have gaps where the sequence has records of other logs. The meta log has a sequence of
//! its own. This module has no implementation: nodes reach brokers through `kafka-log`, tests and simulations have their own.
//!
//! The local commit log of a node is something else: a [`crate::Log`], which only that node reads and which knows a record's position
//! at once.

use std::time::Duration;

use crate::{Capabilities, Envelope, Record};

/// Called once: with the offset of the record, or with the reason why it is not acknowledged.
pub type AppendCallback = Box<dyn FnOnce(Result<u64, AppendError>) + Send>;

/// Called once: with the end of a log, or with `None` if it is not known.
pub type EndCallback = Box<dyn FnOnce(Option<u64>) + Send>;

/// The logs of a cluster. Any thread may call it.
pub trait SharedLogs: Send + Sync {
    /// Appends a record to the log that `envelope.tablet` names, and calls back with its offset once it is as durable as the log
    /// promises. The log may have copies of it at other offsets, too: readers drop repeated origins. Returns at once, or waits while too
    /// many records or bytes are in flight.
    ///
    /// Records that one process appends to a log from one thread are in the log in this order, unless one of them fails. The time in the
    /// envelope is ignored: the log gives each record its own.
    fn append(&self, envelope: &Envelope<'_>, done: AppendCallback);

    /// Calls back with the end of a log: an offset above all records that were acknowledged before this call, whoever appended them.
    /// Readers of the log will get to it, maybe later: with a record, or with [`Passed`](Delivered::Passed). `None` if the end is not known
    /// for sure now; then the caller appends a record: its offset is above them, too.
    fn find_end(&self, log: u32, done: EndCallback);

    /// Reads these logs, each from its offset on.
    ///
    /// # Errors
    /// The logs cannot be read at all; trying again later may help.
    fn tail(&self, from: &[(u32, u64)]) -> Result<Box<dyn SharedTail>, TailError>;

    /// The number of the sequence that a log is kept in; the same for all nodes, and for ever.
    fn sequence_of(&self, log: u32) -> u32;

    /// Deletes all or some of the records below an offset in the sequence of a log. Offsets of other records stay as they are.
    ///
    /// Requires: no reader needs records below it of any log of the sequence.
    ///
    /// # Errors
    /// No record was deleted; the caller can try again.
    fn delete_below(&self, log: u32, offset: u64) -> Result<(), TailError>;

    /// The limits and promises of these logs.
    fn caps(&self) -> Capabilities;
}

/// A reader of several logs.
pub trait SharedTail: Send {
    /// What comes next of each log, in order and without gaps. Waits for the first records at most for `wait`; the result may be empty.
    /// Returns at most a few MiB.
    ///
    /// # Errors
    /// See [`TailError`]. Records of other logs still come with the next call.
    fn next(&mut self, wait: Duration) -> Result<Vec<Delivered>, TailError>;

    /// Reads this log from this offset on, whether or not it was read before.
    fn follow(&mut self, log: u32, from: u64);

    /// Stops reading a log.
    fn leave(&mut self, log: u32);
}

/// What was read of a log. Each offset is that of a record, or one that was passed; if some are neither, the sequence has lost records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delivered {
    /// A record.
    Record {
        /// The log.
        log: u32,
        /// The log has no records from this offset up to `offset`.
        from: u64,
        /// The offset of the record.
        offset: u64,
        /// The record. Its time was given by the log: it does not depend on the clock of the sender.
        record: Record,
    },
    /// The log has no records from one offset up to another.
    Passed {
        /// The log.
        log: u32,
        /// The first of these offsets.
        from: u64,
        /// The offset behind the last one.
        to: u64,
    },
}

impl Delivered {
    /// The log.
    pub fn log(&self) -> u32 {
        match self {
            Self::Record { log, .. } | Self::Passed { log, .. } => *log,
        }
    }
}

/// Why a record is not acknowledged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The record is not in the log, and will not be.
    #[error("the log does not take the record: {0}")]
    Refused(String),
    /// The record may be in the log, once or several times, or may still be added.
    #[error("the log did not acknowledge the record: {0}")]
    Unknown(String),
}

/// Why a reader gets no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TailError {
    /// The log has deleted the record that comes next: the reader must copy the missing data from another node.
    #[error("log {log} has deleted its records below {start}")]
    Deleted {
        /// The log. It is not read any more.
        log: u32,
        /// Its first offset now.
        start: u64,
    },
    /// A record cannot be read. No replica may skip it.
    #[error("the record at {offset} of log {log} is unreadable: {reason}")]
    Unreadable {
        /// The log. It is not read any more.
        log: u32,
        /// The offset of the record.
        offset: u64,
        /// What is wrong: damage, or a newer version.
        reason: String,
    },
    /// The failure may pass: the next call tries again.
    #[error("the log cannot be reached: {0}")]
    Unreachable(String),
    /// The failure will not pass by itself.
    #[error("{0}")]
    Refused(String),
}
