//! Plain rows that are laid out alike, one behind the other.
//!
//! Measurements and events have the same columns, most of them of fixed width, so that row after row has its values at the same places.
//! A source that has made sure of that shows many of them at once ([`PlainVisitor::rows`](crate::PlainVisitor::rows)): whoever takes
//! them finds each value by its place, and parses nothing.

use std::ops::Range;
use std::slice::ChunksExact;

use ilion_schema::ColumnId;
use ilion_types::Token;
use smallvec::{SmallVec, smallvec};

use crate::{DecoratedKey, Flow, PlainRow};

/// Where among the bytes of a row its parts are.
#[derive(Clone, Debug, Default)]
pub struct RowLayout {
    /// Bytes from where a row begins to where the next one does.
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
    bytes: &'b [u8],
    layout: &'b RowLayout,
    partition: Option<&'b DecoratedKey>,
}

impl<'b> AlikeRows<'b> {
    /// So many whole rows as the bytes have, in the partition with that key, or each in its own as the layout says.
    pub fn new(bytes: &'b [u8], layout: &'b RowLayout, partition: Option<&'b DecoratedKey>) -> Self {
        Self {
            bytes,
            layout,
            partition,
        }
    }

    /// The first ones, so many at most.
    #[must_use]
    pub fn first(&self, count: usize) -> Self {
        let len = count.min(self.count()) * self.layout.len;
        Self {
            bytes: &self.bytes[..len],
            ..*self
        }
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.bytes.len() / self.layout.len.max(1)
    }

    /// The key of their partition, unless each has its own.
    pub fn partition(&self) -> Option<&'b DecoratedKey> {
        self.partition
    }

    /// Where the parts of each row are.
    pub fn layout(&self) -> &'b RowLayout {
        self.layout
    }

    /// The value of each row at a place of the layout.
    #[inline]
    pub fn values(&self, place: &Range<usize>) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        let Range { start, end } = *place;
        self.iter().map(move |row| &row[start..end])
    }

    /// The bytes of each row.
    #[inline]
    pub fn iter(&self) -> ChunksExact<'b, u8> {
        self.bytes.chunks_exact(self.layout.len.max(1))
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
                *value = Some(&row[place.start..place.end]);
            }
            for ((_, value), (_, place)) in cells.iter_mut().zip(cell_places) {
                *value = &row[place.start..place.end];
            }
            let flow = take(&PlainRow {
                key: key.unwrap_or(&row[key_place.start..key_place.end]),
                token,
                clustering,
                timestamp_micros: Some(timestamp.of(row)),
                cells,
                stored: Some(&row[stored.start..stored.end]),
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
        let is_at = |index: usize| {
            let row = &self.bytes[index * self.layout.len..];
            let places = self.layout.clustering.iter();
            let values: SmallVec<[Option<&[u8]>; 4]> =
                places.map(|place| Some(&row[place.clone()])).collect();
            is_before(&values)
        };
        let (mut first, mut end) = (0, self.count());
        // Most often all are.
        if end > 0 && is_at(end - 1) {
            return end;
        }
        while first < end {
            let middle = usize::midpoint(first, end);
            match is_at(middle) {
                true => first = middle + 1,
                false => end = middle,
            }
        }
        first
    }
}
