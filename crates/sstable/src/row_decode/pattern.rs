//! Rows that are laid out as one before them (`ilion_rows::AlikeRows`), found by the bytes that tell how a row is laid out: flags,
//! lengths, and the first bits of numbers of variable length. Only these are compared, many at once; nothing is parsed.
//!
//! Whatever fits the pattern of a row would be read to the same places as that row was.

use std::ops::Range;

use ilion_rows::{LaidSize, LaidTimestamp, RowLayout};

use super::RowFormat;
use super::prefix::BATCH_LEN;
use super::source::read_uvint;

/// Bytes that are compared at once.
const BLOCK_BYTES: usize = 32;
/// A larger row costs more to decompress than to read.
const ROW_BYTES_MAX: usize = 8 * BLOCK_BYTES;
/// So many rows are looked for at first, and twice as many whenever all were found: a read of few rows is to look at few.
const ROWS_MIN: usize = 8;
const ROWS_MAX: usize = 64;
/// After so many rows in a row that did not fit, a pattern is given up.
const MISSES_MAX: u32 = 4;
/// So many patterns are made in vain before no more are.
const IN_VAIN_MAX: u32 = 16;

/// What is compared of some bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Block {
    mask: [u64; BLOCK_BYTES / 8],
    expected: [u64; BLOCK_BYTES / 8],
}

/// Rows that are all laid out alike.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) layout: RowLayout,
    /// Of the row as far as something has to be the same.
    blocks: Vec<Block>,
}

/// The most that a length of one byte says.
const SHORT_LEN_MAX: usize = 0x7F;

impl Pattern {
    /// How many rows at the start of the bytes fit, up to `most`. Rows at their very end may not be counted.
    #[inline]
    fn count(&self, bytes: &[u8], most: usize) -> usize {
        match self.blocks.len() {
            1 => self.count_of_blocks::<1>(bytes, most),
            2 => self.count_of_blocks::<2>(bytes, most),
            4 => self.count_of_blocks::<4>(bytes, most),
            8 => self.count_of_blocks::<8>(bytes, most),
            _ => 0,
        }
    }

    /// The same for a number of blocks that the compiler knows: it compares them without a loop, as vectors if it is a power of two.
    fn count_of_blocks<const BLOCKS: usize>(&self, bytes: &[u8], most: usize) -> usize {
        let Ok(blocks) = <&[Block; BLOCKS]>::try_from(&self.blocks[..]) else {
            return 0;
        };
        let (mut count, mut rest) = (0, bytes);
        while count < most
            && let Some((row, _)) = rest.as_chunks().0.split_first_chunk()
            && fits(row, blocks)
            && let Some(len) = self.len_of(rest)
            && let Some(following) = rest.get(len..)
        {
            count += 1;
            rest = following;
        }
        count
    }

    /// How long the row is that begins here and fits so far; nothing if it does not.
    #[inline(always)]
    fn len_of(&self, row: &[u8]) -> Option<usize> {
        let Some(size) = &self.layout.size else {
            return Some(self.layout.len);
        };
        let len = size.row_len(row)?;
        let value_at = self.layout.cells.last()?.1.start;
        let value_len = usize::from(*row.get(value_at - 1)?);
        ((1..=SHORT_LEN_MAX).contains(&value_len) && value_at + value_len == len).then_some(len)
    }
}

#[inline(always)]
fn fits<const BLOCKS: usize>(row: &[[u8; BLOCK_BYTES]; BLOCKS], blocks: &[Block; BLOCKS]) -> bool {
    let mut differing = [0; BLOCK_BYTES / 8];
    for (bytes, block) in row.iter().zip(blocks) {
        for (index, word) in bytes.as_chunks().0.iter().enumerate() {
            differing[index] |= (u64::from_ne_bytes(*word) & block.mask[index]) ^ block.expected[index];
        }
    }
    let [a, b, c, d] = differing;
    a | b | c | d == 0
}

/// Finds rows that are laid out alike.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    pattern: Option<Pattern>,
    /// Bytes of the row that was read last.
    last_len: usize,
    /// Rows that are looked for at once.
    rows: usize,
    /// Looks in a row that found nothing.
    misses: u32,
    /// Patterns in a row that were good for nothing.
    in_vain: u32,
}

impl Patterns {
    /// The rows with which these bytes begin, if they are known to be alike: how many, and their pattern.
    #[inline(always)]
    pub(super) fn alike(&mut self, bytes: &[u8]) -> Option<(usize, &Pattern)> {
        let count = self.pattern.as_ref()?.count(bytes, self.rows);
        self.note_count(count);
        let pattern = self.pattern.as_ref()?;
        (count > 0).then_some((count, pattern))
    }

    #[inline]
    fn note_count(&mut self, count: usize) {
        if count == 0 {
            self.misses += 1;
            if self.misses >= MISSES_MAX {
                self.pattern = None;
            }
            return;
        }
        self.misses = 0;
        if count == self.rows {
            self.in_vain = 0;
            self.rows = (2 * count).min(ROWS_MAX);
        } else {
            self.rows = ROWS_MIN;
        }
    }

    /// This row was read as usual. Two of the same length may be the first of many, and so may two of different lengths in a partition, if
    /// that is due to their last value.
    #[inline(always)]
    pub(super) fn note(&mut self, row: &[u8], format: &RowFormat, has_key: bool) {
        let is_even = self.last_len == row.len();
        let is_possible = is_even || (self.last_len > 0 && !has_key);
        self.last_len = row.len();
        if is_possible && self.pattern.is_none() && self.in_vain < IN_VAIN_MAX {
            self.make(row, format, has_key, is_even);
        }
    }

    #[inline(never)]
    fn make(&mut self, row: &[u8], format: &RowFormat, has_key: bool, is_even: bool) {
        self.in_vain += 1;
        self.misses = 0;
        self.rows = ROWS_MIN;
        self.pattern = pattern_of(row, format, has_key, is_even);
    }
}

/// The pattern of a usual row, with its key and all else if it is a partition; if it is uneven, of rows whose last value may have any
/// length that takes a byte.
fn pattern_of(row: &[u8], format: &RowFormat, has_key: bool, is_even: bool) -> Option<Pattern> {
    let columns = format.regulars.usual.as_deref()?;
    if row.is_empty() || row.len() > ROW_BYTES_MAX || format.clustering.fixed_lens.len() > BATCH_LEN {
        return None;
    }
    let mut walk = Walk::new(row);
    let mut layout = RowLayout {
        len: row.len(),
        ..RowLayout::default()
    };
    if has_key {
        let [high, low] = *row.first_chunk()?;
        walk.same(2)?;
        layout.key = Some(walk.any(usize::from(u16::from_be_bytes([high, low])))?);
        walk.same(format.times.live_partition_len())?;
    }
    walk.same(1)?;
    if !has_key {
        // No value is empty or null.
        let start = walk.at;
        walk.same(1)?;
        for fixed_len in &format.clustering.fixed_lens {
            layout.clustering.push(walk.value(*fixed_len)?);
        }
        layout.stored_clustering = start..walk.at;
    }
    match is_even {
        true => drop(walk.same_uvint()?),
        false => layout.size = Some(walk.size()?),
    }
    walk.any_uvint()?;
    let mask = walk.any_uvint()?;
    layout.timestamp = LaidTimestamp {
        end: walk.at,
        mask,
        least_micros: format.times.timestamp_of(0),
    };
    // None of these timestamps is none.
    let is_some = layout.timestamp.least_micros != i64::MIN
        && layout.timestamp.least_micros.checked_add_unsigned(mask).is_some();
    if !is_some || walk.at < size_of::<u64>() {
        return None;
    }
    layout.stored.start = walk.at;
    for (index, column) in columns.iter().enumerate() {
        walk.same(1)?;
        let fixed_len = Some(column.fixed_len).filter(|len| *len > 0);
        let place = match !is_even && index + 1 == columns.len() {
            true => walk.short_value(fixed_len)?,
            false => walk.value(fixed_len)?,
        };
        layout.cells.push((column.id, place));
    }
    layout.stored.end = walk.at;
    if has_key {
        walk.same(1)?;
    }
    if walk.at != row.len() {
        return None;
    }
    if !is_even {
        let (_, last) = layout.cells.last_mut()?;
        last.end = last.start + SHORT_LEN_MAX;
        layout.stored.end = last.end;
        layout.len = last.end;
    }
    let blocks = walk.blocks();
    Some(Pattern { layout, blocks })
}

/// Goes through a row and notes which of its bits tell how it is laid out.
struct Walk<'r> {
    row: &'r [u8],
    mask: Vec<u8>,
    at: usize,
}

impl<'r> Walk<'r> {
    fn new(row: &'r [u8]) -> Self {
        Self {
            row,
            mask: vec![0; row.len()],
            at: 0,
        }
    }

    /// Bytes that are the same in each row.
    fn same(&mut self, len: usize) -> Option<()> {
        let place = self.any(len)?;
        self.mask[place].fill(0xFF);
        Some(())
    }

    /// Bytes of which each row has its own.
    fn any(&mut self, len: usize) -> Option<Range<usize>> {
        let place = self.at..self.at.checked_add(len)?;
        self.row.get(place.clone())?;
        self.at = place.end;
        Some(place)
    }

    fn same_uvint(&mut self) -> Option<u64> {
        let (number, len) = read_uvint(&self.row[self.at..])?;
        self.same(len)?;
        Some(number)
    }

    /// The size of the row, which may be another in each, of as many bytes.
    fn size(&mut self) -> Option<LaidSize> {
        let at = self.at;
        self.any_uvint()?;
        let is_long = self.at - at == 2;
        (self.at - at <= 2).then_some(LaidSize { at, is_long })
    }

    /// A number that may be another in each row, of as many bytes. Gives the bits that belong to it.
    fn any_uvint(&mut self) -> Option<u64> {
        let more = self.row.get(self.at)?.leading_ones();
        // Eight bytes hold it with its length.
        if more >= u64::BITS / 8 {
            return None;
        }
        self.mask[self.at] = !(0x7F_u8.unbounded_shr(more));
        self.any(1 + more as usize)?;
        Some((1 << (7 * (1 + more))) - 1)
    }

    fn value(&mut self, fixed_len: Option<usize>) -> Option<Range<usize>> {
        let len = match fixed_len {
            Some(len) => len,
            None => usize::try_from(self.same_uvint()?).ok()?,
        };
        self.any(len)
    }

    /// A value that is not empty, behind a length of one byte that may be another in each row.
    fn short_value(&mut self, fixed_len: Option<usize>) -> Option<Range<usize>> {
        let len = usize::from(*self.row.get(self.at)?);
        let is_short = fixed_len.is_none() && (1..=SHORT_LEN_MAX).contains(&len);
        self.any(1).filter(|_| is_short)?;
        self.any(len)
    }

    /// Up to the last byte of which something is the same in each row.
    fn blocks(&self) -> Vec<Block> {
        let end = self
            .mask
            .iter()
            .rposition(|mask| *mask != 0)
            .map_or(0, |last| last + 1);
        let (mask, row) = (&self.mask[..end], &self.row[..end]);
        let pairs = mask.chunks(BLOCK_BYTES).zip(row.chunks(BLOCK_BYTES));
        let block = |(mask, row): (&[u8], &[u8])| {
            let mut block = Block::default();
            for (index, (mask, byte)) in mask.iter().zip(row).enumerate() {
                let place = |byte: u8| {
                    let mut word = [0; 8];
                    word[index % 8] = byte;
                    u64::from_ne_bytes(word)
                };
                block.mask[index / 8] |= place(*mask);
                block.expected[index / 8] |= place(mask & byte);
            }
            block
        };
        let mut blocks: Vec<Block> = pairs.map(block).collect();
        blocks.resize(blocks.len().next_power_of_two(), Block::default());
        blocks
    }
}
