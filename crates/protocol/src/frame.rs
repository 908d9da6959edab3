//! Cuts frames out of the bytes of a connection, one at a time, as the bytes arrive.
//!
//! Before the answer to STARTUP, and always in v3 and v4, the stream is a sequence of envelopes. After it, in v5, the stream is a sequence
//! of segments that carry envelopes. Bodies are slices of the read buffer unless they were compressed or came in pieces.
//!
//! Invariant: a length is checked before memory is allocated for it. A refused frame is skipped and reported with
//! `Recovery::Continue` if the next frame can be found. Compat: a frame that is too large is reported when all of it has arrived.

use std::borrow::Cow;

use bytes::{Buf, Bytes, BytesMut};

use crate::compression::Compression;
use crate::envelope::BODY_MAX;
use crate::error::{Blame, FrameError, Recovery};
use crate::header::{Flags, HEADER_BYTES, RawHeader};
use crate::opcode::Opcode;
use crate::refusal::{refuse_assembly, refuse_legacy, refuse_segment};
use crate::segment::take_segment;
use crate::version::Version;

/// An envelope, parsed and decompressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Protocol version of the envelope.
    pub version: Version,
    /// Flags of the envelope, without `COMPRESSED`.
    pub flags: Flags,
    /// Matches responses to requests.
    pub stream: i16,
    /// The type of the message.
    pub opcode: Opcode,
    /// The body, usually a slice of the read buffer.
    pub body: Bytes,
}

/// The side of the connection that decodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Requests come in.
    Server,
    /// Responses come in.
    Client,
}

/// The kind of program at the other end of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// A client, or the server of this client.
    Cql,
    /// Another node.
    Node,
}

/// Limits for a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest body, compressed or not; before v5, the header counts, too. In Cassandra 5 this is
    /// `native_transport_max_frame_size` (16 MiB), and `native_transport_max_message_size` in v5.
    pub max_frame_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_frame_bytes: 16 << 20,
        }
    }
}

/// While a large envelope arrives, the buffer is extended by as many bytes as have arrived, but at most by this number.
const RESERVE_MAX: usize = 256 << 10;
/// The buffer is extended by at least this number of bytes, if the envelope has as many left.
const RESERVE_MIN: usize = 16 << 10;

/// Turns the bytes of a connection into frames.
#[derive(Debug)]
pub struct FrameDecoder {
    role: Role,
    peer: Peer,
    limits: Limits,
    /// The only accepted version, set by [`Self::fix_version`]; `None` accepts all supported ones.
    version: Option<Version>,
    /// Set by [`Self::set_oldest`]; older versions are refused.
    oldest: Version,
    compression: Option<Compression>,
    framing: Framing,
    assembly: Assembly,
    /// Bytes of a refused envelope that have not arrived yet.
    skip: u64,
    /// The error to report when these bytes have arrived.
    deferred: Option<FrameError>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    Envelopes,
    Segments,
}

/// Payload of segments that is not decoded yet.
#[derive(Debug, Default)]
struct Assembly {
    /// Whole envelopes of the last self-contained segment.
    whole: Bytes,
    /// Pieces of an envelope that is too large for one segment.
    pieces: BytesMut,
}

impl FrameDecoder {
    /// A decoder for uncompressed envelopes of any supported version.
    pub fn new(role: Role, limits: Limits) -> Self {
        Self {
            role,
            peer: Peer::Cql,
            limits,
            version: None,
            oldest: Version::SUPPORTED[0],
            compression: None,
            framing: Framing::Envelopes,
            assembly: Assembly::default(),
            skip: 0,
            deferred: None,
        }
    }

    /// A decoder for a connection between nodes: v5, and only the opcodes of nodes. [`Role::Server`] is the side that was connected to.
    pub fn between_nodes(role: Role, limits: Limits) -> Self {
        Self {
            peer: Peer::Node,
            version: Some(Version::V5),
            ..Self::new(role, limits)
        }
    }

    /// Accepts only this version from now on (after STARTUP).
    pub fn fix_version(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// Accepts only this version and newer ones from now on.
    pub fn set_oldest(&mut self, oldest: Version) {
        self.oldest = oldest;
    }

    /// Accepts bodies with this compression from now on (v3 and v4, after STARTUP).
    pub fn use_compression(&mut self, compression: Option<Compression>) {
        self.compression = compression;
    }

    /// Expects segments from now on (v5, after the answer to STARTUP). Call it before the next byte is decoded.
    pub fn use_segments(&mut self, compression: Option<Compression>) {
        self.compression = compression;
        self.version = Some(Version::V5);
        self.framing = Framing::Segments;
    }

    /// Changes the limits (they differ before and after STARTUP).
    pub fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Bytes in the decoder's own memory, without the buffer.
    pub fn held_bytes(&self) -> usize {
        self.assembly.whole.len() + self.assembly.pieces.capacity()
    }

    /// True while the rest of a refused envelope is skipped.
    pub fn is_skipping(&self) -> bool {
        self.skip > 0
    }

    /// Bytes of an incomplete envelope that have arrived. Requires: `decode` has returned `None`.
    pub fn partial_bytes(&self, buffer: &BytesMut) -> usize {
        match self.skip {
            0 => buffer.len() + self.assembly.pieces.len(),
            _ => 0,
        }
    }

    /// Drops the incomplete envelope, and skips the rest of it. Returns version and stream for the answer. If they are not known yet,
    /// drops nothing and returns `None`.
    pub fn give_up(&mut self, buffer: &mut BytesMut) -> Option<(Version, i16)> {
        let is_known = |header: &RawHeader| Version::from_number(header.version_number);
        if self.skip > 0 {
            return None;
        }
        match self.framing {
            Framing::Envelopes => {
                let header = RawHeader::decode(buffer)?;
                let version = is_known(&header)?;
                self.skip = envelope_len(&header);
                self.skip_in(buffer);
                Some((version, header.stream))
            }
            Framing::Segments => {
                let header = RawHeader::decode(&self.assembly.pieces)?;
                let version = is_known(&header)?;
                let have = std::mem::take(&mut self.assembly.pieces).len() as u64;
                self.skip = envelope_len(&header).saturating_sub(have);
                Some((version, header.stream))
            }
        }
    }

    /// Takes the next frame off `buffer`. Returns `None` if more bytes are needed; the buffer then has room for some of them.
    ///
    /// # Errors
    /// If the frame is refused. The error has the answer, and how the connection continues.
    pub fn decode(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        match self.framing {
            Framing::Envelopes => self.decode_envelope(buffer),
            Framing::Segments => self.decode_segments(buffer),
        }
    }

    fn decode_envelope(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        self.skip_in(buffer);
        if self.skip > 0 {
            return Ok(None);
        }
        self.report_deferred()?;
        refuse_legacy(buffer)?;
        let Some(header) = RawHeader::decode(buffer) else {
            return Ok(None);
        };
        let accepted = match self.judge(&header) {
            Ok(accepted) => accepted,
            Err(error) => {
                self.skip = skippable(&header, &error);
                self.skip_in(buffer);
                self.defer_or_refuse(error)?;
                return Ok(None);
            }
        };
        let total = accepted.total;
        if buffer.len() < total {
            let ahead = buffer.len().clamp(RESERVE_MIN, RESERVE_MAX);
            buffer.reserve((total - buffer.len()).min(ahead));
            return Ok(None);
        }
        let envelope = buffer.split_to(total).freeze();
        self.frame(accepted, envelope).map(Some)
    }

    /// Defers the error about a frame that is too large until all of it has arrived. Until then the client still uses its stream id.
    fn defer_or_refuse(&mut self, error: FrameError) -> Result<(), FrameError> {
        if self.skip > 0 && error.blame == Blame::Invalid {
            self.deferred = Some(error);
            return Ok(());
        }
        Err(error)
    }

    /// Reports the deferred error. Requires: all of the refused envelope has arrived.
    fn report_deferred(&mut self) -> Result<(), FrameError> {
        self.deferred.take().map_or(Ok(()), Err)
    }

    /// Drops bytes of a refused envelope.
    fn skip_in(&mut self, buffer: &mut impl Buf) {
        let here = usize::try_from(self.skip)
            .unwrap_or(usize::MAX)
            .min(buffer.remaining());
        buffer.advance(here);
        self.skip -= here as u64;
    }

    fn decode_segments(&mut self, buffer: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        loop {
            if !self.assembly.whole.is_empty() {
                return self.next_whole().map(Some);
            }
            let Some(segment) = take_segment(buffer, self.compression).map_err(refuse_segment)? else {
                return Ok(None);
            };
            if !segment.is_self_contained {
                if let Some(frame) = self.add_piece(&segment.payload)? {
                    return Ok(Some(frame));
                }
            } else if self.assembly.pieces.is_empty() && self.skip == 0 {
                self.assembly.whole = segment.payload;
            } else {
                return Err(refuse_assembly(
                    "a large envelope is not complete, but another one begins",
                ));
            }
        }
    }

    /// Decodes the next envelope of a self-contained segment.
    fn next_whole(&mut self) -> Result<Frame, FrameError> {
        let whole = std::mem::take(&mut self.assembly.whole);
        let Some(header) = RawHeader::decode(&whole) else {
            return Err(refuse_assembly(
                "a self-contained segment ends within an envelope",
            ));
        };
        let announced = envelope_len(&header);
        if announced > whole.len() as u64 {
            return Err(refuse_assembly(
                "a self-contained segment ends within an envelope",
            ));
        }
        let mut rest = whole;
        // The conversion succeeds: the envelope is not longer than the segment.
        let envelope = rest.split_to(usize::try_from(announced).unwrap_or(usize::MAX));
        let accepted = self.judge(&header);
        if !matches!(&accepted, Err(error) if error.recovery != Recovery::Continue) {
            self.assembly.whole = rest;
        }
        self.frame(accepted?, envelope)
    }

    /// Adds a piece of an envelope that is too large for one segment. Returns the frame when it is complete.
    fn add_piece(&mut self, piece: &[u8]) -> Result<Option<Frame>, FrameError> {
        if self.skip > 0 {
            let mut piece = piece;
            self.skip_in(&mut piece);
            return if piece.is_empty() {
                if self.skip == 0 {
                    self.report_deferred()?;
                }
                Ok(None)
            } else {
                Err(refuse_assembly(
                    "the pieces of a large envelope exceed its length",
                ))
            };
        }
        self.assembly.pieces.extend_from_slice(piece);
        let Some(header) = RawHeader::decode(&self.assembly.pieces) else {
            return Ok(None);
        };
        let have = self.assembly.pieces.len() as u64;
        match self.judge(&header) {
            Err(error) => {
                self.assembly.pieces = BytesMut::new();
                self.skip = skippable(&header, &error).saturating_sub(have);
                self.defer_or_refuse(error)?;
                Ok(None)
            }
            Ok(accepted) if have < accepted.total as u64 => Ok(None),
            Ok(accepted) if have == accepted.total as u64 => {
                let envelope = std::mem::take(&mut self.assembly.pieces).freeze();
                self.frame(accepted, envelope).map(Some)
            }
            Ok(_) => Err(refuse_assembly(
                "the pieces of a large envelope exceed its length",
            )),
        }
    }

    /// Decides by the header alone whether an envelope is accepted.
    fn judge(&self, header: &RawHeader) -> Result<Accepted, FrameError> {
        let refuse = |message: Cow<'static, str>| FrameError {
            version: self.version.unwrap_or(Version::NEWEST),
            stream: header.stream,
            message,
            blame: Blame::Protocol,
            recovery: if announced_body(header) <= BODY_MAX as u64 {
                Recovery::Continue
            } else {
                Recovery::AnswerAndClose
            },
            legacy_version: None,
        };
        let version =
            Version::from_number(header.version_number).ok_or_else(|| refuse(unsupported(header).into()))?;
        if version < self.oldest {
            // Compat: the words of `ProtocolVersion.decode`; the connection stays open.
            return Err(refuse(
                format!("Rejecting Protocol Version {version} < {}.", self.oldest).into(),
            ));
        }
        if let Some(fixed) = self.version.filter(|&fixed| fixed != version) {
            return Err(refuse(
                format!(
                    "Invalid message version. Got {version} but previous messages on this connection had version {fixed}"
                )
                .into(),
            ));
        }
        let refuse = |message: Cow<'static, str>| FrameError {
            version,
            ..refuse(message)
        };
        let opcode = self.opcode(header).map_err(refuse)?;
        let wants_response = self.role == Role::Client;
        if header.is_response != wants_response || opcode.is_request() == wants_response {
            return Err(refuse(
                format!("Wrong protocol direction for opcode {opcode}").into(),
            ));
        }
        let Ok(length) = u32::try_from(header.length) else {
            return Err(refuse(
                format!("Invalid length of a body: {}", header.length).into(),
            ));
        };
        if let Some(message) = self.too_large(length) {
            return Err(FrameError {
                blame: Blame::Invalid,
                recovery: Recovery::Continue,
                ..refuse(message.into())
            });
        }
        Ok(Accepted {
            version,
            flags: header.flags,
            stream: header.stream,
            opcode,
            // The conversion is lossless: the length is within the limit.
            total: HEADER_BYTES + length as usize,
        })
    }

    fn opcode(&self, header: &RawHeader) -> Result<Opcode, Cow<'static, str>> {
        let of_peer = |opcode: &Opcode| opcode.is_between_nodes() == (self.peer == Peer::Node);
        let known = Opcode::from_number(header.opcode_number).filter(of_peer);
        known.ok_or_else(|| match self.peer {
            Peer::Cql => format!("Unknown opcode {}", header.opcode_number).into(),
            Peer::Node => "This port is for other nodes of the cluster (storage_port). Clients connect to native_transport_port".into(),
        })
    }

    /// The message about a body that is too large. Compat: `Envelope.Decoder` counts the header, `CQLMessageHandler` of v5 does not.
    fn too_large(&self, length: u32) -> Option<String> {
        let max = self.limits.max_frame_bytes;
        match self.framing {
            Framing::Envelopes => {
                let length = u64::from(length) + HEADER_BYTES as u64;
                (length > u64::from(max)).then(|| {
                    format!("Request is too big: length {length} exceeds maximum allowed length {max}.")
                })
            }
            Framing::Segments => (length > max).then(|| {
                format!("CQL Message of size {length} bytes exceeds allowed maximum of {max} bytes")
            }),
        }
    }

    fn frame(&self, accepted: Accepted, mut envelope: Bytes) -> Result<Frame, FrameError> {
        envelope.advance(HEADER_BYTES);
        let is_compressed = accepted.flags.contains(Flags::COMPRESSED) && accepted.version < Version::V5;
        let body = if is_compressed {
            self.decompress(&envelope).map_err(|message| FrameError {
                version: accepted.version,
                stream: accepted.stream,
                message,
                blame: Blame::Protocol,
                recovery: Recovery::Continue,
                legacy_version: None,
            })?
        } else {
            envelope
        };
        Ok(Frame {
            version: accepted.version,
            flags: accepted.flags.without(Flags::COMPRESSED),
            stream: accepted.stream,
            opcode: accepted.opcode,
            body,
        })
    }

    fn decompress(&self, body: &[u8]) -> Result<Bytes, Cow<'static, str>> {
        let compression = self
            .compression
            .ok_or("Received a compressed message, but STARTUP agreed on no compression")?;
        let body = compression
            .decompress_body(body, self.limits.max_frame_bytes as usize)
            .map_err(|error| error.to_string())?;
        Ok(Bytes::from(body))
    }
}

/// An accepted header.
struct Accepted {
    version: Version,
    flags: Flags,
    stream: i16,
    opcode: Opcode,
    /// Bytes of header and body.
    total: usize,
}

/// The message about a version that Ilion does not support.
fn unsupported(header: &RawHeader) -> String {
    match header.flags.contains(Flags::USE_BETA) {
        true => Version::unsupported_beta_message(header.version_number),
        false => Version::unsupported_message(header.version_number),
    }
}

/// The length of the body. A negative length becomes one that exceeds every limit.
fn announced_body(header: &RawHeader) -> u64 {
    u64::try_from(header.length).unwrap_or(u64::MAX - HEADER_BYTES as u64)
}

/// The length of header and body.
fn envelope_len(header: &RawHeader) -> u64 {
    announced_body(header) + HEADER_BYTES as u64
}

/// Bytes to drop after an error: the whole envelope if the connection goes on.
fn skippable(header: &RawHeader, error: &FrameError) -> u64 {
    match error.recovery {
        Recovery::Continue => envelope_len(header),
        Recovery::AnswerAndClose | Recovery::Close => 0,
    }
}
