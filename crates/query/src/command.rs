//! [`Command`]: a statement that reads before it writes, as a record of a shared log.
//!
//! On a single node such statements (conditions, counters, positions in lists) are executed under the lock of their partitions, and the
//! log gets the resulting mutations. In a cluster no node has such a lock. There the log gets the statement with its values. Each replica
//! executes it when its log reaches that record, and all replicas get the same result. For that, a command has everything else that an
//! execution depends on: its timestamp, the results of user-defined functions, and a seed for ids. Its clock is the time of the log,
//! unless the client gave one.
//!
//! ```text
//! command := version: u8, form: u8 (0: one statement, 1 to 3: a batch of the protocol), consistency: u16, serial: u16 (0xffff: not given),
//!            keyspace: [u16] (empty: none), timestamp: i64 (micros), now: i64 (secs; the least: not given), seed: [16 bytes],
//!            count: vint, statements, results (in version 2 only: there are some)              (big-endian)
//! statement := text: [i32], count: vint, values
//! value := length: i32 (-1: null, -2: unset), bytes
//! results := count: vint, (keyspace: [u16], function: [u16], count: vint, types: [i32] each, count: vint, arguments: value each, value)
//! ```

use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Error as CodecError, Reader, Writer};
use ilion_commitlog::Kind;
use ilion_rows::DecoratedKey;
use ilion_schema::TableId;
use uuid::Uuid;

use crate::{
    BatchKind, Consistency, Error, ExecuteOptions, Executed, FunctionCall, FunctionResults, StoreError,
    Value, Values, WriteType,
};

const VERSION: u8 = 1;
const VERSION_WITH_RESULTS: u8 = 2;
const UNSET: i32 = -2;
const NO_SERIAL: u16 = u16::MAX;

/// A statement with everything that its execution depends on, except stored data and the position in the log.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// A single statement or a batch of the protocol.
    pub form: Form,
    /// The texts with their values, in the order of the markers; exactly one text unless the command is a batch of the protocol.
    pub statements: Vec<(String, Vec<Value>)>,
    /// The keyspace of unqualified names.
    pub keyspace: Option<String>,
    /// The level of the write, for error messages.
    pub consistency: Consistency,
    /// The level of the condition.
    pub serial_consistency: Option<Consistency>,
    /// The timestamp of writes without one of their own. A conditional write has the time of the log instead.
    pub timestamp_micros: i64,
    /// The time that the client gave for TTLs, in seconds. `None`: TTLs start at the time of the log.
    pub now_secs: Option<i32>,
    /// A new version 1 UUID, from which the ids that the statement makes are derived.
    pub seed: Uuid,
    /// The calls of user-defined functions in the statement, with their results.
    pub function_results: FunctionResults,
}

/// What a command executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// One statement, which may be a `BEGIN BATCH`.
    Statement,
    /// A batch of the protocol.
    Batch(BatchKind),
}

/// Why a statement is a command. It decides the kind of its log record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The statement has a condition, or a position in a list.
    Decides,
    /// The statement changes counters.
    Counts,
}

impl From<Reason> for Kind {
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Decides => Self::Cas,
            Reason::Counts => Self::Counter,
        }
    }
}

/// Receives the outcome of a command.
pub type CommandDone = Box<dyn FnOnce(Result<Executed, Error>) + Send>;

/// Logs a command. It calls back once, on any thread, when the command was executed, or when its outcome is known to be unknown.
pub type BeginCommand = Box<dyn FnOnce(CommandDone) + Send>;

/// What came of the command that a request has waited for without its thread: the outcome of [`ilion_env::parking`] for a request with
/// [`ExecuteOptions::may_park`]. The request must not be executed again, except after [`Error::Overtaken`].
#[derive(Clone, Debug)]
pub struct Decided(pub Result<Executed, Error>);

/// Executes commands in a cluster, through its log.
pub trait Commands: Send + Sync {
    /// Refuses a command that would change a table with change data capture, if this node has no space for changes.
    ///
    /// # Errors
    /// It has none, or takes no writes.
    fn admit_capture(&self, table: TableId) -> Result<(), StoreError>;

    /// Logs a command, waits until this node or another replica has executed it, and returns the outcome there.
    ///
    /// # Errors
    /// The execution failed, or its outcome is unknown.
    fn execute(
        &self,
        command: &Command,
        reason: Reason,
        partitions: &[DecoratedKey],
    ) -> Result<Executed, Error>;

    /// As [`Self::execute`], but no thread waits. `None` if that is not possible, or would fail; then `execute` is the way.
    fn begin(&self, command: &Command, reason: Reason, partitions: &[DecoratedKey]) -> Option<BeginCommand>;
}

impl Command {
    /// The options with which the command is executed.
    pub fn options(&self) -> ExecuteOptions {
        let values = match (self.form, self.statements.as_slice()) {
            (Form::Statement, [(_, values)]) => Values::Positional(values.clone()),
            _ => Values::None,
        };
        ExecuteOptions {
            values,
            consistency: self.consistency,
            serial_consistency: self.serial_consistency,
            timestamp_micros: Some(self.timestamp_micros),
            now_secs: self.now_secs,
            keyspace: self.keyspace.clone(),
            function_results: Some(Arc::new(self.function_results.clone())),
            ..ExecuteOptions::default()
        }
    }

    /// Encodes the body of the log record.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        // Older nodes know version 1 only.
        out.u8(match self.function_results.is_empty() {
            true => VERSION,
            false => VERSION_WITH_RESULTS,
        });
        out.u8(self.form.code());
        out.u16(self.consistency.0);
        out.u16(self.serial_consistency.map_or(NO_SERIAL, |level| level.0));
        out.string16(self.keyspace.as_deref().unwrap_or_default());
        out.i64(self.timestamp_micros);
        out.i64(self.now_secs.map_or(i64::MIN, i64::from));
        out.bytes(self.seed.as_bytes());
        out.uvint(self.statements.len() as u64);
        for (text, values) in &self.statements {
            out.bytes32(text.as_bytes());
            out.uvint(values.len() as u64);
            for value in values {
                match value {
                    Value::Null => out.i32(-1),
                    Value::Unset => out.i32(UNSET),
                    Value::Bytes(bytes) => out.bytes32(bytes),
                }
            }
        }
        if !self.function_results.is_empty() {
            encode_results(&self.function_results, &mut out);
        }
        out.into_vec()
    }

    /// Decodes a command.
    ///
    /// # Errors
    /// The bytes are damaged, or were written by a newer version. The reader of the log must stop.
    pub fn decode(body: &Bytes) -> Result<Self, CodecError> {
        let input = &mut Reader::new(body);
        let version = input.u8()?;
        if ![VERSION, VERSION_WITH_RESULTS].contains(&version) {
            return Err(Reader::new(body).error("a command of version 1 or 2 (a newer Ilion wrote this)"));
        }
        let form = Form::of(input)?;
        let consistency = Consistency(input.u16()?);
        let serial_consistency = Some(input.u16()?).filter(|code| *code != NO_SERIAL);
        let keyspace = Some(input.string16()?.to_owned()).filter(|keyspace| !keyspace.is_empty());
        let timestamp_micros = input.i64()?;
        let start = input.clone();
        let now_secs = match input.i64()? {
            i64::MIN => None,
            secs => Some(i32::try_from(secs).map_err(|_| start.error("a time of 32 bits"))?),
        };
        let seed = Uuid::from_bytes(input.uuid_bytes()?);
        let count = input.uvint_len()?;
        // The length of a text and its number of values take five bytes at least.
        let mut statements = Vec::with_capacity(input.capacity_for(count, 5));
        for _ in 0..count {
            statements.push(decode_statement(input, body)?);
        }
        if form == Form::Statement && statements.len() != 1 {
            return Err(input.error("one statement"));
        }
        let function_results = match version {
            VERSION => FunctionResults::new(),
            _ => decode_results(input, body)?,
        };
        if !input.is_empty() {
            return Err(input.error("the end of the command"));
        }
        Ok(Self {
            form,
            statements,
            keyspace,
            consistency,
            serial_consistency: serial_consistency.map(Consistency),
            timestamp_micros,
            now_secs,
            seed,
            function_results,
        })
    }
}

fn decode_statement(input: &mut Reader<'_>, body: &Bytes) -> Result<(String, Vec<Value>), CodecError> {
    let start = input.clone();
    let text = std::str::from_utf8(input.bytes32()?).map_err(|_| start.error("UTF-8"))?;
    let count = input.uvint_len()?;
    let mut values = Vec::with_capacity(input.capacity_for(count, 4));
    for _ in 0..count {
        values.push(decode_value(input, body)?);
    }
    Ok((text.to_owned(), values))
}

fn decode_value(input: &mut Reader<'_>, body: &Bytes) -> Result<Value, CodecError> {
    let start = input.clone();
    Ok(match input.i32()? {
        -1 => Value::Null,
        UNSET => Value::Unset,
        len => {
            let len = usize::try_from(len).map_err(|_| start.error("a length, -1 or -2"))?;
            Value::Bytes(body.slice_ref(input.take(len)?))
        }
    })
}

fn encode_results(results: &FunctionResults, out: &mut Writer) {
    let value = |value: &Option<Bytes>, out: &mut Writer| match value {
        Some(bytes) => out.bytes32(bytes),
        None => out.i32(-1),
    };
    out.uvint(results.len() as u64);
    for (call, result) in results {
        out.string16(&call.keyspace);
        out.string16(&call.name);
        out.uvint(call.argument_types.len() as u64);
        call.argument_types
            .iter()
            .for_each(|ty| out.bytes32(ty.as_bytes()));
        out.uvint(call.arguments.len() as u64);
        call.arguments.iter().for_each(|argument| value(argument, out));
        value(result, out);
    }
}

fn decode_results(input: &mut Reader<'_>, body: &Bytes) -> Result<FunctionResults, CodecError> {
    let value = |input: &mut Reader<'_>| {
        let start = input.clone();
        match decode_value(input, body)? {
            Value::Bytes(bytes) => Ok(Some(bytes)),
            Value::Null => Ok(None),
            Value::Unset => Err(start.error("a value or null")),
        }
    };
    let start = input.clone();
    let mut results = FunctionResults::new();
    for _ in 0..input.uvint_len()? {
        let (keyspace, name) = (input.string16()?.to_owned(), input.string16()?.to_owned());
        let (mut argument_types, mut arguments) = (Vec::new(), Vec::new());
        for _ in 0..input.uvint_len()? {
            let start = input.clone();
            let ty = std::str::from_utf8(input.bytes32()?).map_err(|_| start.error("UTF-8"))?;
            argument_types.push(ty.to_owned());
        }
        for _ in 0..input.uvint_len()? {
            arguments.push(value(input)?);
        }
        let call = FunctionCall {
            keyspace,
            name,
            argument_types,
            arguments,
        };
        results.insert(call, value(input)?);
    }
    match results.is_empty() {
        false => Ok(results),
        true => Err(start.error("results of functions")),
    }
}

impl Form {
    fn code(self) -> u8 {
        match self {
            Self::Statement => 0,
            Self::Batch(BatchKind::Logged) => 1,
            Self::Batch(BatchKind::Unlogged) => 2,
            Self::Batch(BatchKind::Counter) => 3,
        }
    }

    fn of(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let start = input.clone();
        Ok(match input.u8()? {
            0 => Self::Statement,
            1 => Self::Batch(BatchKind::Logged),
            2 => Self::Batch(BatchKind::Unlogged),
            3 => Self::Batch(BatchKind::Counter),
            _ => return Err(start.error("the form of a command")),
        })
    }
}

/// What the errors of a command name.
#[derive(Clone, Copy, Debug)]
pub struct CommandLevel {
    consistency: Consistency,
    write_type: WriteType,
}

impl Command {
    /// What its errors name.
    pub fn level(&self, reason: Reason) -> CommandLevel {
        match reason {
            // Compat: conditional statements fail with their serial level.
            Reason::Decides => CommandLevel {
                consistency: self.serial_consistency.unwrap_or(Consistency::SERIAL),
                write_type: WriteType::Cas,
            },
            Reason::Counts => CommandLevel {
                consistency: self.consistency,
                write_type: WriteType::Counter,
            },
        }
    }
}

impl StoreError {
    /// The error for the client of a command.
    pub fn of_command(self, level: CommandLevel) -> Error {
        self.of_write(level.consistency, level.write_type)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command() -> Command {
        let value = Value::Bytes(Bytes::from_static(b"v"));
        let call = FunctionCall {
            keyspace: "ks".to_owned(),
            name: "f".to_owned(),
            argument_types: vec!["int".to_owned(), "text".to_owned()],
            arguments: vec![None, Some(Bytes::from_static(b"a"))],
        };
        let update = "UPDATE t SET v = ? WHERE k = ?".to_owned();
        Command {
            form: Form::Batch(BatchKind::Logged),
            statements: vec![
                (update, vec![value, Value::Null]),
                ("DELETE".to_owned(), vec![Value::Unset]),
            ],
            keyspace: Some("ks".to_owned()),
            consistency: Consistency::QUORUM,
            serial_consistency: Some(Consistency::SERIAL),
            timestamp_micros: -5,
            now_secs: Some(-7),
            seed: Uuid::from_u128(9),
            function_results: FunctionResults::from([(call, Some(Bytes::from_static(b"r")))]),
        }
    }

    #[test]
    fn a_command_is_read_back() {
        let one = Command {
            form: Form::Statement,
            statements: vec![("x".to_owned(), vec![])],
            keyspace: None,
            serial_consistency: None,
            now_secs: None,
            function_results: FunctionResults::new(),
            ..command()
        };
        for command in [command(), one] {
            assert_eq!(Command::decode(&command.encode().into()), Ok(command));
        }
    }

    #[test]
    fn cut_and_changed_bytes_are_an_error_or_another_command() {
        let bytes = command().encode();
        for end in 0..bytes.len() {
            assert!(Command::decode(&Bytes::copy_from_slice(&bytes[..end])).is_err());
        }
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut changed = bytes.clone();
                changed[at] ^= 1 << bit;
                // It neither panics nor takes memory that is not there.
                assert_ne!(Command::decode(&changed.into()), Ok(command()));
            }
        }
    }
}
