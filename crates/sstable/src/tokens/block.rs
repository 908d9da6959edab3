//! A block of the token map: up to 1024 partitions, readable on its own.

use std::cmp::Ordering;
use std::ops::Range;

use super::elias_fano::{self, Sequence, Shape};
use super::order::{ComparableToken, code_of_bytes, common_len};
use super::{u16_at, u64_at};

const HEADER_LEN: usize = 28;
const WIDE_LEN: usize = 10;
/// Bits of a code beyond those that number the block's partitions: with them, two partitions have equal codes once in 2048 to 4096 times.
const SPARE_BITS: u32 = 11;

/// A block whose bytes are in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block<'b> {
    pub(super) count: usize,
    base_position: u64,
    base_code: u64,
    shift: u8,
    pub(super) prefix: &'b [u8],
    codes: Sequence<'b>,
    /// Positions and row indexes. Lookups by code do not need them.
    rest: &'b [u8],
    position_shape: Shape,
    wide_count: usize,
}

impl<'b> Block<'b> {
    /// Decodes a block; `None` if the bytes are not a block of `count` partitions.
    #[inline]
    pub(super) fn decode(bytes: &'b [u8], count: usize) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(HEADER_LEN)?;
        let [shift, code_low_bits, position_low_bits, _] = *header.get(16..20)?.first_chunk()?;
        let code_shape = Shape {
            count,
            low_bits: code_low_bits,
            words: u16_at(header, 20)?,
        };
        let position_shape = Shape {
            count,
            low_bits: position_low_bits,
            words: u16_at(header, 22)?,
        };
        let wide_count = usize::from(u16_at(header, 24)?);
        let (prefix, rest) = rest.split_at_checked(usize::from(u16_at(header, 26)?))?;
        let (codes, rest) = Sequence::split(rest, code_shape)?;
        (shift < 64).then_some(())?;
        Some(Self {
            count,
            base_position: u64_at(header, 0),
            base_code: u64_at(header, 8),
            shift,
            prefix,
            codes,
            rest,
            position_shape,
            wide_count,
        })
    }

    /// The position of a partition in Data.db, and, if it has a row index, the position of its entry in Index.db or Rows.db.
    #[inline]
    pub(super) fn position(&self, index: usize) -> Option<(u64, Option<u64>)> {
        let (positions, rest) = Sequence::split(self.rest, self.position_shape)?;
        let position = self.base_position.checked_add(positions.get(index)?)?;
        let wide = rest.as_chunks::<WIDE_LEN>().0.get(..self.wide_count)?;
        let number = |wide: &[u8; WIDE_LEN]| usize::from(u16_at(wide, 0).unwrap_or(u16::MAX));
        let at = wide.binary_search_by_key(&index, number).ok();
        Some((position, at.map(|at| u64_at(&wide[at], 2))))
    }

    /// The least code that the partition may have.
    pub(super) fn code(&self, index: usize) -> Option<u64> {
        self.whole(self.codes.get(index)?)
    }

    /// Compares a token with the codes that the partition may have. `Equal` means that the token may be the partition's.
    #[inline]
    pub(super) fn relation(&self, place: ComparableToken<'_>, index: usize) -> Option<Ordering> {
        let code = match place {
            ComparableToken::Code(code) => code,
            ComparableToken::Bytes(key) => {
                let common = common_len(self.prefix, key);
                if common < self.prefix.len() {
                    return Some(match key.get(common) {
                        Some(byte) if *byte > self.prefix[common] => Ordering::Greater,
                        _ => Ordering::Less,
                    });
                }
                code_of_bytes(&key[common..])
            }
        };
        let least = self.code(index)?;
        let greatest = least | ((1 << self.shift) - 1);
        Some(if code < least {
            Ordering::Less
        } else {
            // Not below the least code: `Equal` up to the greatest one, else `Greater`.
            code.max(greatest).cmp(&greatest)
        })
    }

    /// Calls `visit` with the least and the greatest code that each partition may have, in order.
    pub(super) fn each_code(&self, mut visit: impl FnMut(u64, u64)) {
        let cut = (1_u64 << self.shift) - 1;
        self.codes.each(|value| {
            if let Some(code) = self.whole(value) {
                visit(code, code | cut);
            }
        });
    }

    fn whole(&self, value: u64) -> Option<u64> {
        let code = self.base_code.checked_add(value)?;
        (code.leading_zeros() >= u32::from(self.shift)).then(|| code << self.shift)
    }

    /// Indexes of the partitions that may have the token. If there are none: an empty range, where they would be.
    #[inline]
    pub(super) fn find(&self, place: ComparableToken<'_>) -> Range<usize> {
        match place {
            ComparableToken::Code(code) => self.find_code(code),
            ComparableToken::Bytes(key) => self.find_bytes(key),
        }
    }

    /// Number of partitions below a code, and the known bits of the next partition's code; `None` if the block has no more partitions.
    #[inline]
    pub(super) fn next_code(&self, code: u64) -> (usize, Option<u64>) {
        let value = (code >> self.shift).saturating_sub(self.base_code);
        let (at, next) = self.codes.next_from(value);
        (at, next.and_then(|value| self.whole(value)))
    }

    #[inline]
    fn find_code(&self, code: u64) -> Range<usize> {
        match (code >> self.shift).checked_sub(self.base_code) {
            Some(value) => self.codes.equal_range(value),
            None => 0..0,
        }
    }

    fn find_bytes(&self, key: &[u8]) -> Range<usize> {
        let common = common_len(self.prefix, key);
        if common == self.prefix.len() {
            return self.find_code(code_of_bytes(&key[common..]));
        }
        let is_below = key.get(common).is_none_or(|byte| *byte < self.prefix[common]);
        let at = if is_below { 0 } else { self.count };
        at..at
    }
}

/// The partitions of a block under construction.
#[derive(Debug, Default)]
pub(super) struct BlockDraft {
    partitions: Vec<Partition>,
    /// The keys, one after the other; empty if partitions are ordered by a hash.
    keys: Vec<u8>,
    key_ends: Vec<usize>,
    /// Index of a partition in the block, and position of the entry with its row index.
    wide: Vec<(u16, u64)>,
}

/// A partition of a draft.
#[derive(Clone, Copy, Debug)]
struct Partition {
    /// The code of the hash. If partitions are ordered by key, `encode` sets the code of the key.
    code: u64,
    position: u64,
}

impl BlockDraft {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.partitions.len()
    }

    #[inline]
    pub(super) fn add(&mut self, place: ComparableToken<'_>, position: u64, row_index: Option<u64>) {
        if let Some(at) = row_index {
            self.add_row_index(at);
        }
        let code = match place {
            ComparableToken::Code(code) => code,
            ComparableToken::Bytes(key) => self.add_key(key),
        };
        self.partitions.push(Partition { code, position });
    }

    fn add_row_index(&mut self, at: u64) {
        if let Ok(number) = u16::try_from(self.partitions.len()) {
            self.wide.push((number, at));
        }
    }

    /// Adds a key. Returns 0 in place of its code, which is known only when the common prefix of the block's keys is.
    fn add_key(&mut self, key: &[u8]) -> u64 {
        self.keys.extend_from_slice(key);
        self.key_ends.push(self.keys.len());
        0
    }

    fn key(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        &self.keys[start..self.key_ends[index]]
    }

    pub(super) fn first_key(&self) -> &[u8] {
        self.key(0)
    }

    pub(super) fn last_key(&self) -> &[u8] {
        self.key(self.key_ends.len() - 1)
    }

    /// The code of the first partition. If partitions are ordered by key, it is known only after `encode`.
    pub(super) fn first_code(&self) -> Option<u64> {
        self.partitions.first().map(|partition| partition.code)
    }

    pub(super) fn clear(&mut self) {
        self.partitions.clear();
        self.keys.clear();
        self.key_ends.clear();
        self.wide.clear();
    }

    /// Appends the block; `None` if a number does not fit the format. Requires: it has partitions, ascending.
    pub(super) fn encode(&mut self, out: &mut Vec<u8>) -> Option<()> {
        let prefix_len = if self.key_ends.is_empty() {
            0
        } else {
            let len = common_len(self.first_key(), self.last_key());
            for index in 0..self.key_ends.len() {
                self.partitions[index].code = code_of_bytes(&self.key(index)[len..]);
            }
            len
        };
        let (first, last) = (*self.partitions.first()?, *self.partitions.last()?);
        let count = self.partitions.len();
        let shift = shift_for(count, last.code - first.code);
        let base_code = first.code >> shift;
        let code_of = move |partition: &Partition| (partition.code >> shift) - base_code;
        let position_of = move |partition: &Partition| partition.position - first.position;
        let code_shape = Shape::fitting(count, code_of(&last))?;
        let position_shape = Shape::fitting(count, position_of(&last))?;
        out.extend_from_slice(&first.position.to_le_bytes());
        out.extend_from_slice(&base_code.to_le_bytes());
        out.extend_from_slice(&[shift, code_shape.low_bits, position_shape.low_bits, 0]);
        out.extend_from_slice(&code_shape.words.to_le_bytes());
        out.extend_from_slice(&position_shape.words.to_le_bytes());
        out.extend_from_slice(&u16::try_from(self.wide.len()).ok()?.to_le_bytes());
        out.extend_from_slice(&u16::try_from(prefix_len).ok()?.to_le_bytes());
        out.extend_from_slice(self.keys.get(..prefix_len)?);
        elias_fano::encode(self.partitions.iter().map(code_of), code_shape, out);
        elias_fano::encode(self.partitions.iter().map(position_of), position_shape, out);
        for (number, at) in &self.wide {
            out.extend_from_slice(&number.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
        }
        Some(())
    }
}

/// Number of low bits that can be cut from `count` codes that span `range`.
fn shift_for(count: usize, range: u64) -> u8 {
    let kept = usize::BITS - count.leading_zeros() + SPARE_BITS;
    let bits = u64::BITS - range.leading_zeros();
    u8::try_from(bits.saturating_sub(kept)).unwrap_or(0)
}
