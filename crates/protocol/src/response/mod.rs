//! Responses: the messages of servers.

mod error;
mod error_code;
mod error_detail;
mod event;
mod failure;
mod prepared;
mod rows;

use bytes::Bytes;
use uuid::Uuid;

use crate::compression::Compression;
use crate::envelope::EnvelopeStart;
use crate::error::{Blame, Error, FrameError};
use crate::frame::Frame;
use crate::header::{Flags, Header, RESPONSE_BIT};
use crate::notation::{
    CustomPayload, Input, put_bytes, put_bytes_map, put_count, put_i32, put_string, put_string_list,
};
use crate::opcode::Opcode;
use crate::version::Version;

pub use error::ErrorResponse;
pub use error_code::ErrorCode;
pub use error_detail::ErrorDetail;
pub use event::{ChangeKind, Event, NodeStatus, SchemaChange, SchemaTarget, TopologyChange};
pub use failure::{FailureReason, Failures, WriteType};
pub use prepared::{BindMetadata, Prepared};
pub use rows::{MetadataMode, Rows, RowsHead, RowsMetadata};

const KIND_VOID: i32 = 1;
const KIND_ROWS: i32 = 2;
const KIND_SET_KEYSPACE: i32 = 3;
const KIND_PREPARED: i32 = 4;
const KIND_SCHEMA_CHANGE: i32 = 5;

/// The fields of a response before its body: those of the envelope, and the prefix.
#[derive(Clone, Copy, Debug)]
pub struct ResponseHead<'a> {
    /// Version of the request.
    pub version: Version,
    /// Stream of the request; -1 for events.
    pub stream: i16,
    /// The trace of the request, if it was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the user; v3 cannot carry them and drops them.
    pub warnings: &'a [String],
    /// Opaque key-value pairs; v3 cannot carry them and drops them.
    pub custom_payload: &'a [(String, Option<Bytes>)],
}

/// A response with the fields of its envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseFrame {
    /// Version of the envelope.
    pub version: Version,
    /// Stream of the request; -1 for events.
    pub stream: i16,
    /// The trace of the request, if it was traced.
    pub tracing_id: Option<Uuid>,
    /// Warnings for the user.
    pub warnings: Vec<String>,
    /// Opaque key-value pairs.
    pub custom_payload: CustomPayload,
    /// The response itself.
    pub response: Response,
}

/// A response.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    /// The request failed.
    Error(ErrorResponse),
    /// The session is open, or events are registered.
    Ready,
    /// The client must authenticate with this class of authenticator.
    Authenticate(String),
    /// The next step of authentication.
    AuthChallenge(Option<Bytes>),
    /// The client is authenticated.
    AuthSuccess(Option<Bytes>),
    /// The supported options.
    Supported(Supported),
    /// The result of a statement.
    Result(ResultBody),
    /// An event.
    Event(Event),
}

/// SUPPORTED: the supported options and their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Supported {
    /// Names and values, in order.
    pub options: Vec<(String, Vec<String>)>,
}

/// The result of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum ResultBody {
    /// No result.
    Void,
    /// Rows. Servers use [`RowsHead`] instead.
    Rows(Rows),
    /// The new keyspace of the connection.
    SetKeyspace(String),
    /// The statement is prepared.
    Prepared(Prepared),
    /// The schema changed.
    SchemaChange(SchemaChange),
}

impl Supported {
    /// The options that Ilion supports.
    pub fn of_ilion() -> Self {
        let list = |items: &[&str]| items.iter().map(|&item| item.to_owned()).collect();
        Self {
            options: vec![
                (
                    "PROTOCOL_VERSIONS".to_owned(),
                    Version::SUPPORTED.iter().map(Version::to_string).collect(),
                ),
                ("COMPRESSION".to_owned(), list(&["snappy", "lz4"])),
                ("CQL_VERSION".to_owned(), list(&["3.4.7"])),
            ],
        }
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let count = put_count(out, self.options.len());
        for (name, values) in &self.options[..count] {
            put_string(out, name);
            put_string_list(out, values);
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let options = input.list(4, |input| Ok((input.string()?, input.string_list()?)))?;
        Ok(Self { options })
    }
}

impl ResultBody {
    fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Void => put_i32(out, KIND_VOID),
            Self::Rows(rows) => rows.encode(out, version),
            Self::SetKeyspace(keyspace) => {
                put_i32(out, KIND_SET_KEYSPACE);
                put_string(out, keyspace);
            }
            Self::Prepared(prepared) => {
                put_i32(out, KIND_PREPARED);
                prepared.encode(out, version);
            }
            Self::SchemaChange(change) => {
                put_i32(out, KIND_SCHEMA_CHANGE);
                change.encode(out, version);
            }
        }
    }

    fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        Ok(match input.i32()? {
            KIND_VOID => Self::Void,
            KIND_ROWS => Self::Rows(Rows::decode(input)?),
            KIND_SET_KEYSPACE => Self::SetKeyspace(input.string()?),
            KIND_PREPARED => Self::Prepared(Prepared::decode(input, version)?),
            KIND_SCHEMA_CHANGE => Self::SchemaChange(SchemaChange::decode(input)?),
            other => return Err(Error::refused(format!("unknown kind of result: {other}"))),
        })
    }
}

impl Response {
    /// The opcode of the response.
    pub fn opcode(&self) -> Opcode {
        match self {
            Self::Error(_) => Opcode::Error,
            Self::Ready => Opcode::Ready,
            Self::Authenticate(_) => Opcode::Authenticate,
            Self::AuthChallenge(_) => Opcode::AuthChallenge,
            Self::AuthSuccess(_) => Opcode::AuthSuccess,
            Self::Supported(_) => Opcode::Supported,
            Self::Result(_) => Opcode::Result,
            Self::Event(_) => Opcode::Event,
        }
    }

    fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Error(error) => error.encode(out, version),
            Self::Ready => {}
            Self::Authenticate(class) => put_string(out, class),
            Self::AuthChallenge(token) | Self::AuthSuccess(token) => put_bytes(out, token.as_deref()),
            Self::Supported(supported) => supported.encode(out),
            Self::Result(body) => body.encode(out, version),
            Self::Event(event) => event.encode(out, version),
        }
    }

    fn decode(input: &mut Input<'_>, version: Version, opcode: Opcode) -> Result<Self, Error> {
        Ok(match opcode {
            Opcode::Error => Self::Error(ErrorResponse::decode(input, version)?),
            Opcode::Ready => Self::Ready,
            Opcode::Authenticate => Self::Authenticate(input.string()?),
            Opcode::AuthChallenge => Self::AuthChallenge(input.bytes()?),
            Opcode::AuthSuccess => Self::AuthSuccess(input.bytes()?),
            Opcode::Supported => Self::Supported(Supported::decode(input)?),
            Opcode::Result => Self::Result(ResultBody::decode(input, version)?),
            Opcode::Event => Self::Event(Event::decode(input)?),
            other => return Err(Error::refused(format!("{other} is not a response"))),
        })
    }
}

impl<'a> ResponseHead<'a> {
    /// A head without a prefix.
    pub fn new(version: Version, stream: i16) -> Self {
        Self {
            version,
            stream,
            tracing_id: None,
            warnings: &[],
            custom_payload: &[],
        }
    }

    /// The head of an event.
    pub fn event(version: Version) -> Self {
        Self::new(version, -1)
    }

    /// The same head with these warnings.
    #[must_use]
    pub fn with_warnings(self, warnings: &'a [String]) -> Self {
        Self { warnings, ..self }
    }

    fn flags(&self) -> Flags {
        let mut flags = Flags::default();
        if self.tracing_id.is_some() {
            flags = flags.with(Flags::TRACING);
        }
        if self.version >= Version::V4 && !self.warnings.is_empty() {
            flags = flags.with(Flags::WARNINGS);
        }
        if self.version >= Version::V4 && !self.custom_payload.is_empty() {
            flags = flags.with(Flags::CUSTOM_PAYLOAD);
        }
        flags
    }

    fn encode_prefix(&self, out: &mut Vec<u8>, flags: Flags) {
        if let Some(id) = self.tracing_id {
            out.extend_from_slice(id.as_bytes());
        }
        if flags.contains(Flags::WARNINGS) {
            put_string_list(out, self.warnings);
        }
        if flags.contains(Flags::CUSTOM_PAYLOAD) {
            put_bytes_map(out, self.custom_payload);
        }
    }
}

/// Appends header and prefix of a response. The caller then appends the body and calls `finish`.
pub fn begin_response(out: &mut Vec<u8>, head: &ResponseHead<'_>, opcode: Opcode) -> EnvelopeStart {
    let flags = head.flags();
    let header = Header {
        version: head.version,
        flags,
        stream: head.stream,
        opcode,
    };
    let start = EnvelopeStart::begin(out, header);
    head.encode_prefix(out, flags);
    start
}

/// Appends the envelope of a response. `compression` applies to v3 and v4 only (v5 compresses segments).
///
/// # Errors
/// If the body exceeds the 256 MiB of the protocol; `out` is then unchanged.
pub fn encode_response(
    out: &mut Vec<u8>,
    head: &ResponseHead<'_>,
    response: &Response,
    compression: Option<Compression>,
) -> Result<(), Error> {
    let start = begin_response(out, head, response.opcode());
    response.encode(out, head.version);
    start.finish(out, compression)
}

impl FrameError {
    /// Appends the envelope with the answer. In v5 after STARTUP, the caller must pack it into a segment.
    pub fn encode_answer(&self, out: &mut Vec<u8>) {
        let begin = out.len();
        let head = ResponseHead::new(self.version, self.stream);
        let start = begin_response(out, &head, Opcode::Error);
        let error = match self.blame {
            Blame::Protocol => ErrorResponse::protocol(self.message.as_ref()),
            Blame::Invalid => ErrorResponse::new(ErrorDetail::Invalid, self.message.as_ref()),
        };
        error.encode(out, self.version);
        let finished = start.finish(out, None);
        debug_assert!(finished.is_ok(), "a message of an error is below 64 KiB");
        // Compat: `ProtocolVersion.decode` of Cassandra 5.0 answers requests of v1 and v2 with their own version.
        if let Some(version) = self.legacy_version {
            out[begin] = RESPONSE_BIT | version;
            out.remove(begin + STREAM_HIGH_BYTE_AT);
        }
    }
}

/// Offset of the stream's high byte in a header; versions 1 and 2 have the low byte only.
const STREAM_HIGH_BYTE_AT: usize = 2;

impl ResponseFrame {
    /// Decodes a frame of a server. Rows and ids are slices of the frame's body.
    ///
    /// # Errors
    /// If the body breaks the format.
    pub fn decode(frame: &Frame) -> Result<Self, Error> {
        let mut input = Input::new(&frame.body);
        let tracing_id = if frame.flags.contains(Flags::TRACING) {
            Some(input.uuid()?)
        } else {
            None
        };
        let warnings = if frame.flags.contains(Flags::WARNINGS) {
            input.string_list()?
        } else {
            Vec::new()
        };
        let custom_payload = if frame.flags.contains(Flags::CUSTOM_PAYLOAD) {
            input.bytes_map()?
        } else {
            CustomPayload::new()
        };
        Ok(Self {
            version: frame.version,
            stream: frame.stream,
            tracing_id,
            warnings,
            custom_payload,
            response: Response::decode(&mut input, frame.version, frame.opcode)?,
        })
    }
}
