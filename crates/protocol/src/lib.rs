//! The native protocol v3, v4, v5, both directions. Bytes in, values out: no sockets, no threads, no clock.
//!
//! The way in: bytes from a socket go into a `BytesMut`; [`FrameDecoder::decode`] yields one [`Frame`] at a time;
//! [`RequestFrame::decode`] (server) or [`ResponseFrame::decode`] (client) says what it means. A [`FrameError`] carries
//! what to answer and whether the connection can go on. After the answer to STARTUP in v5 both sides call
//! [`FrameDecoder::use_segments`] before they decode another byte.
//!
//! The way out: [`encode_response`], [`encode_request`], or [`begin_response`] with a [`RowsWriter`] append envelopes to a
//! `Vec<u8>`; in v5, after STARTUP, [`encode_segments`] packs any number of envelopes into segments.
//!
//! | module | what |
//! | --- | --- |
//! | `version`, `opcode`, `consistency`, `header` | the small enumerations and the nine bytes before each body |
//! | `frame`, `segment`, `compression`, `crc`, `refusal` | framing: envelopes, v5 segments, body compression, checksums |
//! | `envelope` | framing on the way out |
//! | `notation` | `[string]`, `[bytes]`, `[inet]`: the words that bodies are made of |
//! | `types`, `columns` | type options and column specifications |
//! | `request/*`, `response/*` | one file for each message, both directions side by side |
//!
//! Invariants: no input panics; nothing is allocated for a length that was not checked against what is there or against
//! `max_frame_bytes`. When you add a message or a field, add it to `tests/protocol/generate.rs`: every law then runs over it.

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
    RowsMetadata, RowsWriter, SchemaChange, SchemaTarget, Supported, TopologyChange, WriteType,
    begin_response, encode_response,
};
pub use segment::{SEGMENT_PAYLOAD_MAX, encode_segments, encode_shared_segments};
pub use types::{decode_type, encode_type};
pub use version::Version;
