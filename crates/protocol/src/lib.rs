//! The native protocol v3, v4, v5, both directions. Bytes in, values out: no sockets, no threads, no clock.
//!
//! Reading: bytes from a socket go into a `BytesMut`; [`FrameDecoder::decode`] returns one [`Frame`] at a time;
//! [`RequestFrame::decode`] (server) or [`ResponseFrame::decode`] (client) decodes its body. A [`FrameError`] has the answer to
//! send, and how the connection continues. After the answer to STARTUP in v5 both sides call [`FrameDecoder::use_segments`]
//! before they decode another byte.
//!
//! Connections between nodes have the same framing, with their own opcodes. The crate `internode` decodes their bodies
//! ([`FrameDecoder::between_nodes`], [`encode_frame`]).
//!
//! Writing: [`encode_response`], [`encode_request`], or [`begin_response`] with [`RowsHead::begin_rows`] append envelopes to a
//! `Vec<u8>`; in v5, after STARTUP, [`encode_segments`] packs any number of envelopes into segments.
//!
//! | module | what |
//! | --- | --- |
//! | `version`, `opcode`, `consistency`, `header` | small enumerations, and headers of envelopes |
//! | `frame`, `segment`, `compression`, `crc`, `refusal`, `error` | framing: envelopes, v5 segments, body compression, checksums, errors |
//! | `envelope` | writing envelopes |
//! | `notation` | `[string]`, `[bytes]`, `[inet]`: the primitive types in bodies |
//! | `types`, `columns` | type options and column specifications |
//! | `request/*`, `response/*` | one file for each message, both directions side by side |
//!
//! Invariants: no input causes a panic. Memory for a length is allocated only after a check against the bytes that are there, or
//! against `max_frame_bytes`. When you add a message or a field, add it to `tests/protocol/generate.rs`: every property test
//! then covers it.

mod columns;
mod compression;
mod consistency;
mod crc;
mod envelope;
mod error;
mod frame;
mod header;
mod notation;
mod opcode;
mod refusal;
mod request;
mod response;
mod segment;
mod types;
mod version;

pub use columns::ColumnSpec;
pub use compression::Compression;
pub use consistency::Consistency;
pub use envelope::{EnvelopeStart, encode_frame};
pub use error::{Blame, Error, FrameError, Recovery};
pub use frame::{Frame, FrameDecoder, Limits, Role};
pub use header::{Flags, HEADER_BYTES, Header};
pub use notation::CustomPayload;
pub use opcode::Opcode;
pub use request::{
    Batch, BatchKind, BatchStatement, EventKind, Execute, Prepare, Query, QueryParams, Register, Request,
    RequestFrame, Startup, StatementSource, Value, Values, ValuesBuilder, encode_request,
};
pub use response::{
    BindMetadata, ChangeKind, ErrorCode, ErrorDetail, ErrorResponse, Event, FailureReason, Failures,
    MetadataMode, NodeStatus, Prepared, Response, ResponseFrame, ResponseHead, ResultBody, Rows, RowsHead,
    RowsMetadata, SchemaChange, SchemaTarget, Supported, TopologyChange, WriteType, begin_response,
    encode_response,
};
pub use segment::{encode_segments, encode_shared_segments};
pub use types::{decode_type, encode_type};
pub use version::Version;
