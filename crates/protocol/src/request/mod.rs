//! Requests: the messages of clients.

mod batch;
mod params;
mod startup;
mod statement;
mod values;

use bytes::Bytes;

use crate::compression::Compression;
use crate::envelope::EnvelopeStart;
use crate::error::Error;
use crate::frame::Frame;
use crate::header::{Flags, Header};
use crate::notation::{CustomPayload, Input, put_bytes_map, try_count, try_size, try_string};
use crate::opcode::Opcode;
use crate::version::Version;

pub use batch::{Batch, BatchKind, BatchStatement, StatementSource};
pub use params::QueryParams;
pub use startup::Startup;
pub use statement::{Execute, Prepare, Query};
pub use values::{Value, Values, ValuesBuilder};

/// A request with the fields of its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestFrame {
    /// Version of the envelope, and of the answer.
    pub version: Version,
    /// Stream of the request, and of the answer.
    pub stream: i16,
    /// The client requests a trace, and its id in the answer.
    pub tracing: bool,
    /// Opaque key-value pairs.
    pub custom_payload: CustomPayload,
    /// The request itself.
    pub request: Request,
}

/// A request.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Opens the session.
    Startup(Startup),
    /// Asks for the supported options.
    Options,
    /// Registers for events.
    Register(Register),
    /// Executes CQL text.
    Query(Query),
    /// Prepares CQL text.
    Prepare(Prepare),
    /// Executes a prepared statement.
    Execute(Execute),
    /// Executes several statements.
    Batch(Batch),
    /// A token for the authenticator (for PLAIN: `00 user 00 password`).
    AuthResponse(Option<Bytes>),
}

/// REGISTER: registers for events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Register {
    /// The events, with possible duplicates.
    pub events: Vec<EventKind>,
}

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// Nodes join and leave.
    TopologyChange,
    /// Nodes go up and down.
    StatusChange,
    /// Keyspaces, tables, types and functions change.
    SchemaChange,
}

impl EventKind {
    /// All kinds of events.
    pub const ALL: [Self; 3] = [Self::TopologyChange, Self::StatusChange, Self::SchemaChange];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::TopologyChange => "TOPOLOGY_CHANGE",
            Self::StatusChange => "STATUS_CHANGE",
            Self::SchemaChange => "SCHEMA_CHANGE",
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let name = input.string()?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.name().eq_ignore_ascii_case(&name))
            .ok_or_else(|| Error::refused(format!("Invalid value '{name}' for Type")))
    }
}

impl Register {
    fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        try_count(out, "the list of events", self.events.len())?;
        self.events
            .iter()
            .try_for_each(|kind| try_string(out, "an event", kind.name()))
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let events = input.list(2, EventKind::decode)?;
        Ok(Self { events })
    }
}

impl RequestFrame {
    /// Decodes a frame of a client. Values and ids are slices of the frame's body.
    ///
    /// # Errors
    /// If the body breaks the format. Answer the error on the frame's stream; the connection can continue.
    pub fn decode(frame: &Frame) -> Result<Self, Error> {
        let mut input = Input::new(&frame.body);
        let custom_payload = if frame.flags.contains(Flags::CUSTOM_PAYLOAD) && frame.version >= Version::V4 {
            input.bytes_map()?
        } else {
            CustomPayload::new()
        };
        Ok(Self {
            version: frame.version,
            stream: frame.stream,
            tracing: frame.flags.contains(Flags::TRACING),
            custom_payload,
            request: Request::decode(&mut input, frame.version, frame.opcode)?,
        })
    }
}

impl Request {
    /// The opcode of the request.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Startup(_) => Opcode::Startup,
            Self::Options => Opcode::Options,
            Self::Register(_) => Opcode::Register,
            Self::Query(_) => Opcode::Query,
            Self::Prepare(_) => Opcode::Prepare,
            Self::Execute(_) => Opcode::Execute,
            Self::Batch(_) => Opcode::Batch,
            Self::AuthResponse(_) => Opcode::AuthResponse,
        }
    }

    fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        match self {
            Self::Startup(startup) => startup.encode(out),
            Self::Options => Ok(()),
            Self::Register(register) => register.encode(out),
            Self::Query(query) => query.encode(out, version),
            Self::Prepare(prepare) => prepare.encode(out, version),
            Self::Execute(execute) => execute.encode(out, version),
            Self::Batch(batch) => batch.encode(out, version),
            Self::AuthResponse(token) => encode_token(out, token.as_deref()),
        }
    }

    fn decode(input: &mut Input<'_>, version: Version, opcode: Opcode) -> Result<Self, Error> {
        Ok(match opcode {
            Opcode::Startup => Self::Startup(Startup::decode(input)?),
            Opcode::Options => Self::Options,
            Opcode::Register => Self::Register(Register::decode(input)?),
            Opcode::Query => Self::Query(Query::decode(input, version)?),
            Opcode::Prepare => Self::Prepare(Prepare::decode(input, version)?),
            Opcode::Execute => Self::Execute(Execute::decode(input, version)?),
            Opcode::Batch => Self::Batch(Batch::decode(input, version)?),
            Opcode::AuthResponse => Self::AuthResponse(input.bytes()?),
            other => return Err(Error::refused(format!("{other} is not a request"))),
        })
    }
}

fn encode_token(out: &mut Vec<u8>, token: Option<&[u8]>) -> Result<(), Error> {
    let Some(token) = token else {
        crate::notation::put_i32(out, -1);
        return Ok(());
    };
    try_size(out, "the authentication token", token.len())?;
    out.extend_from_slice(token);
    Ok(())
}

/// Appends the envelope of a request to `out`. `compression` applies to v3 and v4 only (v5 compresses segments).
///
/// # Errors
/// If a part is too large for the format, or unknown to the version; `out` is then unchanged.
pub fn encode_request(
    out: &mut Vec<u8>,
    frame: &RequestFrame,
    compression: Option<Compression>,
) -> Result<(), Error> {
    let has_payload = !frame.custom_payload.is_empty() && frame.version >= Version::V4;
    let mut flags = Flags::default();
    if frame.tracing {
        flags = flags.with(Flags::TRACING);
    }
    if has_payload {
        flags = flags.with(Flags::CUSTOM_PAYLOAD);
    }
    let start = EnvelopeStart::begin(
        out,
        Header {
            version: frame.version,
            flags,
            stream: frame.stream,
            opcode: frame.request.opcode(),
        },
    );
    if has_payload {
        put_bytes_map(out, &frame.custom_payload);
    }
    match frame.request.encode(out, frame.version) {
        Ok(()) => start.finish(out, compression),
        Err(error) => {
            start.abandon(out);
            Err(error)
        }
    }
}
