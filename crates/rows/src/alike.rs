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
    /// The same as SSTables store them.
    pub stored_clustering: Range<usize>,
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
    /// Of each row, if they differ. Invariant: as many as there are rows.
    lens: Option<&'b [u16]>,
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
            lens: None,
            layout,
            partition,
        }
    }

    /// The same, where each row has its own length.
    ///
    /// # Panics
    /// If there are not as many lengths as rows.
    #[must_use]
    pub fn of_lens(self, lens: &'b [u16]) -> Self {
        assert_eq!(lens.len(), self.count, "a length for each row");
        let lens = Some(lens);
        Self { lens, ..self }
    }

    /// The first ones, so many at most.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        if count >= self.count {
            return *self;
        }
        let lens = self.lens.map(|lens| &lens[..count]);
        let len = match lens {
            None => count * self.layout.len,
            Some(lens) => lens.iter().map(|len| usize::from(*len)).sum(),
        };
        Self {
            bytes: &self.bytes[..len.min(self.bytes.len())],
            count,
            lens,
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
        let Some(lens) = self.lens else {
            return self.iter().for_each(|row| show(&row[start..end]));
        };
        if end >= self.layout.len {
            return self.iter().for_each(|row| show(&row[start..]));
        }
        // A row need not be told from those behind it.
        let (mut rest, width) = (self.bytes.get(start..).unwrap_or_default(), end - start);
        for len in lens {
            let Some(value) = rest.get(..width) else {
                return;
            };
            show(value);
            let Some(following) = rest.get(usize::from(*len)..) else {
                return;
            };
            rest = following;
        }
    }

    /// The bytes of each row.
    #[inline]
    pub fn iter(&self) -> RowsBytes<'b> {
        RowsBytes {
            bytes: self.bytes,
            left: self.count,
            len: self.layout.len,
            lens: self.lens,
        }
    }

    /// The bytes of each row, and when it was written.
    #[inline]
    pub fn with_timestamps(&self) -> impl Iterator<Item = (&'b [u8], i64)> + use<'b> {
        let timestamp = self.layout.timestamp;
        self.iter().map(move |row| (row, timestamp.of(row)))
    }

    /// Shows one row after the other until no more are wanted; gives how many were taken, and what becomes of those that follow.
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
    /// Of each, if they differ.
    lens: Option<&'b [u16]>,
}

impl<'b> Iterator for RowsBytes<'b> {
    type Item = &'b [u8];

    #[inline]
    fn next(&mut self) -> Option<&'b [u8]> {
        self.left = self.left.checked_sub(1)?;
        let len = match &mut self.lens {
            None => self.len,
            Some(lens) => usize::from(*lens.split_off_first()?),
        };
        let (row, rest) = self.bytes.split_at_checked(len)?;
        self.bytes = rest;
        Some(row)
    }

    /// Whether they differ in length is asked once.
    #[inline]
    fn fold<B, F: FnMut(B, &'b [u8]) -> B>(self, init: B, mut take: F) -> B {
        let mut bytes = self.bytes;
        match self.lens {
            None => bytes
                .chunks_exact(self.len.max(1))
                .take(self.left)
                .fold(init, take),
            Some(lens) => {
                let mut taken = init;
                for len in lens {
                    let Some((row, rest)) = bytes.split_at_checked(usize::from(*len)) else {
                        break;
                    };
                    bytes = rest;
                    taken = take(taken, row);
                }
                taken
            }
        }
    }
}
