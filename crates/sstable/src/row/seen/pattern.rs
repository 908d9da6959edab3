//! Finds rows with the layout of an earlier row (`ilion_rows::AlikeRows`), by the bytes that determine a row's layout: flags,
//! lengths, and the first bits of vints. Only these bytes are compared, many at once; no value is parsed.
//!
//! A row that fits the pattern would be decoded to the same ranges as the row that the pattern was made from.

use std::ops::Range;

use ilion_rows::{AlikeRows, DecoratedKey, LaidTimestamp, RowLayout};

use crate::row::decode::RowFormat;
use crate::row::format::VALUES_PER_HEADER;
use crate::row::read_uvint;

/// Number of bytes that are compared at once.
const BLOCK_BYTES: usize = 32;
/// No patterns are made for larger rows: decompressing such a row costs more than decoding it.
const ROW_BYTES_MAX: usize = 8 * BLOCK_BYTES;
/// Initial number of rows to search for. It doubles whenever all were found, so that a read of few rows compares few.
const ROWS_MIN: usize = 8;
const ROWS_MAX: usize = 256;
/// Number of consecutive rows that may fit one pattern before the pattern is made. With fewer, making it costs more than it saves.
const ROWS_BEFORE: u32 = 4;
/// A pattern is dropped after this many consecutive misses.
const MISSES_MAX: u32 = 4;
/// After this many useless patterns, no more are made.
const IN_VAIN_MAX: u32 = 16;

/// A block of bytes, and the bits of it that are compared.
#[derive(Clone, Copy, Debug, Default)]
struct MaskedBlock {
    mask: [u64; BLOCK_BYTES / 8],
    expected: [u64; BLOCK_BYTES / 8],
}

/// The layout of rows, and the bytes that determine it.
#[derive(Debug)]
struct Pattern {
    layout: RowLayout,
    /// The size field, if rows may differ in length.
    size: Option<Size>,
    /// The bytes of a row, up to the last one that is compared.
    blocks: Vec<MaskedBlock>,
}

/// Largest length that is stored in one byte.
const SHORT_LEN_MAX: usize = 0x7F;

/// The size field of a row: an unsigned vint of one or two bytes. Rows differ in length only by their last value.
#[derive(Clone, Copy, Debug)]
struct Size {
    /// Offset of the field's end in the row.
    end: usize,
    /// The bits of the two bytes before `end` that belong to the size.
    mask: u16,
    /// Start of the last value, behind its length of one byte.
    value_at: usize,
}

impl Size {
    /// The length of a row that fits; `None` if its size and the length of its last value contradict each other. All bytes that this
    /// needs are among those that are compared.
    #[inline]
    fn row_len<const BLOCKS: usize>(&self, row: &[[u8; BLOCK_BYTES]; BLOCKS]) -> Option<u32> {
        let row = row.as_flattened();
        // These limits change no valid value: they cost nothing, and let the compiler remove the bounds checks.
        let size_at = (self.end - 2).min(row.len() - 2);
        let size = u16::from_be_bytes([row[size_at], row[size_at + 1]]) & self.mask;
        let value_len = u32::from(row[(self.value_at - 1).min(row.len() - 1)]);
        let len = self.value_at as u32 + value_len;
        (value_len > 0 && self.end as u32 + u32::from(size) == len).then_some(len)
    }
}

impl Pattern {
    /// Number of bytes that are needed to decide whether a row fits.
    fn span(&self) -> usize {
        self.layout.len.max(self.blocks.len() * BLOCK_BYTES)
    }

    /// Number of leading rows in `bytes` that fit. If rows may differ in length, fills `ends` with their ends, and stops when
    /// `ends` is full. Needs at least [`Pattern::span`] bytes per row.
    #[inline]
    fn count(&self, bytes: &[u8], ends: &mut [u32]) -> usize {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            #[expect(unsafe_code, reason = "only what is compiled for these instructions has them")]
            // SAFETY: the processor has these instructions.
            return unsafe { self.count_by_vectors(bytes, ends) };
        }
        self.count_by_blocks(bytes, ends)
    }

    /// As [`Self::count`], with registers of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn count_by_vectors(&self, bytes: &[u8], ends: &mut [u32]) -> usize {
        self.count_by_blocks(bytes, ends)
    }

    #[inline(always)]
    fn count_by_blocks(&self, bytes: &[u8], ends: &mut [u32]) -> usize {
        match self.blocks.len() {
            1 => self.count_of_blocks::<1>(bytes, ends),
            2 => self.count_of_blocks::<2>(bytes, ends),
            4 => self.count_of_blocks::<4>(bytes, ends),
            8 => self.count_of_blocks::<8>(bytes, ends),
            _ => 0,
        }
    }

    /// As [`Self::count`], for a constant number of blocks: without a loop, and with vector instructions if it is a power of two.
    #[inline(always)]
    fn count_of_blocks<const BLOCKS: usize>(&self, bytes: &[u8], ends: &mut [u32]) -> usize {
        let Ok(blocks) = <&[MaskedBlock; BLOCKS]>::try_from(&self.blocks[..]) else {
            return 0;
        };
        let len = self.layout.len as u32;
        match self.size {
            None => count_while_fit(bytes, ends, blocks, |_, start, _| Some(start + len)),
            Some(size) => count_while_fit(bytes, ends, blocks, |row, start, end| {
                *end = start + size.row_len(row)?;
                Some(*end)
            }),
        }
    }
}

/// Number of rows that fit; each has its own length, and its end is stored in `ends`.
#[inline]
fn count_while_fit<const BLOCKS: usize>(
    bytes: &[u8],
    ends: &mut [u32],
    blocks: &[MaskedBlock; BLOCKS],
    end_of: impl Fn(&[[u8; BLOCK_BYTES]; BLOCKS], u32, &mut u32) -> Option<u32>,
) -> usize {
    let (mut count, mut at) = (0, 0);
    while let Some(end) = ends.get_mut(count) {
        let from = at as usize;
        if let Some(row) = bytes.get(from..from + BLOCKS * BLOCK_BYTES)
            && let Some(row) = row.as_chunks().0.first_chunk()
            && fits(row, blocks)
            && let Some(next) = end_of(row, at, end)
        {
            at = next;
            count += 1;
        } else {
            break;
        }
    }
    // The last row may be cut off.
    count - usize::from(at as usize > bytes.len())
}

#[inline]
fn fits<const BLOCKS: usize>(row: &[[u8; BLOCK_BYTES]; BLOCKS], blocks: &[MaskedBlock; BLOCKS]) -> bool {
    let mut differing = [0; BLOCK_BYTES / 8];
    for (bytes, block) in row.iter().zip(blocks) {
        for (index, word) in bytes.as_chunks().0.iter().enumerate() {
            differing[index] |= (u64::from_ne_bytes(*word) & block.mask[index]) ^ block.expected[index];
        }
    }
    let [a, b, c, d] = differing;
    a | b | c | d == 0
}

/// Finds rows with the same layout.
#[derive(Debug, Default)]
pub(crate) struct Patterns {
    /// The current pattern; boxed, because most readers of one partition never have one.
    pattern: Option<Box<Pattern>>,
    /// Length of the last row that was read.
    last_len: usize,
    /// Number of consecutive rows, up to the last one read, that may fit one pattern.
    row_count: u32,
    /// True if these rows differ in length.
    is_uneven: bool,
    /// Number of rows that are searched for at once.
    rows: usize,
    /// If rows differ in length: the start of each row that was found last, and the end of the last.
    bounds: Vec<u32>,
    /// Number of consecutive searches without a result.
    misses: u32,
    /// Number of consecutive useless patterns.
    in_vain: u32,
}

impl Patterns {
    /// The rows at the start of `bytes` that fit the pattern. They are of the partition with this key; without a key, each is a partition.
    #[inline(always)]
    pub(super) fn alike<'r>(
        &'r mut self,
        bytes: &'r [u8],
        partition: Option<&'r DecoratedKey>,
    ) -> Option<AlikeRows<'r>> {
        let pattern = self.pattern.as_ref()?;
        let count = pattern.count(bytes, &mut self.bounds[1..=self.rows]);
        let len = match pattern.size {
            None => count * pattern.layout.len,
            Some(_) => self.bounds[count] as usize,
        };
        let has_more = bytes.len() - len >= pattern.span();
        self.note_count(count, has_more);
        let pattern = self.pattern.as_ref().filter(|_| count > 0)?;
        let rows = AlikeRows::new(&bytes[..len], count, &pattern.layout, partition);
        Some(match pattern.size {
            None => rows,
            Some(_) => rows.within(&self.bounds[..=count]),
        })
    }

    /// Records the number of rows found; `has_more` is false if the end of the bytes stopped the search.
    #[inline]
    fn note_count(&mut self, count: usize, has_more: bool) {
        if count == self.rows {
            self.in_vain = 0;
            self.misses = 0;
            self.rows = (2 * count).min(ROWS_MAX);
        } else if !has_more {
            // The next rows may fit again.
        } else if count > 0 {
            self.misses = 0;
            self.rows = ROWS_MIN;
        } else {
            self.misses += 1;
            if self.misses >= MISSES_MAX {
                self.pattern = None;
            }
        }
    }

    /// Records a row that was read one by one. Rows of the same length may be the first of many; so may rows of different
    /// lengths in a partition, if only their last value differs in length.
    #[inline]
    pub(super) fn note(&mut self, row: &[u8], format: &RowFormat, has_key: bool) {
        let is_even = self.last_len == row.len();
        let is_possible = is_even || (self.last_len > 0 && !has_key);
        self.last_len = row.len();
        if is_possible {
            self.row_count += 1;
            self.is_uneven |= !is_even;
        } else {
            self.row_count = 1;
            self.is_uneven = false;
        }
        if self.row_count >= ROWS_BEFORE && self.pattern.is_none() && self.in_vain < IN_VAIN_MAX {
            self.make(row, format, has_key, !self.is_uneven);
        }
    }

    #[inline(never)]
    fn make(&mut self, row: &[u8], format: &RowFormat, has_key: bool, is_even: bool) {
        self.in_vain += 1;
        self.row_count = 0;
        self.is_uneven = false;
        self.misses = 0;
        self.rows = ROWS_MIN;
        self.bounds.resize(1 + ROWS_MAX, 0);
        self.pattern = pattern_of(row, format, has_key, is_even).map(Box::new);
    }
}

/// The pattern of a usual row, or of a whole partition with its key. If `is_even` is false, the last value of rows may have any
/// length that fits one byte.
fn pattern_of(row: &[u8], format: &RowFormat, has_key: bool, is_even: bool) -> Option<Pattern> {
    let columns = format.regulars.usual.as_deref()?;
    if row.is_empty() || row.len() > ROW_BYTES_MAX || format.clustering.fixed_lens.len() > VALUES_PER_HEADER {
        return None;
    }
    let mut walk = LayoutWalk::new(row);
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
        // The header 0: no value is empty or null, so all are stored.
        row.get(walk.at).filter(|header| **header == 0)?;
        walk.same(1)?;
        for fixed_len in &format.clustering.fixed_lens {
            layout.clustering.push(walk.value(*fixed_len)?);
        }
    }
    let mut size = match is_even {
        true => walk.same_uvint().map(|_| None)?,
        false => Some(walk.size()?),
    };
    walk.any_uvint()?;
    let mask = walk.any_uvint()?;
    layout.timestamp = LaidTimestamp {
        end: walk.at,
        mask,
        least_micros: format.times.timestamp_of(0),
    };
    // No timestamp that rows of this pattern can have is the mark of a missing timestamp.
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
    if let Some(size) = &mut size {
        let (_, last) = layout.cells.last_mut()?;
        size.value_at = last.start;
        last.end = last.start + SHORT_LEN_MAX;
        layout.stored.end = last.end;
        layout.len = last.end;
    }
    let blocks = walk.blocks();
    Some(Pattern { layout, size, blocks })
}

/// Walks through a row and marks the bits that determine its layout.
struct LayoutWalk<'r> {
    row: &'r [u8],
    mask: Vec<u8>,
    at: usize,
}

impl<'r> LayoutWalk<'r> {
    fn new(row: &'r [u8]) -> Self {
        Self {
            row,
            mask: vec![0; row.len()],
            at: 0,
        }
    }

    /// Passes bytes that are equal in all rows.
    fn same(&mut self, len: usize) -> Option<()> {
        let place = self.any(len)?;
        self.mask[place].fill(0xFF);
        Some(())
    }

    /// Passes bytes that may differ.
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

    /// Passes the size of the row: its value may differ, its length may not.
    fn size(&mut self) -> Option<Size> {
        let mask = u16::try_from(self.any_uvint()?).ok()?;
        Some(Size {
            end: self.at,
            mask,
            value_at: 0,
        })
    }

    /// Passes a vint whose value may differ, but not its length. Returns the mask of its value.
    fn any_uvint(&mut self) -> Option<u64> {
        let more = self.row.get(self.at)?.leading_ones();
        // The vint must fit into eight bytes, its length bits included.
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

    /// Passes a value that is not empty, behind a length of one byte that may differ.
    fn short_value(&mut self, fixed_len: Option<usize>) -> Option<Range<usize>> {
        let len = usize::from(*self.row.get(self.at)?);
        let is_short = fixed_len.is_none() && (1..=SHORT_LEN_MAX).contains(&len);
        self.mask[self.at] = !SHORT_LEN_MAX as u8;
        self.any(1).filter(|_| is_short)?;
        self.any(len)
    }

    /// The blocks up to the last byte that is compared.
    fn blocks(&self) -> Vec<MaskedBlock> {
        let end = self
            .mask
            .iter()
            .rposition(|mask| *mask != 0)
            .map_or(0, |last| last + 1);
        let (mask, row) = (&self.mask[..end], &self.row[..end]);
        let pairs = mask.chunks(BLOCK_BYTES).zip(row.chunks(BLOCK_BYTES));
        let block = |(mask, row): (&[u8], &[u8])| {
            let mask = words_of(mask);
            let mut expected = words_of(row);
            expected
                .iter_mut()
                .zip(&mask)
                .for_each(|(word, mask)| *word &= mask);
            MaskedBlock { mask, expected }
        };
        let mut blocks: Vec<MaskedBlock> = pairs.map(block).collect();
        blocks.resize(blocks.len().next_power_of_two(), MaskedBlock::default());
        blocks
    }
}

/// At most [`BLOCK_BYTES`] bytes, padded with zeros.
fn words_of(bytes: &[u8]) -> [u64; BLOCK_BYTES / 8] {
    let mut block = [[0; 8]; BLOCK_BYTES / 8];
    block.as_flattened_mut()[..bytes.len()].copy_from_slice(bytes);
    block.map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with a tag, `gap` bytes that differ, a size, and a value of `value_len` bytes behind its length.
    fn row(gap: usize, value_len: usize) -> Vec<u8> {
        let mut row = vec![7; 1 + gap];
        row.extend([value_len as u8 + 1, value_len as u8]);
        row.resize(row.len() + value_len, 9);
        row
    }

    fn pattern(gap: usize) -> Pattern {
        let row = row(gap, 5);
        let mut walk = LayoutWalk::new(&row);
        walk.same(1).unwrap();
        walk.any(gap).unwrap();
        let mut size = walk.size().unwrap();
        let value = walk.short_value(None).unwrap();
        size.value_at = value.start;
        Pattern {
            layout: RowLayout {
                len: value.start + SHORT_LEN_MAX,
                ..RowLayout::default()
            },
            size: Some(size),
            blocks: walk.blocks(),
        }
    }

    #[test]
    fn rows_are_taken_alike_whatever_the_processor_can() {
        for gap in [4, 40, 90, 200] {
            let pattern = pattern(gap);
            for odd in 0..6 {
                let mut bytes: Vec<u8> = [5, 1, 126, 5, 64].iter().flat_map(|len| row(gap, *len)).collect();
                let odd_at = [5, 1, 126, 5, 64][..odd.min(5)]
                    .iter()
                    .map(|len| gap + 3 + len)
                    .sum::<usize>();
                bytes.resize(bytes.len() + pattern.span(), 0);
                bytes[odd_at] ^= 1;
                let (mut ends, mut again) = ([0; 9], [0; 9]);
                let count = pattern.count(&bytes, &mut ends);
                assert_eq!(count, odd, "of {gap}, the odd one is {odd}");
                assert_eq!(ends[..odd].last().map_or(0, |end| *end as usize), odd_at);
                assert_eq!(count, pattern.count_by_blocks(&bytes, &mut again));
                assert_eq!(ends, again);
            }
        }
    }

    #[test]
    fn a_row_whose_lengths_disagree_is_not_taken() {
        let pattern = pattern(4);
        for (size, len) in [(6, 5), (5, 5), (7, 5), (1, 0), (128, 127), (129, 128)] {
            let mut bytes = row(4, 5);
            (bytes[5], bytes[6]) = (size, len);
            bytes.resize(400, 9);
            let taken = pattern.count(&bytes, &mut [0]);
            assert_eq!(taken == 1, size == 6, "size {size}, length {len}");
        }
    }

    #[test]
    fn a_row_that_goes_on_behind_what_is_there_is_not_taken() {
        let pattern = pattern(4);
        let bytes = [row(4, 5), row(4, 60)].concat();
        for (len, count) in [(bytes.len(), 2), (bytes.len() - 1, 1), (12 + BLOCK_BYTES, 1)] {
            assert_eq!(pattern.count(&bytes[..len], &mut [0; 9]), count, "{len} bytes");
        }
    }
}
