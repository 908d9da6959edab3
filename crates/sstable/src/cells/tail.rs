//! The tail of the cell map: its layout, and the SSTable that it belongs to.

use ilion_codec::crc32;

use ilion_pages::u64_at;

const MAGIC: &[u8; 8] = b"ILCELMAP";
const VERSION: u8 = 1;
/// Length without CRC and magic.
const FIXED_LEN: usize = 45;
pub(super) const TAIL_LEN: usize = FIXED_LEN + 12;

/// The fields of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) entry_count: u64,
    /// Uncompressed size of Data.db.
    pub(super) data_length: u64,
    /// Size of Data.db on disk.
    pub(super) stored_length: u64,
    /// The fingerprint of Statistics.db, see [`crate::tokens::fingerprint_of`].
    pub(super) fingerprint: u32,
    /// Size of the body, without the page CRCs.
    pub(super) body_length: u64,
    pub(super) directory_at: u64,
}

impl Tail {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.entry_count.to_le_bytes());
        out.extend_from_slice(&self.data_length.to_le_bytes());
        out.extend_from_slice(&self.stored_length.to_le_bytes());
        out.extend_from_slice(&self.fingerprint.to_le_bytes());
        out.extend_from_slice(&self.body_length.to_le_bytes());
        out.extend_from_slice(&self.directory_at.to_le_bytes());
        out.extend_from_slice(&crc32(&out).to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    /// Decodes a tail; `None` if the bytes are not the tail of a cell map of this version.
    pub(super) fn decode(bytes: &[u8; TAIL_LEN]) -> Option<Self> {
        let (fixed, end) = bytes.split_at(FIXED_LEN);
        let is_whole = end.ends_with(MAGIC) && end[..4] == crc32(fixed).to_le_bytes();
        if !is_whole || fixed[0] != VERSION {
            return None;
        }
        Some(Self {
            entry_count: u64_at(fixed, 1),
            data_length: u64_at(fixed, 9),
            stored_length: u64_at(fixed, 17),
            fingerprint: u32::try_from(u64_at(&fixed[25..29], 0)).ok()?,
            body_length: u64_at(fixed, 29),
            directory_at: u64_at(fixed, 37),
        })
    }
}
