//! The unfiltereds of one partition, one after the other or at a position.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{Bound, ClusteringFilter, DeletionTime, Row, Unfiltered};

use crate::DataStream;
use crate::cells::CellLookup;
use crate::error::Step;
use crate::row::decode::{Head, RowFormat, Unwanted, Wanted};
use crate::row::seen::Patterns;
use crate::row::source::ByteSource as _;

use super::row_index::RowIndex;

/// The unfiltereds of one partition, and the stream's position in it.
#[derive(Debug)]
pub(super) struct Unfiltereds {
    pub(super) stream: DataStream,
    pub(super) format: Arc<RowFormat>,
    pub(super) row_index: Option<RowIndex>,
    pub(super) filter: Arc<ClusteringFilter>,
    pub(super) unwanted: Unwanted,
    pub(super) patterns: Patterns,
    /// The cell map; `None` if neither rows nor cells can be skipped.
    pub(super) cells: Option<CellLookup>,
    /// Position of the partition's start.
    pub(super) start: u64,
    /// Position of the first unfiltered.
    pub(super) rows_at: u64,
}

impl Unfiltereds {
    /// The next unfiltered up to its body; `None` after the last one.
    #[inline(always)]
    pub(super) fn next_head(&mut self) -> Step<Option<Head>> {
        if self.cells.is_none() {
            return self.format.head(&mut self.stream);
        }
        let parts = self.look_up();
        let mut head = self.format.head(&mut self.stream)?;
        if let Some(Head::Row(row)) = &mut head {
            row.parts = parts;
        }
        Ok(head)
    }

    /// The parts of the row that starts here, from the cell map. Preloads the row's head into the stream, so that it need not
    /// be read.
    fn look_up(&mut self) -> Option<Bytes> {
        let cells = self.cells.as_mut()?;
        let position = self.stream.position();
        let entry = match cells.find(position) {
            Ok(entry) => entry?,
            Err(error) => {
                cells.give_up(&error);
                self.cells = None;
                return None;
            }
        };
        if self.stream.rest().len() < entry.head.len() {
            self.stream.lay(position, entry.head);
        }
        entry.parts
    }

    /// Reads the rest of the unfiltered of `head`; `None` for a row whose columns were all dropped.
    #[inline]
    pub(super) fn finish(&mut self, head: Head) -> Step<Option<Unfiltered>> {
        match head {
            Head::Marker(marker) => Ok(Some(Unfiltered::Marker(marker))),
            Head::Row(head) => {
                let wanted = Wanted::of(&self.filter, self.unwanted);
                let row = self.format.row(&mut self.stream, head, wanted)?;
                Ok((!row.is_empty()).then_some(Unfiltered::Row(row)))
            }
        }
    }

    /// The unfiltered that starts at a position; `None` for a row whose columns were all dropped.
    pub(super) fn read_at(&mut self, position: u64) -> Step<Option<Unfiltered>> {
        self.stream.seek(position);
        if self.cells.is_none()
            && self.filter.columns.is_none()
            && let Some(row) = self.format.row_at_hand(&mut self.stream)
        {
            return Ok((!row.is_empty()).then_some(Unfiltered::Row(row)));
        }
        match self.next_head()? {
            Some(head) => self.finish(head),
            None => Ok(None),
        }
    }

    /// The order of the row that starts at `position`, relative to `bound`.
    pub(super) fn order_at(&mut self, position: u64, bound: &Bound) -> Step<Ordering> {
        self.stream.seek(position);
        match self.next_head()? {
            Some(head) => Ok(head.compare(bound, &self.format.comparator)),
            None => Err(self.stream.corrupt("a row").into()),
        }
    }

    /// Skips the rest of the unfiltered of `head`.
    pub(super) fn skip(&mut self, head: &Head) -> Step<()> {
        match head {
            Head::Marker(_) => Ok(()),
            Head::Row(row) => self.stream.skip(row.body_size),
        }
    }

    /// Reads the deletion and the static row that follow a key.
    #[inline]
    pub(super) fn partition_head(&mut self) -> Step<(DeletionTime, Option<Row>)> {
        let deletion = self.format.times.partition_deletion(&mut self.stream)?;
        if !self.format.has_statics() {
            return Ok((deletion, None));
        }
        let parts = self.look_up();
        let wanted = Wanted::of(&self.filter, self.unwanted);
        let static_row = self.format.static_row(&mut self.stream, wanted, parts)?;
        Ok((deletion, static_row))
    }

    /// Reads the key at the start of a partition.
    #[inline(always)]
    pub(super) fn key(&mut self) -> Step<Bytes> {
        if self.cells.is_some() {
            self.look_up();
        }
        let len = usize::from(u16::from_be_bytes(self.stream.array()?));
        self.stream.take(len)
    }

    /// Starts a partition that is in the window, is not deleted, and has no static row: moves past its head and returns the
    /// key.
    #[inline]
    pub(super) fn begin_at_hand(&mut self, offset: usize) -> Option<Bytes> {
        let (window, _) = self.stream.window();
        let (len, rest) = window.get(offset..)?.split_first_chunk()?;
        let (key, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*len)))?;
        let times = &self.format.times;
        let (deletion, rest) = rest.split_at_checked(times.live_partition_len())?;
        if self.format.has_statics() || !times.is_live_partition(deletion) {
            return None;
        }
        let rows_at = window.len() - rest.len();
        let key_end = rows_at - deletion.len();
        let key = window.slice(key_end - key.len()..key_end);
        self.stream.go_to(offset);
        self.start = self.stream.position();
        self.stream.go_to(rows_at);
        self.rows_at = self.stream.position();
        Some(key)
    }

    #[inline(always)]
    pub(super) fn next(&mut self) -> Step<Option<Unfiltered>> {
        while let Some(head) = self.next_head()? {
            if let Some(unfiltered) = self.finish(head)? {
                return Ok(Some(unfiltered));
            }
        }
        Ok(None)
    }
}
