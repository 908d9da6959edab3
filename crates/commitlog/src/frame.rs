//! The bytes of a segment.
//!
//! ```text
//! segment := header, record*, (seal | zeros)
//! header  := magic: u32 "ILCL", version: u16, before: u16, segment: u64, log_id: [u8; 16],
//!            segment_bytes: u32, created: i64 (micros), crc: u32                               48 bytes
//! record  := length: u32, synced: u32, head_crc: u32, payload: [u8; length], payload_crc: u32
//! seal    := length: u32 = 0xffff_ffff, synced: u32, head_crc: u32                   (big-endian)
//! ```
//! `synced` is the offset up to which this segment was known to be synced when the record was appended, or 0
//! if some earlier segment was not yet wholly synced. It distinguishes a torn tail from corruption: bad bytes
//! are a torn tail if no record behind them has a `synced` beyond them.
//! `head_crc` covers segment, offset, length and synced, so a record is valid in its own place only.
//! A segment is sealed when the log goes on in the next one, and when the log is closed.
//! `before` is a checksum of the number of the segment before this one, 0 if there was none. It shows whether a segment is missing;
//! the numbers do not, since a new process leaves a gap.
//! Invariant: a record never crosses a segment. The length of a record is never 0, so zeros are no record.

use crc32fast::Hasher;
use uuid::Uuid;

use crate::envelope::part;
use crate::{ENVELOPE_BYTES, Envelope, Kind, SegmentId};

pub(crate) const HEADER_BYTES: usize = 48;
pub(crate) const HEAD_BYTES: usize = 12;
pub(crate) const SEAL_BYTES: usize = HEAD_BYTES;
/// Bytes that framing adds to a payload.
pub(crate) const RECORD_OVERHEAD_BYTES: usize = HEAD_BYTES + 4;
/// The size of the smallest record.
pub(crate) const FILLER_BYTES_MIN: u32 = (RECORD_OVERHEAD_BYTES + ENVELOPE_BYTES) as u32;

const MAGIC: [u8; 4] = *b"ILCL";
const VERSION: u16 = 1;
const SEAL_LENGTH: u32 = u32::MAX;

/// The first bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub segment: SegmentId,
    pub log_id: Uuid,
    pub segment_bytes: u32,
    pub created_micros: i64,
    /// [`before_tag`] of the previous segment; 0 if there was none, or if it is not known.
    pub before: u16,
}

/// A short checksum of a segment's number. Never 0.
pub(crate) fn before_tag(before: Option<SegmentId>) -> u16 {
    before.map_or(0, |id| {
        let [.., high, low] = crc32fast::hash(&id.0.to_be_bytes()).to_be_bytes();
        u16::from_be_bytes([high, low]).max(1)
    })
}

impl Header {
    pub(crate) fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_be_bytes());
        bytes[6..8].copy_from_slice(&self.before.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.segment.0.to_be_bytes());
        bytes[16..32].copy_from_slice(self.log_id.as_bytes());
        bytes[32..36].copy_from_slice(&self.segment_bytes.to_be_bytes());
        bytes[36..44].copy_from_slice(&self.created_micros.to_be_bytes());
        let crc = crc32fast::hash(&bytes[..44]);
        bytes[44..48].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    /// Reads the header of a segment; the error names what was expected.
    pub(crate) fn decode(file: &[u8], segment: SegmentId) -> Result<Self, &'static str> {
        let bytes = file
            .first_chunk::<HEADER_BYTES>()
            .ok_or("a segment header of 48 bytes")?;
        if crc32fast::hash(&bytes[..44]) != u32::from_be_bytes(part(bytes, 44)) || bytes[..4] != MAGIC {
            return Err("a segment header whose checksum holds");
        }
        if u16::from_be_bytes(part(bytes, 4)) != VERSION {
            return Err("a segment of version 1 (a newer Ilion wrote this)");
        }
        if u64::from_be_bytes(part(bytes, 8)) != segment.0 {
            return Err("the segment number that the file's name has");
        }
        Ok(Self {
            segment,
            log_id: Uuid::from_bytes(part(bytes, 16)),
            segment_bytes: u32::from_be_bytes(part(bytes, 32)),
            created_micros: i64::from_be_bytes(part(bytes, 36)),
            before: u16::from_be_bytes(part(bytes, 6)),
        })
    }
}

/// The twelve bytes before a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    length: u32,
    pub synced: u32,
}

impl Head {
    pub(crate) fn record(length: u32, synced: u32) -> Self {
        debug_assert!(length as usize >= ENVELOPE_BYTES && length < SEAL_LENGTH);
        Self { length, synced }
    }

    pub(crate) fn seal(synced: u32) -> Self {
        Self {
            length: SEAL_LENGTH,
            synced,
        }
    }

    pub(crate) fn is_seal(self) -> bool {
        self.length == SEAL_LENGTH
    }

    /// The bytes of the whole record, or of the seal.
    pub(crate) fn record_bytes(self) -> usize {
        if self.is_seal() {
            SEAL_BYTES
        } else {
            self.length as usize + RECORD_OVERHEAD_BYTES
        }
    }

    /// Returns the payload and checks it; `after` has the bytes behind this head. The error names what was expected.
    pub(crate) fn payload(self, after: &[u8]) -> Result<&[u8], &'static str> {
        let ends_within = "a record that ends within its segment";
        let (payload, rest) = after.split_at_checked(self.length as usize).ok_or(ends_within)?;
        let crc = rest.first_chunk().ok_or(ends_within)?;
        if crc32fast::hash(payload) == u32::from_be_bytes(*crc) {
            Ok(payload)
        } else {
            Err("a payload that has the checksum that follows it")
        }
    }

    pub(crate) fn encode(self, segment: SegmentId, offset: u32) -> [u8; HEAD_BYTES] {
        let mut bytes = [0; HEAD_BYTES];
        bytes[0..4].copy_from_slice(&self.length.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.synced.to_be_bytes());
        let crc = head_crc(&bytes, segment, offset);
        bytes[8..12].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8; HEAD_BYTES], segment: SegmentId, offset: u32) -> Option<Self> {
        let head = Self {
            length: u32::from_be_bytes(part(bytes, 0)),
            synced: u32::from_be_bytes(part(bytes, 4)),
        };
        let crc_holds = head_crc(bytes, segment, offset) == u32::from_be_bytes(part(bytes, 8));
        (crc_holds && head.length as usize >= ENVELOPE_BYTES).then_some(head)
    }
}

fn head_crc(bytes: &[u8; HEAD_BYTES], segment: SegmentId, offset: u32) -> u32 {
    let mut covered = [0; 20];
    covered[0..8].copy_from_slice(&segment.0.to_be_bytes());
    covered[8..12].copy_from_slice(&offset.to_be_bytes());
    covered[12..20].copy_from_slice(&bytes[..8]);
    crc32fast::hash(&covered)
}

/// The checksum of a payload given in two parts.
pub(crate) fn payload_crc(head: &[u8], body: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(head);
    hasher.update(body);
    hasher.finalize()
}

/// What stands at an offset of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    Record {
        payload: &'a [u8],
        next: u32,
    },
    Seal,
    /// Only zeros follow, or the file ends.
    End,
    Bad {
        expected: &'static str,
        /// Where the next record may begin: behind this record if its head is valid.
        next: u32,
    },
}

/// Reads what stands at an offset, whatever the bytes are.
pub(crate) fn step(file: &[u8], segment: SegmentId, offset: u32) -> Step<'_> {
    let rest = file.get(offset as usize..).unwrap_or_default();
    let next = offset.saturating_add(1);
    let Some((head_bytes, after)) = rest.split_first_chunk::<HEAD_BYTES>() else {
        let expected = "a record or the end";
        return zeros_or_bad(rest, Step::Bad { expected, next });
    };
    if head_bytes == &[0; HEAD_BYTES] {
        let expected = "a record";
        return zeros_or_bad(after, Step::Bad { expected, next });
    }
    let Some(head) = Head::decode(head_bytes, segment, offset) else {
        let expected = "a record whose length has the checksum that follows it";
        return Step::Bad { expected, next };
    };
    if head.is_seal() {
        return Step::Seal;
    }
    let next = behind(offset, head);
    match head.payload(after) {
        Ok(payload) if next < u32::MAX => Step::Record { payload, next },
        Ok(_) => {
            let expected = "a segment below 4 GiB";
            Step::Bad { expected, next }
        }
        Err(expected) => Step::Bad { expected, next },
    }
}

/// Where a record ends.
fn behind(offset: u32, head: Head) -> u32 {
    u32::try_from(offset as usize + head.record_bytes()).unwrap_or(u32::MAX)
}

fn zeros_or_bad<'a>(rest: &[u8], bad: Step<'a>) -> Step<'a> {
    match first_nonzero(rest) {
        None => Step::End,
        Some(_) => bad,
    }
}

/// The records and seals with a valid head, from `from` on; their payloads may be damaged. Payloads are not searched, since a
/// client may have written bytes that look like a head.
pub(crate) fn heads(file: &[u8], segment: SegmentId, from: u32) -> impl Iterator<Item = (u32, Head)> {
    let mut from = from;
    std::iter::from_fn(move || {
        let (offset, head) = next_head(file, segment, from)?;
        from = behind(offset, head);
        Some((offset, head))
    })
}

/// The first place from `from` on with a valid head of a record or seal.
pub(crate) fn next_head(file: &[u8], segment: SegmentId, from: u32) -> Option<(u32, Head)> {
    let mut at = from as usize;
    loop {
        let rest = file.get(at..)?;
        // Most of the scanned bytes are zeros. The first four bytes of a head are not all zero.
        at += first_nonzero(rest)?.saturating_sub(3);
        let window = file.get(at..)?.first_chunk()?;
        let offset = u32::try_from(at).ok()?;
        if let Some(head) = Head::decode(window, segment, offset) {
            return Some((offset, head));
        }
        at += 1;
    }
}

/// A record of kind [`Kind::Noop`] with that many bytes. It replaces bytes that cannot be read, and records that are given up.
pub(crate) fn filler(segment: SegmentId, offset: u32, size_bytes: u32) -> Vec<u8> {
    debug_assert!(size_bytes >= FILLER_BYTES_MIN);
    let length = size_bytes - RECORD_OVERHEAD_BYTES as u32;
    let mut bytes = Vec::with_capacity(size_bytes as usize);
    bytes.extend_from_slice(&Head::record(length, 0).encode(segment, offset));
    let envelope = Envelope {
        kind: Kind::Noop,
        ..Envelope::mutation(&[])
    };
    bytes.extend_from_slice(&envelope.encode_head());
    bytes.resize(size_bytes as usize - 4, 0);
    let crc = crc32fast::hash(&bytes[HEAD_BYTES..]);
    bytes.extend_from_slice(&crc.to_be_bytes());
    bytes
}

/// The length without the zeros at the end.
pub(crate) fn len_without_zeros(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .rposition(|byte| *byte != 0)
        .map_or(0, |last| last + 1)
}

/// The index of the first byte that is not zero. Compares whole blocks, which is fast also without optimization.
fn first_nonzero(bytes: &[u8]) -> Option<usize> {
    const BLOCK: usize = 256;
    let block = bytes
        .chunks(BLOCK)
        .position(|block| block != &[0; BLOCK][..block.len()])?;
    let start = block * BLOCK;
    let within = bytes[start..].iter().position(|byte| *byte != 0)?;
    Some(start + within)
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::{HEADER_BYTES, Head, Header, Step, heads, next_head, payload_crc, step};
    use crate::{Envelope, SegmentId};

    const SEGMENT: SegmentId = SegmentId(7);

    fn record(offset: u32, body: &[u8]) -> Vec<u8> {
        let head = Envelope::mutation(body).encode_head();
        let length = u32::try_from(head.len() + body.len()).unwrap();
        let crc = payload_crc(&head, body).to_be_bytes();
        [
            &Head::record(length, 0).encode(SEGMENT, offset)[..],
            &head,
            body,
            &crc,
        ]
        .concat()
    }

    #[test]
    fn a_header_is_read_back_and_belongs_to_its_file() {
        let header = Header {
            segment: SEGMENT,
            log_id: Uuid::max(),
            segment_bytes: 4096,
            created_micros: 5,
            before: 6,
        };
        let mut bytes = header.encode();
        assert_eq!(Header::decode(&bytes, SEGMENT), Ok(header));
        assert!(Header::decode(&bytes, SegmentId(8)).is_err());
        assert!(Header::decode(&bytes[..47], SEGMENT).is_err());
        bytes[20] ^= 1;
        assert!(Header::decode(&bytes, SEGMENT).is_err());
    }

    #[test]
    fn records_are_stepped_through_to_the_seal() {
        let mut file = vec![0; HEADER_BYTES];
        file.extend(record(48, b"one"));
        let seal_at = u32::try_from(file.len()).unwrap();
        file.extend(Head::seal(0).encode(SEGMENT, seal_at));
        file.extend(b"whatever");
        let Step::Record { payload, next } = step(&file, SEGMENT, 48) else {
            panic!("no record")
        };
        assert_eq!(Envelope::decode(payload).unwrap().body, b"one");
        assert_eq!((next, step(&file, SEGMENT, next)), (seal_at, Step::Seal));
    }

    #[test]
    fn a_record_in_another_place_or_segment_is_none() {
        let file = record(0, b"one");
        assert!(matches!(step(&file, SEGMENT, 0), Step::Record { .. }));
        assert!(matches!(step(&file, SegmentId(8), 0), Step::Bad { .. }));
        let moved = [&[0; 16][..], &file].concat();
        assert!(matches!(step(&moved, SEGMENT, 16), Step::Bad { .. }));
        assert_eq!(next_head(&moved, SEGMENT, 0), None);
        let in_place = [vec![1; 60], record(60, b"one")].concat();
        assert_eq!(next_head(&in_place, SEGMENT, 0).unwrap().0, 60);
    }

    #[test]
    fn what_looks_like_a_record_inside_another_one_is_none() {
        let hidden = record(48 + 12 + 40, b"forged");
        let mut file = vec![0; HEADER_BYTES];
        file.extend(record(48, &hidden));
        let behind = u32::try_from(file.len()).unwrap();
        file.extend(record(behind, b"real"));
        let heads: Vec<u32> = heads(&file, SEGMENT, 48).map(|(offset, _)| offset).collect();
        assert_eq!(heads, [48, behind]);
        let last = file.len() - record(behind, b"real").len() - 1;
        file[last] ^= 1;
        assert!(matches!(step(&file, SEGMENT, 48), Step::Bad { next, .. } if next == behind));
    }

    #[test]
    fn a_filler_is_a_record_that_says_nothing() {
        for size_bytes in [super::FILLER_BYTES_MIN, 57, 4000] {
            let mut file = vec![0; HEADER_BYTES];
            file.extend(super::filler(SEGMENT, 48, size_bytes));
            let Step::Record { payload, next } = step(&file, SEGMENT, 48) else {
                panic!("no record")
            };
            assert_eq!(Envelope::decode(payload).unwrap().kind, crate::Kind::Noop);
            assert_eq!(next, 48 + size_bytes);
        }
    }

    #[test]
    fn zeros_are_the_end_and_anything_else_is_not() {
        assert_eq!(step(&[0; 100], SEGMENT, 48), Step::End);
        assert_eq!(step(&[0; 100], SEGMENT, 95), Step::End);
        assert_eq!(step(&[0; 100], SEGMENT, 100), Step::End);
        assert!(matches!(
            step(&[&[0; 99][..], b"x"].concat(), SEGMENT, 48),
            Step::Bad { .. }
        ));
    }
}
