//! Headers of envelopes: the nine bytes before each body.
//!
//! ```text
//! header := version: u8 (request 3..5, response | 0x80), flags: u8, stream: i16, opcode: u8, length: i32
//! ```
//!
//! Not here: which versions, opcodes and lengths are accepted (`frame`).

use crate::opcode::Opcode;
use crate::version::Version;

/// Bytes of a header.
pub const HEADER_BYTES: usize = 9;

/// Set in the version byte of responses.
pub(crate) const RESPONSE_BIT: u8 = 0x80;

/// The flags of an envelope; unknown bits are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The body is compressed (v3 and v4).
    pub const COMPRESSED: Self = Self(0x01);
    /// Request: trace it. Response: a trace id comes first.
    pub const TRACING: Self = Self(0x02);
    /// The body starts with a custom payload (v4 and later).
    pub const CUSTOM_PAYLOAD: Self = Self(0x04);
    /// The body starts with warnings (v4 and later, responses).
    pub const WARNINGS: Self = Self(0x08);
    /// The client requests a version that is in development.
    pub(crate) const USE_BETA: Self = Self(0x10);

    /// True if all bits of `other` are set.
    #[inline]
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The bits of both.
    #[inline]
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The bits that are not in `other`.
    #[inline]
    #[must_use]
    pub fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

/// A header without its length, which is set when the body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Version of the envelope.
    pub version: Version,
    /// Its flags.
    pub flags: Flags,
    /// Matches responses to requests; -1 for events.
    pub stream: i16,
    /// The type of the message, which also gives the direction of the envelope.
    pub opcode: Opcode,
}

impl Header {
    /// Appends the header with length zero; [`set_length`] sets it later.
    pub(crate) fn encode(self, out: &mut Vec<u8>) {
        let direction = if self.opcode.is_request() { 0 } else { RESPONSE_BIT };
        let stream = self.stream.to_be_bytes();
        out.extend_from_slice(&[
            self.version.number() | direction,
            self.flags.0,
            stream[0],
            stream[1],
            self.opcode.number(),
            0,
            0,
            0,
            0,
        ]);
    }
}

/// Writes the length of the body into the header at the start of `envelope`.
pub(crate) fn set_length(envelope: &mut [u8], length: u32) {
    envelope[5..HEADER_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// A header as received, not yet checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawHeader {
    pub version_number: u8,
    pub is_response: bool,
    pub flags: Flags,
    pub stream: i16,
    pub opcode_number: u8,
    pub length: i32,
}

impl RawHeader {
    /// Reads the header at the start of `bytes`; `None` if it is not complete.
    #[inline]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let &[first, flags, stream0, stream1, opcode_number, l0, l1, l2, l3] =
            bytes.first_chunk::<HEADER_BYTES>()?;
        Some(Self {
            version_number: first & !RESPONSE_BIT,
            is_response: first & RESPONSE_BIT != 0,
            flags: Flags(flags),
            stream: i16::from_be_bytes([stream0, stream1]),
            opcode_number,
            length: i32::from_be_bytes([l0, l1, l2, l3]),
        })
    }
}
