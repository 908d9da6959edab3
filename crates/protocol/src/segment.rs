//! Segments, which carry envelopes in v5 after the answer to STARTUP. Little-endian, unlike everything else.
//!
//! ```text
//! segment := header, crc24(header): 3 bytes, payload, crc32(payload as sent): u32
//! header, plain := length: 17 bits, self_contained: 1 bit, padded to 3 bytes
//! header, lz4   := compressed length: 17 bits, length: 17 bits (0: not compressed), self_contained: 1 bit, to 5 bytes
//! ```
//!
//! A self-contained segment holds whole envelopes. Any other segment holds a piece of one envelope that is too large for a segment.
//! Not here: joining the pieces (`frame`).

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use ilion_codec::{Piece, Rope, crc32_extend};

use crate::compression::{Compression, decompress_lz4};
use crate::crc::{crc24, payload_crc32};
use crate::header::{HEADER_BYTES, RawHeader};

/// Largest payload of a segment.
const SEGMENT_PAYLOAD_MAX: usize = (1 << 17) - 1;

const CRC24_BYTES: usize = 3;
const CRC32_BYTES: usize = 4;
/// Smaller payloads are not compressed.
const COMPRESSED_MIN_BYTES: usize = 128;

/// A checked and decompressed segment.
#[derive(Debug)]
pub struct Segment {
    pub is_self_contained: bool,
    pub payload: Bytes,
}

/// Why a segment cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// Its header is damaged: even its length is unknown.
    Header,
    /// Its payload is damaged.
    Payload { computed: u32, stored: u32 },
    /// Its payload does not decompress.
    Compression(String),
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct SegmentHeader {
    /// Bytes of payload as sent.
    length: usize,
    /// Bytes of payload when decompressed; 0 if it is not compressed.
    uncompressed_length: usize,
    is_self_contained: bool,
}

/// Bytes of header and its CRC.
fn header_bytes(compression: Option<Compression>) -> usize {
    match compression {
        None => 3 + CRC24_BYTES,
        Some(_) => 5 + CRC24_BYTES,
    }
}

impl SegmentHeader {
    fn encode(self, out: &mut Vec<u8>, compression: Option<Compression>) {
        let length = self.length as u64;
        let self_contained = u64::from(self.is_self_contained);
        let word = match compression {
            None => length | self_contained << 17,
            Some(_) => length | (self.uncompressed_length as u64) << 17 | self_contained << 34,
        };
        let header = &word.to_le_bytes()[..header_bytes(compression) - CRC24_BYTES];
        out.extend_from_slice(header);
        out.extend_from_slice(&crc24(header).to_le_bytes()[..CRC24_BYTES]);
    }

    /// `bytes` is exactly the header and its CRC.
    fn decode(bytes: &[u8], compression: Option<Compression>) -> Result<Self, SegmentError> {
        let (header, stored_crc) = bytes.split_at(bytes.len() - CRC24_BYTES);
        if little_endian(stored_crc) != u64::from(crc24(header)) {
            return Err(SegmentError::Header);
        }
        let word = little_endian(header);
        let seventeen_bits = |shift: u32| (word >> shift) as usize & SEGMENT_PAYLOAD_MAX;
        Ok(match compression {
            None => Self {
                length: seventeen_bits(0),
                uncompressed_length: 0,
                is_self_contained: word >> 17 & 1 != 0,
            },
            Some(_) => Self {
                length: seventeen_bits(0),
                uncompressed_length: seventeen_bits(17),
                is_self_contained: word >> 34 & 1 != 0,
            },
        })
    }
}

/// Up to eight bytes as a number.
fn little_endian(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .rev()
        .fold(0, |word, &byte| word << 8 | u64::from(byte))
}

/// Takes the next segment off `buffer`; `None` if it is incomplete.
pub(crate) fn take_segment(
    buffer: &mut BytesMut,
    compression: Option<Compression>,
) -> Result<Option<Segment>, SegmentError> {
    let header_len = header_bytes(compression);
    let Some(header) = buffer.get(..header_len) else {
        return Ok(None);
    };
    let header = SegmentHeader::decode(header, compression)?;
    let total = header_len + header.length + CRC32_BYTES;
    if buffer.len() < total {
        // At most one segment, 128 KiB, whatever the header says.
        buffer.reserve(total - buffer.len());
        return Ok(None);
    }
    let mut segment = buffer.split_to(total).freeze();
    segment.advance(header_len);
    let payload = segment.split_to(header.length);
    let stored = segment.get_u32_le();
    let computed = payload_crc32(&payload);
    if computed != stored {
        return Err(SegmentError::Payload { computed, stored });
    }
    Ok(Some(Segment {
        is_self_contained: header.is_self_contained,
        payload: decompress(payload, header.uncompressed_length)?,
    }))
}

fn decompress(payload: Bytes, uncompressed_length: usize) -> Result<Bytes, SegmentError> {
    if uncompressed_length == 0 {
        return Ok(payload);
    }
    decompress_lz4(&payload, uncompressed_length, SEGMENT_PAYLOAD_MAX)
        .map(Bytes::from)
        .map_err(|error| SegmentError::Compression(error.to_string()))
}

/// Appends whole v5 envelopes to `out` as segments: small ones together, large ones in pieces. `compression` is that of STARTUP.
///
/// # Panics
/// If the last envelope is incomplete.
pub fn encode_segments(envelopes: &[u8], compression: Option<Compression>, out: &mut Vec<u8>) {
    let mut rest = envelopes;
    while !rest.is_empty() {
        let group = group_len(rest);
        let (payload, tail) = if group > 0 {
            let (payload, tail) = rest.split_at(group);
            encode_segment(payload, true, compression, out);
            (payload, tail)
        } else {
            let (envelope, tail) = rest.split_at(envelope_len(rest));
            for piece in envelope.chunks(SEGMENT_PAYLOAD_MAX) {
                encode_segment(piece, false, compression, out);
            }
            (envelope, tail)
        };
        debug_assert!(!payload.is_empty(), "each turn sends something");
        rest = tail;
    }
}

/// Length of as many whole envelopes as fit into one segment; 0 if the first one does not fit.
fn group_len(bytes: &[u8]) -> usize {
    let mut group = 0;
    while group < bytes.len() {
        let next = group + envelope_len(&bytes[group..]);
        if next > SEGMENT_PAYLOAD_MAX {
            break;
        }
        group = next;
    }
    group
}

/// Length of the first envelope.
#[expect(clippy::expect_used, reason = "our own encoder wrote the envelope")]
fn envelope_len(bytes: &[u8]) -> usize {
    let header = RawHeader::decode(bytes).expect("a whole envelope");
    let length = usize::try_from(header.length).expect("finished envelopes have a length");
    let total = HEADER_BYTES + length;
    assert!(total <= bytes.len(), "a whole envelope");
    total
}

fn encode_segment(
    payload: &[u8],
    is_self_contained: bool,
    compression: Option<Compression>,
    out: &mut Vec<u8>,
) {
    let compressed = compressed(payload, compression);
    let (sent, uncompressed_length) = match &compressed {
        Some(compressed) => (compressed.as_slice(), payload.len()),
        None => (payload, 0),
    };
    let header = SegmentHeader {
        length: sent.len(),
        uncompressed_length,
        is_self_contained,
    };
    out.reserve(header_bytes(compression) + sent.len() + CRC32_BYTES);
    header.encode(out, compression);
    out.extend_from_slice(sent);
    out.extend_from_slice(&payload_crc32(sent).to_le_bytes());
}

/// The compressed payload; `None` without compression, or if the compressed payload is not smaller.
fn compressed(payload: &[u8], compression: Option<Compression>) -> Option<Vec<u8>> {
    if compression.is_none() || payload.len() < COMPRESSED_MIN_BYTES {
        return None;
    }
    Some(lz4_flex::block::compress(payload)).filter(|compressed| compressed.len() < payload.len())
}

/// Appends one v5 envelope as segments. Shared parts of the envelope are copied only if they are compressed.
pub fn encode_shared_segments(envelope: &Rope, compression: Option<Compression>, out: &mut Rope) {
    let is_self_contained = envelope.len() <= SEGMENT_PAYLOAD_MAX;
    let mut left = envelope.len();
    // Free payload of the current segment.
    let mut missing = 0;
    let mut cut = Vec::new();
    for piece in envelope.pieces() {
        let mut at = 0;
        while at < piece.bytes().len() {
            if cut.is_empty() {
                missing = left.min(SEGMENT_PAYLOAD_MAX);
            }
            let end = piece.bytes().len().min(at + missing);
            cut.push((piece, at..end));
            (missing, left) = (missing - (end - at), left - (end - at));
            at = end;
            if missing == 0 {
                encode_cut(&cut, is_self_contained, compression, out);
                cut.clear();
            }
        }
    }
}

/// Appends a segment whose payload consists of several slices.
fn encode_cut(
    cut: &[(Piece<'_>, Range<usize>)],
    is_self_contained: bool,
    compression: Option<Compression>,
    out: &mut Rope,
) {
    let parts = || cut.iter().map(|(piece, range)| &piece.bytes()[range.clone()]);
    let length = parts().map(<[u8]>::len).sum();
    let compressed = match (compression, cut) {
        (None, _) => None,
        (_, [(piece, range)]) => compressed(&piece.bytes()[range.clone()], compression),
        // Copies at most one segment, 128 KiB.
        _ => compressed(&parts().flatten().copied().collect::<Vec<u8>>(), compression),
    };
    let header = SegmentHeader {
        length: compressed.as_ref().map_or(length, Vec::len),
        uncompressed_length: if compressed.is_some() { length } else { 0 },
        is_self_contained,
    };
    header.encode(out.end(), compression);
    let crc = match compressed {
        Some(compressed) => {
            out.end().extend_from_slice(&compressed);
            payload_crc32(&compressed)
        }
        None => {
            cut.iter()
                .for_each(|(piece, range)| piece.append_to(range.clone(), out));
            parts().fold(payload_crc32(&[]), crc32_extend)
        }
    };
    out.end().extend_from_slice(&crc.to_le_bytes());
}
