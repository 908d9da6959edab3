//! Batches of plain rows with the same layout, stored one after the other.
//!
//! Measurements and events have the same columns, most of them of fixed width: each row has its values at the same offsets. A
//! source that has checked this shows many rows at once ([`PlainVisitor::rows`](crate::PlainVisitor::rows)). The visitor then
//! finds each value by its offset and parses nothing.

use std::ops::Range;

use ilion_schema::ColumnId;
use ilion_types::Token;
use smallvec::{SmallVec, smallvec};

use crate::{DecoratedKey, Flow, PlainRow};

/// The byte range of each part of a row, from the start of the row.
#[derive(Clone, Debug, Default)]
pub struct RowLayout {
    /// Bytes from the start of a row to the start of the next one. If rows differ in length: the largest length. Then only the
    /// value of the last column varies in length. Ranges that reach the end of the row (the range of that value, and `stored`) may
    /// have an end behind the row; [`Self::part`] cuts them.
    pub len: usize,
    /// The partition key, if each row is a partition of its own.
    pub key: Option<Range<usize>>,
    /// The values of the clustering columns.
    pub clustering: SmallVec<[Range<usize>; 4]>,
    /// The timestamp of the row and its cells.
    pub timestamp: LaidTimestamp,
    /// The values of the columns, by id.
    pub cells: SmallVec<[(ColumnId, Range<usize>); 8]>,
    /// The cells in the form in which SSTables store cells that were written together with their row.
    pub stored: Range<usize>,
}

impl RowLayout {
    /// The bytes of `row` in a range of its layout, cut to the end of the row.
    #[inline]
    pub fn part<'b>(row: &'b [u8], place: &Range<usize>) -> &'b [u8] {
        &row[place.start..place.end.min(row.len())]
    }

    /// The range of a column's value; `None` if rows have no value for it.
    pub fn cell(&self, column: ColumnId) -> Option<&Range<usize>> {
        let at = self.cells.binary_search_by_key(&column, |(id, _)| *id).ok()?;
        Some(&self.cells[at].1)
    }
}

/// A timestamp that is stored as its difference to another one.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaidTimestamp {
    /// Where the stored difference ends. At least 8, so that eight bytes can be read that end here.
    pub end: usize,
    /// The bits of these eight bytes (big-endian) that belong to the difference.
    pub mask: u64,
    /// The timestamp that the difference is added to.
    pub least_micros: i64,
}

impl LaidTimestamp {
    /// The timestamp of a row.
    #[inline]
    fn of(&self, row: &[u8]) -> i64 {
        let bytes = row[..self.end].last_chunk().copied().unwrap_or_default();
        let delta = u64::from_be_bytes(bytes) & self.mask;
        self.least_micros.wrapping_add(delta.cast_signed())
    }
}

/// Plain rows with the same layout.
#[derive(Clone, Copy, Debug)]
pub struct AlikeRows<'b> {
    /// Exactly the bytes of these rows.
    bytes: &'b [u8],
    count: usize,
    /// If rows differ in length: the start of each row and the end of the last. Invariant: one more element than there are
    /// rows.
    bounds: Option<&'b [u32]>,
    layout: &'b RowLayout,
    partition: Option<&'b DecoratedKey>,
}

impl<'b> AlikeRows<'b> {
    /// `count` rows in `bytes`. `partition` is the key of their partition. With `None`, each row is a partition, and the layout has
    /// the range of its key.
    pub fn new(
        bytes: &'b [u8],
        count: usize,
        layout: &'b RowLayout,
        partition: Option<&'b DecoratedKey>,
    ) -> Self {
        Self {
            bytes,
            count,
            bounds: None,
            layout,
            partition,
        }
    }

    /// The same rows, but with individual lengths: `bounds` has the start of each row in the bytes, and the end of the last.
    ///
    /// # Panics
    /// If `bounds` does not have exactly one element more than there are rows.
    #[must_use]
    pub fn within(self, bounds: &'b [u32]) -> Self {
        assert_eq!(bounds.len(), self.count + 1, "a start for each row, and an end");
        let bounds = Some(bounds);
        Self { bounds, ..self }
    }

    /// The first `count` rows, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        if count >= self.count {
            return *self;
        }
        let bounds = self.bounds.map(|bounds| &bounds[..=count]);
        let len = match bounds {
            None => count * self.layout.len,
            Some(bounds) => bounds[count] as usize,
        };
        Self {
            bytes: &self.bytes[..len.min(self.bytes.len())],
            count,
            bounds,
            ..*self
        }
    }

    /// Number of rows.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Number of bytes of all rows.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key of their partition; `None` if each row has its own.
    pub fn partition(&self) -> Option<&'b DecoratedKey> {
        self.partition
    }

    /// The byte ranges of the parts of each row.
    pub fn layout(&self) -> &'b RowLayout {
        self.layout
    }

    /// Calls `show` with the bytes of each row at `place`, a range of the layout.
    #[inline]
    pub fn values(&self, place: &Range<usize>, mut show: impl FnMut(&'b [u8])) {
        let Range { start, end } = *place;
        let Some(bounds) = self.bounds else {
            return self.iter().for_each(|row| show(&row[start..end]));
        };
        if end >= self.layout.len {
            return self
                .iter()
                .for_each(|row| show(row.get(start..).unwrap_or_default()));
        }
        // Shifted by `start`, so that the bounds of the rows point to the values.
        let bytes = self.bytes.get(start..).unwrap_or_default();
        // A width of 32 bits lets the compiler prove that `from + width` cannot overflow.
        let width = u32::try_from(end - start).unwrap_or(u32::MAX) as usize;
        by_eights(&bounds[..self.count]).for_each(|from| {
            let from = *from as usize;
            if let Some(value) = bytes.get(from..from + width) {
                show(value);
            }
        });
    }

    /// Iterates over the bytes of each row.
    #[inline]
    pub fn iter(&self) -> RowsBytes<'b> {
        RowsBytes {
            bytes: self.bytes,
            left: self.count,
            len: self.layout.len,
            bounds: self.bounds,
        }
    }

    /// Passes one row after the other to `take` until it stops. Returns the number of rows taken, and the last result of `take`.
    #[inline]
    pub fn each(&self, mut take: impl FnMut(&PlainRow<'_>) -> Flow) -> (usize, Flow) {
        let RowLayout {
            ref key,
            timestamp,
            ref stored,
            ..
        } = *self.layout;
        let mut cells: SmallVec<[(ColumnId, &[u8]); 8]> =
            self.layout.cells.iter().map(|(id, _)| (*id, &[][..])).collect();
        let cells = &mut cells[..];
        let cell_places = &self.layout.cells[..];
        let mut clustering: SmallVec<[Option<&[u8]>; 4]> = smallvec![None; self.layout.clustering.len()];
        let clustering = &mut clustering[..];
        let clustering_places = &self.layout.clustering[..];
        let (key_place, stored) = (key.clone().unwrap_or_default(), stored.clone());
        let key = self.partition.map(|partition| &partition.key[..]);
        let token: Option<&Token> = self.partition.map(|partition| &partition.token);
        for (index, row) in self.iter().enumerate() {
            for (value, place) in clustering.iter_mut().zip(clustering_places) {
                *value = Some(RowLayout::part(row, place));
            }
            for ((_, value), (_, place)) in cells.iter_mut().zip(cell_places) {
                *value = RowLayout::part(row, place);
            }
            let flow = take(&PlainRow {
                key: key.unwrap_or(&row[key_place.start..key_place.end]),
                token,
                clustering,
                timestamp_micros: Some(timestamp.of(row)),
                cells,
                stored: Some(RowLayout::part(row, &stored)),
            });
            match flow {
                Flow::Next => {}
                Flow::Last => return (index + 1, flow),
                Flow::Leave => return (index, flow),
            }
        }
        (self.count(), Flow::Next)
    }

    /// Number of leading rows for which `is_before`, called with their clustering values, is true. Requires: it is true for a
    /// prefix only.
    pub fn partition_point(&self, is_before: impl Fn(&[Option<&[u8]>]) -> bool) -> usize {
        let is_at = |row: &[u8]| {
            let places = self.layout.clustering.iter();
            let values: SmallVec<[Option<&[u8]>; 4]> =
                places.map(|place| Some(RowLayout::part(row, place))).collect();
            is_before(&values)
        };
        let rows: SmallVec<[&[u8]; 64]> = self.iter().collect();
        // Usually `is_before` is true for all rows: then one call, for the last row, is enough.
        match rows.last() {
            Some(last) if !is_at(last) => rows.partition_point(|row| is_at(row)),
            _ => rows.len(),
        }
    }
}

impl<'b> IntoIterator for &AlikeRows<'b> {
    type Item = &'b [u8];
    type IntoIter = RowsBytes<'b>;

    fn into_iter(self) -> RowsBytes<'b> {
        self.iter()
    }
}

/// Iterator over the bytes of each row.
#[derive(Clone, Debug)]
pub struct RowsBytes<'b> {
    bytes: &'b [u8],
    left: usize,
    len: usize,
    /// If rows differ in length: the starts of the remaining rows, and the end of the last.
    bounds: Option<&'b [u32]>,
}

/// Iterates in blocks of eight, so that a `fold` costs almost nothing per number.
#[inline]
fn by_eights(numbers: &[u32]) -> impl Iterator<Item = &u32> {
    let (eights, rest) = numbers.as_chunks::<8>();
    eights.iter().flatten().chain(rest)
}

impl<'b> Iterator for RowsBytes<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        self.left = self.left.checked_sub(1)?;
        let Some(bounds) = &mut self.bounds else {
            let (row, rest) = self.bytes.split_at_checked(self.len)?;
            self.bytes = rest;
            return Some(row);
        };
        let start = *bounds.split_off_first()? as usize;
        self.bytes.get(start..*bounds.first()? as usize)
    }

    /// Tests once, not per row, whether rows differ in length.
    #[inline]
    fn fold<B, F: FnMut(B, &'b [u8]) -> B>(self, init: B, mut take: F) -> B {
        let Self {
            bytes,
            left,
            len,
            bounds,
        } = self;
        match bounds {
            None => bytes.chunks_exact(len.max(1)).take(left).fold(init, take),
            Some(bounds) => {
                let (first, ends) = bounds.split_first().unwrap_or((&0, &[]));
                let rows = bytes.get(*first as usize..).unwrap_or_default();
                let ends = by_eights(&ends[..left.min(ends.len())]);
                let taken = ends.fold((init, *first, rows), |(taken, start, rest), end| {
                    match rest.split_at_checked(end.wrapping_sub(start) as usize) {
                        Some((row, rest)) => (take(taken, row), *end, rest),
                        None => (taken, *end, rest),
                    }
                });
                taken.0
            }
        }
    }
}
