//! [`Member`]: a node, as the scheduler of a run sees it.

use ilion_commitlog::Position;
use ilion_env::Seeded;
use ilion_histories::{Value, Violation};

use crate::engine::Command;
use crate::log::{Deleted, Side, SimLog};

/// What a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request took effect. A compare-and-set that did not set has the value that it found.
    Done(Option<Value>),
    /// The value of a register.
    Register(Value),
    /// The value of a counter.
    Counter(i64),
    /// No answer came.
    Unknown,
    /// The request did not take effect, and will not: the client may try again.
    Refused,
}

/// What a client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Change something.
    Change(Command),
    /// Read a register at QUORUM.
    Register(u64),
    /// Read a counter at QUORUM.
    Counter(u64),
    /// Change the schema, in one of several ways.
    Alter(u64),
}

/// What became of a step of following a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tailed {
    /// There is no record, or it has to wait.
    Nothing,
    /// The node went on without applying a record.
    Passed,
    /// It has applied the record at this position. The text is all of the tablet's data, to compare replicas at one position.
    Applied(Position, String),
    /// The record is deleted: the node needs a copy of another one's data.
    Deleted(Deleted),
}

/// A coordinator and a replica of all tablets. Each method is one step.
pub trait Member {
    /// Whether it can take another node's data when records that it lacks are deleted.
    const CAN_COPY: bool;

    /// Whether it has a schema. Then there is one log more than tablets: the meta log, which is the last.
    const HAS_SCHEMA: bool;

    /// Takes a request of a client, which `client` identifies.
    fn begin(&mut self, client: u64, request: Request, logs: &mut [SimLog]) -> Option<Reply>;

    /// Checks whether a request has its answer; `None` if not yet.
    fn poll(&mut self, client: u64, logs: &mut [SimLog]) -> Option<Reply>;

    /// The clients that wait.
    fn waiting(&self) -> Vec<u64>;

    /// Applies the next record of a tablet.
    ///
    /// # Errors
    /// The replica stopped following it, though the log has only what nodes wrote.
    fn tail(&mut self, tablet: usize, logs: &mut [SimLog]) -> Result<Tailed, Violation>;

    /// Does some work that makes data durable.
    fn save_step(&mut self, random: &mut Seeded);

    /// Loses what is not durable, and starts again. Returns the clients that waited, who get no answer.
    fn crash(&mut self, random: &mut Seeded) -> Vec<u64>;

    /// Starts the node again, if it lost power in the middle of a step. Returns the clients that waited.
    fn recover(&mut self) -> Vec<u64>;

    /// Up to where a tablet is durable.
    fn saved(&self, tablet: usize) -> Position;

    /// Takes another node's durable data.
    fn copy_from(&mut self, other: &Self);

    /// Sets which leaders of logs it talks to from now on.
    fn talk_to(&mut self, side: Side);

    /// The value of a register or cell, as this node has it.
    fn register(&self, key: u64) -> Value;

    /// The value of a counter, as this node has it.
    fn counter(&self, key: u64) -> i64;

    /// True while it does work of its own that needs steps of the logs.
    fn is_busy(&self) -> bool;
}
