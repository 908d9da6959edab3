//! BATCH: several statements in one request.
//!
//! ```text
//! batch     := kind: u8 (0 logged, 1 unlogged, 2 counter), n: u16, n x statement, consistency,
//!              flags (v3, v4: u8; v5: i32), then each if flagged:
//!              serial_consistency, timestamp_micros: i64, keyspace: string, now_secs: i32
//! statement := 0: u8, text: long string, values | 1: u8, id: short bytes, values
//! ```

use bytes::Bytes;

use crate::consistency::Consistency;
use crate::error::Error;
use crate::notation::{Input, put_consistency, try_count, try_long_string, try_short_bytes};
use crate::request::Values;
use crate::request::params::{OwnedTail, Tail, put_flags, take_flags};
use crate::version::Version;

const TEXT: u8 = 0;
const PREPARED: u8 = 1;

/// The kind of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BatchKind {
    /// Eventually, all of its writes are made or none.
    #[default]
    Logged,
    /// No guarantee for the batch as a whole.
    Unlogged,
    /// Counter updates.
    Counter,
}

/// BATCH: several statements in one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Logged, unlogged or counter.
    pub kind: BatchKind,
    /// The statements, in order; may be empty.
    pub statements: Vec<BatchStatement>,
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// Consistency of the conditional part of lightweight transactions.
    pub serial_consistency: Option<Consistency>,
    /// The client's write timestamp.
    pub timestamp_micros: Option<i64>,
    /// Overrides the keyspace of the connection (v5).
    pub keyspace: Option<String>,
    /// Overrides the server's clock for TTLs (v5).
    pub now_secs: Option<i32>,
}

/// A statement of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchStatement {
    /// The statement.
    pub source: StatementSource,
    /// The bind values; names are not allowed.
    pub values: Values,
}

/// A statement of a batch: text or id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatementSource {
    /// CQL text.
    Text(String),
    /// The id of a prepared statement.
    Prepared(Bytes),
}

impl BatchKind {
    fn number(self) -> u8 {
        match self {
            Self::Logged => 0,
            Self::Unlogged => 1,
            Self::Counter => 2,
        }
    }

    fn from_number(number: u8) -> Result<Self, Error> {
        match number {
            0 => Ok(Self::Logged),
            1 => Ok(Self::Unlogged),
            2 => Ok(Self::Counter),
            other => Err(Error::refused(format!("Invalid BATCH type {other}"))),
        }
    }
}

impl BatchStatement {
    fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        match &self.source {
            StatementSource::Text(text) => {
                out.push(TEXT);
                try_long_string(out, "the query text", text)?;
            }
            StatementSource::Prepared(id) => {
                out.push(PREPARED);
                try_short_bytes(out, "the statement id", id)?;
            }
        }
        if self.values.names().is_some() {
            return Err(Error::refused("named values cannot be used in a batch"));
        }
        self.values.encode(out, version)
    }

    fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let source = match input.u8()? {
            TEXT => StatementSource::Text(input.long_string()?),
            PREPARED => StatementSource::Prepared(input.short_bytes()?),
            other => {
                return Err(Error::refused(format!(
                    "Invalid query kind in BATCH messages. Must be 0 or 1 but got {other}"
                )));
            }
        };
        let values = Values::decode(input, version)?;
        Ok(Self { source, values })
    }
}

impl Batch {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        let tail = Tail {
            serial_consistency: self.serial_consistency,
            timestamp_micros: self.timestamp_micros,
            keyspace: self.keyspace.as_deref(),
            now_secs: self.now_secs,
        };
        out.push(self.kind.number());
        try_count(out, "the list of statements", self.statements.len())?;
        for statement in &self.statements {
            statement.encode(out, version)?;
        }
        put_consistency(out, self.consistency);
        put_flags(out, version, tail.flags())?;
        tail.encode(out)
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let kind = BatchKind::from_number(input.u8()?)?;
        let statements = input.list(STATEMENT_MIN_BYTES, |input| {
            BatchStatement::decode(input, version)
        })?;
        let consistency = input.consistency()?;
        let flags = take_flags(input, version)?;
        let tail = OwnedTail::decode(input, flags)?;
        Ok(Self {
            kind,
            statements,
            consistency,
            serial_consistency: tail.serial_consistency,
            timestamp_micros: tail.timestamp_micros,
            keyspace: tail.keyspace,
            now_secs: tail.now_secs,
        })
    }
}

/// Size of a statement with an empty id and no values.
const STATEMENT_MIN_BYTES: usize = 1 + 2 + 2;
