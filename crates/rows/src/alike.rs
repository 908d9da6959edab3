//! Plain rows that are laid out alike, one behind the other.
//!
//! Measurements and events have the same columns, most of them of fixed width, so that row after row has its values at the same places.
//! A source that has made sure of that shows many of them at once ([`PlainVisitor::rows`](crate::PlainVisitor::rows)): whoever takes
//! them finds each value by its place, and parses nothing.

use std::ops::Range;

use ilion_schema::ColumnId;
use ilion_types::Token;
use smallvec::{SmallVec, smallvec};

use crate::{DecoratedKey, Flow, PlainRow};

/// Where among the bytes of a row its parts are.
#[derive(Clone, Debug, Default)]
pub struct RowLayout {
    /// Bytes from where a row begins to where the next one does. Of rows of different lengths, at most: the value of the last column has
    /// any length, and its place and that of all that is stored end with the row, wherever they say.
    pub len: usize,
    /// The partition key, if each row is a partition.
    pub key: Option<Range<usize>>,
    /// The values of the clustering columns.
    pub clustering: SmallVec<[Range<usize>; 4]>,
    /// When the row and its cells were written.
    pub timestamp: LaidTimestamp,
    /// The values of the columns, by id.
    pub cells: SmallVec<[(ColumnId, Range<usize>); 8]>,
    /// The cells as SSTables store what was written together with its row.
    pub stored: Range<usize>,
}

impl RowLayout {
    /// What a row has at a place of its layout.
    #[inline(always)]
    pub fn part<'b>(row: &'b [u8], place: &Range<usize>) -> &'b [u8] {
        &row[place.start..place.end.min(row.len())]
    }

    /// Where the value of a column is, if rows have one.
    pub fn cell(&self, column: ColumnId) -> Option<&Range<usize>> {
        let at = self.cells.binary_search_by_key(&column, |(id, _)| *id).ok()?;
        Some(&self.cells[at].1)
    }
}

/// A timestamp that is stored as what it is above another.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaidTimestamp {
    /// Where it ends. At least 8: a whole number of eight bytes ends there, too.
    pub end: usize,
    /// The bits of that number, big-endian, that belong to it.
    pub mask: u64,
    /// What it is above.
    pub least_micros: i64,
}

impl LaidTimestamp {
    /// The timestamp of a row.
    #[inline(always)]
    fn of(&self, row: &[u8]) -> i64 {
        let bytes = row[..self.end].last_chunk().copied().unwrap_or_default();
        let delta = u64::from_be_bytes(bytes) & self.mask;
        self.least_micros.wrapping_add(delta.cast_signed())
    }
}

/// Plain rows of one layout.
#[derive(Clone, Copy, Debug)]
pub struct AlikeRows<'b> {
    /// Of these rows, and nothing else.
    bytes: &'b [u8],
    count: usize,
    /// Where each row begins, and where the last one ends, if they differ in length. Invariant: one more than there are rows.
    bounds: Option<&'b [u32]>,
    layout: &'b RowLayout,
    partition: Option<&'b DecoratedKey>,
}

impl<'b> AlikeRows<'b> {
    /// So many rows that take these bytes, in the partition with that key, or each in its own as the layout says.
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

    /// The same, where each row has its own length: where among the bytes each begins, and the last one ends.
    ///
    /// # Panics
    /// If there is not one number more than there are rows.
    #[must_use]
    pub fn within(self, bounds: &'b [u32]) -> Self {
        assert_eq!(bounds.len(), self.count + 1, "a start for each row, and an end");
        let bounds = Some(bounds);
        Self { bounds, ..self }
    }

    /// The first ones, so many at most.
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

    /// How many.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The bytes that they take.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The key of their partition, unless each has its own.
    pub fn partition(&self) -> Option<&'b DecoratedKey> {
        self.partition
    }

    /// Where the parts of each row are.
    pub fn layout(&self) -> &'b RowLayout {
        self.layout
    }

    /// Shows the value of each row at a place of the layout.
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
        // From where rows would begin if they began with the value.
        let bytes = self.bytes.get(start..).unwrap_or_default();
        // The compiler knows that a start and a width are less than half of what a place may be.
        let width = u32::try_from(end - start).unwrap_or(u32::MAX) as usize;
        by_eights(&bounds[..self.count]).for_each(|from| {
            let from = *from as usize;
            if let Some(value) = bytes.get(from..from + width) {
                show(value);
            }
        });
    }

    /// The bytes of each row.
    #[inline]
    pub fn iter(&self) -> RowsBytes<'b> {
        RowsBytes {
            bytes: self.bytes,
            left: self.count,
            len: self.layout.len,
            bounds: self.bounds,
        }
    }

    /// Shows one row after the other until no more are wanted; returns how many were taken, and what becomes of those that follow.
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

    /// How many of the first rows are before some place, which tells of the values of clustering columns whether they are.
    pub fn partition_point(&self, is_before: impl Fn(&[Option<&[u8]>]) -> bool) -> usize {
        let is_at = |row: &[u8]| {
            let places = self.layout.clustering.iter();
            let values: SmallVec<[Option<&[u8]>; 4]> =
                places.map(|place| Some(RowLayout::part(row, place))).collect();
            is_before(&values)
        };
        let rows: SmallVec<[&[u8]; 64]> = self.iter().collect();
        // Most often all are.
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

/// The bytes of each of some rows.
#[derive(Clone, Debug)]
pub struct RowsBytes<'b> {
    bytes: &'b [u8],
    left: usize,
    len: usize,
    /// Where those that are left begin, and the last one ends, if they differ in length.
    bounds: Option<&'b [u32]>,
}

/// Numbers one after another, to be folded: eight at once, so that the loop costs next to nothing.
#[inline(always)]
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

    /// Whether they differ in length is asked once.
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
