//! [`Command`]: changes that clients ask for, and the keys that they change. Toys log a command as these bytes.

use ilion_codec::{Reader, Writer};
use ilion_commitlog::{Kind, Record};
use ilion_histories::Value;

/// Registers that are checked for linearizability.
pub(crate) const REGISTERS: u64 = 2;
pub(crate) const COUNTER: u64 = 5;
/// Cells that batches write.
pub(crate) const CELLS: [u64; 2] = [10, 11];

/// Two cells that only this batch writes.
pub(crate) fn own_cells(version: u64) -> [u64; 2] {
    [100 + 2 * version, 101 + 2 * version]
}

/// True if this is the key of a cell, not of a register.
pub(crate) fn is_cell(key: u64) -> bool {
    key >= CELLS[0]
}

/// A command to a tablet, the body of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Set a register.
    Write(u64, u64),
    /// Set a register to the second value if it is the first.
    CompareAndSet(u64, Value, u64),
    /// Add to a counter.
    Add(u64, i64),
    /// Set several registers to a version, unless they have a newer one; all or none.
    Batch([u64; 2], u64),
    /// No change: a place in the order.
    Barrier,
}

impl Command {
    /// The kind of its record.
    pub fn kind(&self) -> Kind {
        match self {
            Self::Write(..) => Kind::Mutation,
            Self::CompareAndSet(..) => Kind::Cas,
            Self::Add(..) => Kind::Counter,
            Self::Batch(..) => Kind::Batch,
            Self::Barrier => Kind::Noop,
        }
    }

    /// The body of its record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        match *self {
            Self::Write(key, value) => {
                out.u64(key);
                out.u64(value);
            }
            Self::CompareAndSet(key, expected, value) => {
                out.u64(key);
                out.bool(expected.is_some());
                out.u64(expected.unwrap_or(0));
                out.u64(value);
            }
            Self::Add(key, amount) => {
                out.u64(key);
                out.i64(amount);
            }
            Self::Batch(keys, value) => {
                keys.iter().for_each(|key| out.u64(*key));
                out.u64(value);
            }
            Self::Barrier => {}
        }
        out.into_vec()
    }

    /// The command of a record.
    ///
    /// # Errors
    /// The record is no command: its reader must halt.
    pub fn decode(record: &Record) -> Result<Self, ilion_codec::Error> {
        let mut input = Reader::new(&record.body);
        Ok(match record.kind {
            Kind::Mutation => Self::Write(input.u64()?, input.u64()?),
            Kind::Cas => {
                let key = input.u64()?;
                let is_there = input.bool()?;
                let expected = input.u64()?;
                Self::CompareAndSet(key, is_there.then_some(expected), input.u64()?)
            }
            Kind::Counter => Self::Add(input.u64()?, input.i64()?),
            Kind::Batch => Self::Batch([input.u64()?, input.u64()?], input.u64()?),
            Kind::Noop => Self::Barrier,
            Kind::Truncate | Kind::Schema | Kind::LoggedBatch | Kind::BatchesDone | Kind::Applied => {
                return Err(input.error("a kind of the toy"));
            }
        })
    }
}
