//! [`Request`]: what clients ask for; [`Reply`]: what they get.

use ilion_histories::Value;

use crate::command::Command;

/// What a client gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request took effect. A compare-and-set that did not set has the value that it found.
    Done(Option<Value>),
    /// The value of a register.
    Register(Value),
    /// The value of a counter.
    Counter(i64),
    /// All cells that have a value, with their values.
    Cells(Vec<(u64, u64)>),
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
    /// Read a cell at ONE, of a node that has it.
    Nearest(u64),
    /// Read a counter at QUORUM.
    Counter(u64),
    /// Read all cells at QUORUM, in pages of so many rows.
    Scan(u32),
    /// Change the schema, in one of several ways.
    Alter(u64),
    /// Make a role of this number, and write the number into a role that all these requests write.
    Role(u64),
}
