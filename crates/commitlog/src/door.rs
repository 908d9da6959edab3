//! [`Log`]: the interface of a log. Here it is implemented by local segments; a log of a cluster may implement it, too.

use crate::{Callback, Envelope, Position, Record, Result};

/// An ordered, durable sequence of records. Every change of a table goes through a log.
pub trait Log: Send + Sync {
    /// Adds a record, which is not durable yet.
    fn append(&self, envelope: &Envelope<'_>) -> Result<Position>;
    /// Waits until the record is as durable as this log promises.
    fn wait_durable(&self, position: Position) -> Result<()>;
    /// Calls back when the record is as durable as this log promises, or with the error if it never will be.
    fn on_durable(&self, position: Position, callback: Callback);
    /// The records from a position on that were written until now.
    fn tail(&self, from: Position) -> Box<dyn Iterator<Item = Result<(Position, Record)>> + Send>;
    /// A position above all records that were appended before the call, and not above any record that is appended after it.
    fn barrier(&self) -> Result<Position>;
    /// Deletes the parts of the log all of whose records are below the position.
    fn trim(&self, upto: Position) -> Result<()>;
    /// The capabilities of this log.
    fn caps(&self) -> Capabilities;
}

/// The limits and promises of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The largest record, envelope and body.
    pub record_bytes_max: u32,
    /// Whether other nodes append to the same log.
    pub is_shared: bool,
    /// Whether a durable record survives the loss of this machine's power.
    pub survives_power_loss: bool,
}
