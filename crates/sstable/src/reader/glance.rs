//! Shows a few plain partitions of one SSTable, with little state.
//!
//! A range read by a sorted view takes one or two rows from each of many SSTables. Opening a [`RangeCursor`] for these costs more than
//! reading them. A glance has one chunk and an offset in it. It shows plain partitions, and stops at the first that is not plain; the
//! caller then continues with a cursor.
//!
//! [`RangeCursor`]: crate::RangeCursor

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyBound, PlainVisitor};
use ilion_schema::TableSchema;

use super::shown::until;
use crate::chunks::spend_bytes;
use crate::error::Step;
use crate::row::decode::RowFormat;
use crate::{Result, SSTable, SortedView, Spot};

/// A partition that crosses the end of its chunk is shown if it has at most about this many bytes.
const CROSSING_BYTES_MAX: usize = 2 << 10;

/// A position in Data.db, and the chunk that contains it.
#[derive(Debug)]
pub struct Glance {
    format: Arc<RowFormat>,
    /// Position of the chunk's start in the uncompressed data.
    chunk_start: u64,
    /// Empty before the first partition is shown.
    chunk: Bytes,
    /// Offset of the next partition in the chunk. Invariant: at most the chunk's length.
    offset: usize,
    /// Range of the chunk with the key of the last partition taken.
    last_key: Range<usize>,
    /// The key of the last partition taken, if that partition crossed the start of the chunk.
    crossing_key: Option<Bytes>,
}

impl Glance {
    /// Starts at an entry of a sorted view, in which the SSTable is source number `source`. Returns `None` if the filter
    /// does not select all rows in stored order, or the table has no plain partitions here. Reads no data yet.
    ///
    /// # Errors
    /// The token map or the cell map is damaged or cannot be read, or the file does not fit the table.
    pub fn open(
        sstable: &SSTable,
        (view, spot, source): (&SortedView, Spot, usize),
        table: &Arc<TableSchema>,
        filter: &ClusteringFilter,
    ) -> Result<Option<Self>> {
        if filter.reversed || !filter.selects_all() {
            return Ok(None);
        }
        // With a cell map, readers skip values; a glance cannot do that.
        if filter.columns.is_some() && sstable.parts().cell_map()?.is_some() {
            return Ok(None);
        }
        let format = sstable.format_for(table)?;
        if !format.may_be_plain() {
            return Ok(None);
        }
        let mapped = view.map(source).partition(view.rank(spot, source))?;
        Ok(Some(Self {
            format,
            chunk_start: mapped.position,
            chunk: Bytes::new(),
            offset: 0,
            last_key: 0..0,
            crossing_key: None,
        }))
    }

    /// Takes the chunk if it is cached, for [`Glance::first_byte`]. Reads no chunk.
    pub fn begin_cached(&mut self, sstable: &SSTable) {
        let position = self.chunk_start + self.offset as u64;
        let chunk = sstable
            .parts()
            .data()
            .ok()
            .and_then(|data| data.cached_chunk_at(position));
        if let Some((start, chunk)) = chunk {
            self.hold(start, chunk, position);
        }
    }

    /// The first byte of the next partition; 0 if no chunk was taken. The access loads that memory into the processor's cache. If a caller
    /// does this for several glances before it uses them, the processor waits for all of them at once.
    #[inline]
    pub fn first_byte(&self) -> u8 {
        self.chunk.get(self.offset).copied().unwrap_or(0)
    }

    fn hold(&mut self, start: u64, chunk: Bytes, position: u64) {
        self.chunk_start = start;
        self.offset = usize::try_from(position - start)
            .unwrap_or(usize::MAX)
            .min(chunk.len());
        self.chunk = chunk;
    }

    /// Shows the visitor the next partitions, at most `most`, while they are plain, in the chunk, below `end`, and below `before`. Returns
    /// the number of partitions that were taken, and true if the visitor stopped.
    ///
    /// # Errors
    /// A chunk is damaged or cannot be read, or the deadline has passed.
    pub fn show(
        &mut self,
        sstable: &SSTable,
        most: usize,
        (end, before): (&KeyBound, Option<&DecoratedKey>),
        visitor: &mut dyn PlainVisitor,
    ) -> Step<(usize, bool)> {
        if self.offset == self.chunk.len() {
            self.load(sstable)?;
        }
        let is_wanted = until(end, before);
        let bytes = &self.chunk[self.offset..];
        let few = self
            .format
            .visit_few(bytes, most, sstable.partitioner(), is_wanted, visitor);
        if few.count == 0 {
            return self.show_crossing(sstable, (end, before), visitor);
        }
        self.last_key = self.offset + few.last_key.start..self.offset + few.last_key.end;
        self.crossing_key = None;
        self.offset += few.len;
        Ok((few.count, few.is_over))
    }

    /// Shows the next partition if it crosses the end of the chunk, and continues in the next chunk.
    #[cold]
    fn show_crossing(
        &mut self,
        sstable: &SSTable,
        (end, before): (&KeyBound, Option<&DecoratedKey>),
        visitor: &mut dyn PlainVisitor,
    ) -> Step<(usize, bool)> {
        let data = sstable.parts().data()?;
        let (rest, next_start) = (
            &self.chunk[self.offset..],
            self.chunk_start + self.chunk.len() as u64,
        );
        let is_small = !rest.is_empty() && rest.len() <= CROSSING_BYTES_MAX;
        // A partition that the visitor did not take must not be shown to it again.
        if !is_small || next_start >= data.data_length() || !self.format.is_cut_off(rest) {
            return Ok((0, false));
        }
        let (_, next) = data.chunk_at(next_start)?;
        let joined = [rest, &next[..next.len().min(CROSSING_BYTES_MAX)]].concat();
        let (partitioner, is_wanted) = (sstable.partitioner(), until(end, before));
        let few = self.format.visit_few(&joined, 1, partitioner, is_wanted, visitor);
        let Some(offset) = few.len.checked_sub(rest.len()).filter(|_| few.count > 0) else {
            return Ok((0, false));
        };
        self.crossing_key = Some(Bytes::copy_from_slice(&joined[few.last_key]));
        (self.chunk_start, self.chunk, self.offset) = (next_start, next, offset);
        Ok((few.count, few.is_over))
    }

    /// The key of the last partition taken. Requires: one was taken.
    pub fn last_key(&self, sstable: &SSTable) -> DecoratedKey {
        let key = match &self.crossing_key {
            Some(key) => key.clone(),
            // A copy: a slice would keep the chunk in memory.
            None => Bytes::copy_from_slice(&self.chunk[self.last_key.clone()]),
        };
        DecoratedKey::new(sstable.partitioner(), key)
    }

    /// Reads the chunk that contains the position, unless the position is at the end of the data.
    fn load(&mut self, sstable: &SSTable) -> Step<()> {
        let position = self.chunk_start + self.offset as u64;
        let data = sstable.parts().data()?;
        if position < data.data_length() {
            let (start, chunk) = data.chunk_at(position)?;
            spend_bytes(chunk.len())?;
            self.hold(start, chunk, position);
        }
        Ok(())
    }
}
