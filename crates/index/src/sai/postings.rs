//! Ascending lists of row numbers, in blocks of 128.
//!
//! ```text
//! block := first:u32  width:u8  (number less the previous one, less one) * , `width` bits each, low bits first
//! list  := block *  (first:u32  block_at:u32) *       the second part only if there is more than one block
//! ```

use ilion_rows::ReadError;

use crate::Error;
use crate::paged::{PagedFile, PagedWriter, u64_at};

/// Numbers per block; the last block may have fewer.
pub(super) const BLOCK_NUMBERS: usize = 128;
const HEAD_LEN: usize = 5;
const SKIP_LEN: usize = 8;

/// The location of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ListAt {
    /// Where its first block starts.
    pub(super) start: u64,
    /// Bytes of all blocks.
    pub(super) blocks_len: u32,
    /// Count of the row numbers in the list.
    pub(super) count: u32,
}

/// Appends a block. Requires: 1 to 128 numbers, ascending.
pub(super) fn encode_block(numbers: &[u32], out: &mut Vec<u8>) {
    let gaps = || numbers.windows(2).map(|pair| pair[1] - pair[0] - 1);
    let width = gaps()
        .map(|gap| u32::BITS - gap.leading_zeros())
        .max()
        .unwrap_or(0);
    out.extend_from_slice(&numbers[0].to_le_bytes());
    out.push(u8::try_from(width).unwrap_or(0));
    let (mut bits, mut held) = (0_u64, 0);
    for gap in gaps() {
        bits |= u64::from(gap) << held;
        held += width;
        if held >= u32::BITS {
            out.extend_from_slice(&bits.to_le_bytes()[..4]);
            bits >>= u32::BITS;
            held -= u32::BITS;
        }
    }
    let last_len = held.div_ceil(8) as usize;
    out.extend_from_slice(&bits.to_le_bytes()[..last_len]);
}

/// The length of a block with `count` numbers that begins with these bytes; `None` if they are not a block.
pub(super) fn block_len(bytes: &[u8], count: usize) -> Option<usize> {
    let width = usize::from(*bytes.get(HEAD_LEN - 1)?);
    let gaps = count.checked_sub(1)?;
    (width <= 32).then(|| HEAD_LEN + (gaps * width).div_ceil(8))
}

/// Appends the numbers of a block; `None` if the bytes are not a block.
pub(super) fn decode_block(bytes: &[u8], count: usize, out: &mut Vec<u32>) -> Option<()> {
    let bytes = bytes.get(..block_len(bytes, count)?)?;
    let (first, rest) = bytes.split_first_chunk()?;
    let (width, packed) = rest.split_first()?;
    let width = usize::from(*width);
    let mask = (1_u64 << width) - 1;
    let mut number = u32::from_le_bytes(*first);
    out.push(number);
    for index in 0..count - 1 {
        let bit = index * width;
        let gap = u32::try_from((u64_at(packed, bit / 8) >> (bit % 8)) & mask).ok()?;
        number = number.checked_add(gap)?.checked_add(1)?;
        out.push(number);
    }
    Some(())
}

/// Writes lists.
#[derive(Default)]
pub(super) struct ListWriter {
    start: Option<u64>,
    /// Numbers of the next block.
    pending: Vec<u32>,
    skips: Vec<u8>,
    block: Vec<u8>,
    count: u32,
}

impl ListWriter {
    /// Adds numbers. Requires: they ascend, and are above those added before.
    pub(super) fn add(&mut self, mut numbers: &[u32], file: &mut PagedWriter) -> Result<(), Error> {
        if !self.pending.is_empty() {
            let missing = numbers.len().min(BLOCK_NUMBERS - self.pending.len());
            let (taken, rest) = numbers.split_at(missing);
            self.pending.extend_from_slice(taken);
            numbers = rest;
            if self.pending.len() == BLOCK_NUMBERS {
                self.end_pending(file)?;
            }
        }
        let (blocks, rest) = numbers.as_chunks::<BLOCK_NUMBERS>();
        for block in blocks {
            self.write_block(block, file)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    fn end_pending(&mut self, file: &mut PagedWriter) -> Result<(), Error> {
        let mut pending = std::mem::take(&mut self.pending);
        self.write_block(&pending, file)?;
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn write_block(&mut self, numbers: &[u32], file: &mut PagedWriter) -> Result<(), Error> {
        let start = *self.start.get_or_insert(file.position());
        let at = u32::try_from(file.position() - start).unwrap_or(u32::MAX);
        self.skips.extend_from_slice(&numbers[0].to_le_bytes());
        self.skips.extend_from_slice(&at.to_le_bytes());
        self.count += u32::try_from(numbers.len()).unwrap_or(0);
        self.block.clear();
        encode_block(numbers, &mut self.block);
        file.append(&self.block)
    }

    /// Writes the rest, and starts the next list.
    pub(super) fn finish(&mut self, file: &mut PagedWriter) -> Result<ListAt, Error> {
        if !self.pending.is_empty() {
            self.end_pending(file)?;
        }
        let start = self.start.take().unwrap_or(file.position());
        let blocks_len = u32::try_from(file.position() - start).unwrap_or(u32::MAX);
        if self.skips.len() > SKIP_LEN {
            file.append(&self.skips)?;
        }
        let count = std::mem::take(&mut self.count);
        self.skips.clear();
        Ok(ListAt {
            start,
            blocks_len,
            count,
        })
    }
}

/// Reads a list block by block.
pub(super) struct ListCursor {
    at: ListAt,
    /// The current block.
    numbers: Vec<u32>,
    /// Index of the next number in it.
    index: usize,
    /// Index of the block after the current one.
    next_block: u32,
}

impl ListCursor {
    pub(super) fn new(at: ListAt) -> Self {
        Self {
            at,
            numbers: Vec::new(),
            index: 0,
            next_block: 0,
        }
    }

    fn blocks(&self) -> u32 {
        self.at.count.div_ceil(BLOCK_NUMBERS as u32)
    }

    /// The next number; the cursor does not move.
    #[inline]
    pub(super) fn head(&mut self, file: &PagedFile) -> Result<Option<u32>, ReadError> {
        if self.index == self.numbers.len() {
            if self.next_block == self.blocks() {
                return Ok(None);
            }
            self.load(file, self.next_block)?;
        }
        Ok(self.numbers.get(self.index).copied())
    }

    /// Skips the next number.
    #[inline]
    pub(super) fn pass(&mut self) {
        self.index = (self.index + 1).min(self.numbers.len());
    }

    fn skip(&self, file: &PagedFile, block: u32) -> Result<(u32, u32), ReadError> {
        let skips_at = self.at.start.saturating_add(u64::from(self.at.blocks_len));
        let at = skips_at.saturating_add(u64::from(block) * SKIP_LEN as u64);
        let bytes = u64_at(&file.bytes(at, SKIP_LEN)?, 0);
        #[expect(clippy::cast_possible_truncation, reason = "splits into halves")]
        Ok((bytes as u32, (bytes >> 32) as u32))
    }

    fn load(&mut self, file: &PagedFile, block: u32) -> Result<(), ReadError> {
        let blocks = self.blocks();
        let damaged = || file.corrupt(self.at.start, "a list of row numbers");
        let start = if block == 0 { 0 } else { self.skip(file, block)?.1 };
        let end = if block + 1 < blocks {
            self.skip(file, block + 1)?.1
        } else {
            self.at.blocks_len
        };
        let len = end.checked_sub(start).ok_or_else(damaged)?;
        let at = self.at.start.saturating_add(u64::from(start));
        let bytes = file.bytes(at, len as usize)?;
        let before = u32::try_from(BLOCK_NUMBERS).unwrap_or(0) * block;
        let count = (self.at.count - before).min(BLOCK_NUMBERS as u32) as usize;
        self.numbers.clear();
        self.index = 0;
        self.next_block = block + 1;
        decode_block(&bytes, count, &mut self.numbers).ok_or_else(damaged)
    }

    /// Skips all numbers below `number`.
    pub(super) fn seek(&mut self, file: &PagedFile, number: u32) -> Result<(), ReadError> {
        if self.numbers.last().is_none_or(|last| *last < number) {
            // Finds the last unread block that starts at or below the number.
            let (mut low, mut high) = (self.next_block, self.blocks());
            while low < high {
                let middle = low + (high - low) / 2;
                if middle == 0 || self.skip(file, middle)?.0 <= number {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            if low > self.next_block {
                self.load(file, low - 1)?;
            } else {
                self.index = self.numbers.len();
                return Ok(());
            }
        }
        self.index += self.numbers[self.index..].partition_point(|known| *known < number);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;

    use ilion_env::{Env, MemEnv};
    use proptest::prelude::*;

    use super::*;

    fn written(numbers: &[u32]) -> (PagedFile, ListAt) {
        let env: Arc<dyn Env> = MemEnv::new(1).shared();
        let mut file = PagedWriter::create(&env, PathBuf::from("list")).unwrap();
        file.append(b"before").unwrap();
        let mut writer = ListWriter::default();
        // In slices of any length.
        for part in numbers.chunk_by(|before, _| before % 7 > 0) {
            writer.add(part, &mut file).unwrap();
        }
        let at = writer.finish(&mut file).unwrap();
        file.finish(b"", b"ILTEST01").unwrap();
        let (file, _) = PagedFile::open(&env, &PathBuf::from("list"), b"ILTEST01").unwrap();
        (file, at)
    }

    fn rest(cursor: &mut ListCursor, file: &PagedFile) -> Vec<u32> {
        let mut numbers = Vec::new();
        while let Some(number) = cursor.head(file).unwrap() {
            numbers.push(number);
            cursor.pass();
        }
        numbers
    }

    fn numbers() -> impl Strategy<Value = Vec<u32>> {
        (0_u32..32, 0_usize..700).prop_flat_map(|(shift, count)| {
            prop::collection::btree_set(any::<u32>().prop_map(move |number| number >> shift), 0..=count)
                .prop_map(|set| set.into_iter().collect())
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn a_list_gives_back_its_numbers(numbers in numbers()) {
            let (file, at) = written(&numbers);
            prop_assert_eq!(at.count as usize, numbers.len());
            prop_assert_eq!(rest(&mut ListCursor::new(at), &file), numbers);
        }

        #[test]
        fn a_seek_passes_over_what_is_below(numbers in numbers(), targets in prop::collection::vec(any::<u32>(), 0..8), shift in 0_u32..32) {
            let (file, at) = written(&numbers);
            let mut cursor = ListCursor::new(at);
            let mut least = 0;
            for target in targets {
                let target = target >> shift;
                cursor.seek(&file, target).unwrap();
                least = least.max(target);
                let expected = numbers.iter().copied().find(|number| *number >= least);
                prop_assert_eq!(cursor.head(&file).unwrap(), expected);
            }
            let left: Vec<u32> = numbers.iter().copied().filter(|number| *number >= least).collect();
            prop_assert_eq!(rest(&mut cursor, &file), left);
        }

        #[test]
        fn any_bytes_are_a_block_or_none(bytes in prop::collection::vec(any::<u8>(), 0..40), count in 0_usize..130) {
            let mut out = Vec::new();
            let _ = decode_block(&bytes, count, &mut out);
            prop_assert!(out.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn rows_that_follow_each_other_take_no_bits() {
        let (_, at) = written(&(0..128_000).collect::<Vec<_>>());
        assert_eq!(at.blocks_len, 1000 * 5);
    }
}
