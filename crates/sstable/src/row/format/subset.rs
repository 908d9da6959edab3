//! The subset of the header's columns that a row has.
//!
//! ```text
//! subset := 0:uvint                        all of them
//!         | missing:uvint                  below 64 columns: bit i is set if column i is missing
//!         | missing:uvint index:uvint*     from 64 columns on: the present columns if they are fewer than half, else the missing ones
//! ```

use std::ops::Range;

use ilion_codec::Append;

use super::BITMAP_COLUMNS;
use crate::error::Step;
use crate::row::source::ByteSource;

/// Indexes of the row's columns, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Subset {
    First(usize),
    Bits(u64),
    List(Vec<usize>),
}

impl Subset {
    pub(crate) fn decode(input: &mut impl ByteSource, column_count: usize) -> Step<Self> {
        let encoded = input.uvint()?;
        if encoded == 0 {
            return Ok(Self::First(column_count));
        }
        if column_count >= BITMAP_COLUMNS {
            return Self::decode_list(input, encoded, column_count);
        }
        match Self::of_missing(encoded, column_count) {
            Some(subset) => Ok(subset),
            None => Err(input.corrupt("missing columns that the header names")),
        }
    }

    /// The columns of `column_count` (below 64) whose bits are not set; `None` if other bits are set.
    #[inline]
    pub(crate) fn of_missing(missing: u64, column_count: usize) -> Option<Self> {
        let all = (1_u64 << column_count) - 1;
        (missing & !all == 0).then_some(Self::Bits(all & !missing))
    }

    fn decode_list(input: &mut impl ByteSource, missing: u64, column_count: usize) -> Step<Self> {
        let missing = usize::try_from(missing)
            .ok()
            .filter(|count| *count <= column_count);
        let Some(missing) = missing else {
            return Err(input.corrupt("at most as many missing columns as the header names"));
        };
        let present = column_count - missing;
        if present < column_count / 2 {
            return Ok(Self::List(decode_indexes(input, present, column_count)?));
        }
        let missing = decode_indexes(input, missing, column_count)?;
        let is_present = |index: &usize| missing.binary_search(index).is_err();
        Ok(Self::List((0..column_count).filter(is_present).collect()))
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::First(count) => *count,
            Self::Bits(bits) => bits.count_ones() as usize,
            Self::List(indexes) => indexes.len(),
        }
    }

    /// The number of columns before the one with this index; `None` if that column is not in the subset.
    pub(crate) fn rank(&self, index: usize) -> Option<usize> {
        match self {
            Self::First(count) => (index < *count).then_some(index),
            Self::Bits(bits) => {
                let bit = 1_u64.checked_shl(u32::try_from(index).ok()?)?;
                (bits & bit != 0).then(|| (bits & (bit - 1)).count_ones() as usize)
            }
            Self::List(indexes) => indexes.binary_search(&index).ok(),
        }
    }

    /// The indexes of the columns with these ranks.
    pub(crate) fn indexes(&self, ranks: Range<usize>) -> impl Iterator<Item = usize> {
        let first = match self {
            Self::First(_) => self.next_from(ranks.start),
            Self::List(indexes) => indexes.get(ranks.start).copied(),
            Self::Bits(_) => {
                let mut all = std::iter::successors(self.next_from(0), |index| self.next_from(index + 1));
                all.nth(ranks.start)
            }
        };
        std::iter::successors(first, |index| self.next_from(index + 1)).take(ranks.len())
    }

    /// The lowest index of the subset that is at least `from`.
    #[inline]
    pub(crate) fn next_from(&self, from: usize) -> Option<usize> {
        match self {
            Self::First(count) => (from < *count).then_some(from),
            Self::Bits(bits) => {
                let left = bits.checked_shr(u32::try_from(from).ok()?)?;
                (left != 0).then(|| from + left.trailing_zeros() as usize)
            }
            Self::List(indexes) => {
                let at = indexes.partition_point(|index| *index < from);
                indexes.get(at).copied()
            }
        }
    }
}

fn decode_indexes(input: &mut impl ByteSource, count: usize, column_count: usize) -> Step<Vec<usize>> {
    let mut indexes: Vec<usize> = Vec::with_capacity(count);
    for _ in 0..count {
        let index = usize::try_from(input.uvint()?).unwrap_or(usize::MAX);
        let ascends = indexes.last().is_none_or(|last| *last < index);
        if !ascends || index >= column_count {
            return Err(input.corrupt("ascending indexes of columns"));
        }
        indexes.push(index);
    }
    Ok(indexes)
}

/// Appends the subset of `count` columns. Requires: not all are present.
#[inline]
pub(crate) fn encode_subset(
    count: usize,
    present: impl ExactSizeIterator<Item = u16> + Clone,
    out: &mut impl Append,
) {
    if count < BITMAP_COLUMNS {
        let all = (1u64 << count) - 1;
        out.uvint(present.fold(all, |missing, place| missing & !(1 << place)));
        return;
    }
    let present_count = present.len();
    out.uvint((count - present_count) as u64);
    if present_count < count / 2 {
        present.for_each(|place| out.uvint(u64::from(place)));
        return;
    }
    let mut present = present.peekable();
    for place in 0..count as u64 {
        if present.next_if(|present| u64::from(*present) == place).is_none() {
            out.uvint(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use ilion_codec::Writer;

    use super::*;

    fn subset(count: usize, present: &[u16]) -> Vec<u8> {
        let mut out = Writer::new();
        encode_subset(count, present.iter().copied(), &mut out);
        out.into_vec()
    }

    #[test]
    fn subsets_are_stored_as_in_the_notes() {
        assert_eq!(subset(2, &[]), [3]);
        assert_eq!(subset(2, &[1]), [1]);
        assert_eq!(
            subset(63, &[0]),
            [0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]
        );
        assert_eq!(subset(70, &[3, 10, 69]), [0x43, 3, 0x0A, 0x45]);
        let present: Vec<u16> = (0..70).filter(|place| ![5, 6, 40].contains(place)).collect();
        assert_eq!(subset(70, &present), [3, 5, 6, 0x28]);
    }
}
