//! The tail of the token map: its layout, and the SSTable that it belongs to.

use bytes::Bytes;
use ilion_codec::{crc32, crc32_extend};
use ilion_rows::DecoratedKey;
use ilion_types::Partitioner;

use super::order::Order;
use super::u64_at;
use crate::StatsMetadata;

const MAGIC: &[u8; 8] = b"ILTOKENS";
const VERSION: u8 = 1;
/// Length of the fields behind the keys: from the version to `directory_at`.
const FIXED_LEN: usize = 46;
/// Length of CRC, length field and magic.
pub(super) const END_LEN: usize = 16;
/// Maximum length of the tail: both keys have the maximum size.
const TAIL_LEN_MAX: usize = 2 * (2 + 65_535) + FIXED_LEN;

/// The fields of the tail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tail {
    pub(super) first_key: Bytes,
    pub(super) last_key: Bytes,
    pub(super) partition_count: u64,
    /// Uncompressed size of Data.db.
    pub(super) data_length: u64,
    /// Size of Data.db on disk.
    pub(super) stored_length: u64,
    /// The fingerprint of Statistics.db, see [`fingerprint_of`].
    pub(super) fingerprint: u32,
    /// Size of the body, without the page CRCs.
    pub(super) body_length: u64,
    pub(super) directory_at: u64,
}

impl Tail {
    pub(super) fn encode(&self, order: Order) -> Vec<u8> {
        let mut out = Vec::new();
        for key in [&self.first_key, &self.last_key] {
            let len = u16::try_from(key.len()).unwrap_or(u16::MAX);
            out.extend_from_slice(&len.to_le_bytes());
            out.extend_from_slice(&key[..usize::from(len)]);
        }
        out.extend_from_slice(&[VERSION, order.to_byte()]);
        out.extend_from_slice(&self.partition_count.to_le_bytes());
        out.extend_from_slice(&self.data_length.to_le_bytes());
        out.extend_from_slice(&self.stored_length.to_le_bytes());
        out.extend_from_slice(&self.fingerprint.to_le_bytes());
        out.extend_from_slice(&self.body_length.to_le_bytes());
        out.extend_from_slice(&self.directory_at.to_le_bytes());
        let len = u32::try_from(out.len()).unwrap_or(u32::MAX);
        out.extend_from_slice(&crc32(&out).to_le_bytes());
        out.extend_from_slice(&len.to_le_bytes());
        out.extend_from_slice(MAGIC);
        out
    }

    /// The length of the tail without its last 16 bytes, which are `end`; `None` if the file is not a token map of this version.
    pub(super) fn length_of(end: &[u8; END_LEN]) -> Option<usize> {
        let len = usize::try_from(u64_at(&end[4..8], 0)).ok()?;
        (end.ends_with(MAGIC) && (FIXED_LEN..=TAIL_LEN_MAX).contains(&len)).then_some(len)
    }

    /// Decodes the tail; `bytes` are all but its last 16 bytes, which are `end`.
    pub(super) fn decode(bytes: &[u8], end: &[u8; END_LEN], partitioner: Partitioner) -> Option<Self> {
        if crc32(bytes).to_le_bytes() != end[..4] {
            return None;
        }
        let (first_key, rest) = split_key(bytes)?;
        let (last_key, fixed) = split_key(rest)?;
        let order = Order::of(partitioner).to_byte();
        if fixed.len() != FIXED_LEN || fixed[0] != VERSION || fixed[1] != order {
            return None;
        }
        Some(Self {
            first_key,
            last_key,
            partition_count: u64_at(fixed, 2),
            data_length: u64_at(fixed, 10),
            stored_length: u64_at(fixed, 18),
            fingerprint: u32::try_from(u64_at(&fixed[26..30], 0)).ok()?,
            body_length: u64_at(fixed, 30),
            directory_at: u64_at(fixed, 38),
        })
    }

    /// The first and the last key; `None` if they do not ascend.
    pub(super) fn ends(&self, partitioner: Partitioner) -> Option<(DecoratedKey, DecoratedKey)> {
        let first = DecoratedKey::new(partitioner, self.first_key.clone());
        let last = DecoratedKey::new(partitioner, self.last_key.clone());
        (first <= last).then_some((first, last))
    }
}

fn split_key(bytes: &[u8]) -> Option<(Bytes, &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    Some((Bytes::copy_from_slice(key), rest))
}

/// Identifies an SSTable by those fields of Statistics.db that do not change when the file is written again (as a repair does).
pub(crate) fn fingerprint_of(stats: &StatsMetadata) -> u32 {
    let numbers = [
        stats.min_timestamp_micros.cast_unsigned(),
        stats.max_timestamp_micros.cast_unsigned(),
        stats.total_rows,
        stats.total_columns,
    ];
    numbers
        .iter()
        .fold(0, |crc, number| crc32_extend(crc, &number.to_le_bytes()))
}
