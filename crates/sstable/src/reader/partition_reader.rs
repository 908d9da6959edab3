//! What a filter wants of one partition.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, ClusteringFilter, DecoratedKey, DeletionTime, PlainRun, PlainVisitor, Row, Unfiltered,
};
use ilion_types::Token;

use super::backward::Backward;
use super::forward::Forward;
use super::location::Location;
use super::row_index::RowIndex;
use super::shown::{show_partitions, show_rows};
use crate::cells::CellLookup;
use crate::error::Step;
use crate::open::OpenedParts;
use crate::row::decode::{Head, RowFormat, Unwanted, Wanted};
use crate::row::format::unfiltered_flag::END_OF_PARTITION;
use crate::row::key_at_hand;
use crate::row::seen::{Patterns, WantedKeys};
use crate::row::source::ByteSource as _;
use crate::{DataStream, Result};

/// The unfiltereds of one partition, and where in it the stream stands.
#[derive(Debug)]
pub(super) struct Unfiltereds {
    pub(super) stream: DataStream,
    pub(super) format: Arc<RowFormat>,
    pub(super) row_index: Option<RowIndex>,
    filter: Arc<ClusteringFilter>,
    unwanted: Unwanted,
    patterns: Patterns,
    /// Where large rows begin and their cells are, if rows or cells may be passed over.
    cells: Option<CellLookup>,
    /// Where the partition starts.
    pub(super) start: u64,
    /// Where the first unfiltered starts.
    pub(super) rows_at: u64,
}

impl Unfiltereds {
    /// The next one up to its body; nothing after the last one.
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

    /// What the cell map has of the row that starts here. Its start is laid in the stream's way, so that it need not be read.
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

    /// The rest of the one whose head was just read; nothing for a row of which all was dropped.
    #[inline(always)]
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

    /// True if a row is better read only when it is given: its values lie in chunks of their own.
    pub(super) fn is_large(&self, head: &Head) -> bool {
        match head {
            Head::Marker(_) => false,
            Head::Row(row) => {
                row.parts.is_some() || row.body_size > u64::from(self.stream.chunks().chunk_length())
            }
        }
    }

    /// The unfiltered at a position where one starts; nothing for a row of which all was dropped.
    pub(super) fn read_at(&mut self, position: u64) -> Step<Option<Unfiltered>> {
        self.stream.seek(position);
        match self.next_head()? {
            Some(head) => self.finish(head),
            None => Ok(None),
        }
    }

    /// Moves past the one whose head was just read.
    pub(super) fn skip(&mut self, head: &Head) -> Step<()> {
        match head {
            Head::Marker(_) => Ok(()),
            Head::Row(row) => self.stream.skip(row.body_size),
        }
    }

    /// The deletion and the static row that follow a key.
    #[inline(always)]
    fn partition_head(&mut self) -> Step<(DeletionTime, Option<Row>)> {
        let deletion = self.format.times.partition_deletion(&mut self.stream)?;
        if !self.format.has_statics() {
            return Ok((deletion, None));
        }
        let parts = self.look_up();
        let wanted = Wanted::of(&self.filter, self.unwanted);
        let static_row = self.format.static_row(&mut self.stream, wanted, parts)?;
        Ok((deletion, static_row))
    }

    /// The key at the start of a partition.
    #[inline(always)]
    fn key(&mut self) -> Step<Bytes> {
        if self.cells.is_some() {
            self.look_up();
        }
        let len = usize::from(u16::from_be_bytes(self.stream.array()?));
        self.stream.take(len)
    }

    /// The start of a partition that is at hand and not deleted, if partitions have no static row: moves past it, and gives the key.
    #[inline(always)]
    fn begin_at_hand(&mut self, offset: usize) -> Option<Bytes> {
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
    fn next(&mut self) -> Step<Option<Unfiltered>> {
        while let Some(head) = self.next_head()? {
            if let Some(unfiltered) = self.finish(head)? {
                return Ok(Some(unfiltered));
            }
        }
        Ok(None)
    }
}

/// How the unfiltereds are walked through.
#[derive(Debug)]
enum Walk {
    /// Nothing is left.
    Done,
    /// One after another.
    All,
    /// Only the end is left, and was not read.
    End,
    Forward(Forward),
    Backward(Backward),
}

/// A key, its deletion and static row.
pub(super) struct Started {
    pub(super) key: Bytes,
    pub(super) deletion: DeletionTime,
    pub(super) static_row: Option<Row>,
}

/// Reads partitions of one file, one at a time.
#[derive(Debug)]
pub(crate) struct PartitionReader {
    /// Has the row indexes.
    parts: Arc<OpenedParts>,
    filter: Arc<ClusteringFilter>,
    unfiltereds: Unfiltereds,
    walk: Walk,
    /// All columns of all rows are wanted, in stored order.
    wants_all: bool,
}

impl PartitionReader {
    pub(crate) fn new(
        stream: DataStream,
        parts: Arc<OpenedParts>,
        format: Arc<RowFormat>,
        filter: Arc<ClusteringFilter>,
        unwanted: Unwanted,
    ) -> Result<Self> {
        let start = stream.position();
        let wants_all = filter.columns.is_none() && filter.selects_all() && !filter.reversed;
        let cells = match wants_all {
            true => None,
            false => CellLookup::of(&parts)?,
        };
        Ok(Self {
            wants_all,
            unfiltereds: Unfiltereds {
                stream,
                format,
                row_index: None,
                filter: filter.clone(),
                unwanted,
                patterns: Patterns::default(),
                cells,
                start,
                rows_at: start,
            },
            parts,
            filter,
            walk: Walk::Done,
        })
    }

    /// True if the partition that starts at `position` has that key.
    pub(crate) fn has_key_at(&mut self, position: u64, key: &[u8]) -> Result<bool> {
        self.unfiltereds.stream.seek(position);
        Ok(self.unfiltereds.key()? == key)
    }

    /// Starts the partition at `location`.
    pub(super) fn begin_at(&mut self, location: &Location) -> Step<Started> {
        self.unfiltereds.stream.seek(location.position);
        self.unfiltereds.row_index = None;
        let has_row_index = location.row_index.is_some() || location.entry_at.is_some();
        if has_row_index && self.needs_row_index() {
            self.unfiltereds.row_index = self.open_row_index(location)?;
        }
        self.begin()
    }

    fn open_row_index(&self, location: &Location) -> Result<Option<RowIndex>> {
        let index = self.parts.index()?;
        let at = match (&location.row_index, location.entry_at) {
            (None, Some(entry_at)) => index.row_index_of_entry(entry_at, location.position)?,
            (at, _) => at.clone(),
        };
        let open = |at| RowIndex::open(index.row_indexes().clone(), self.unfiltereds.format.clone(), &at);
        at.map_or(Ok(None), open)
    }

    /// Reads the start of the partition at which the stream stands.
    #[inline(always)]
    fn begin(&mut self) -> Step<Started> {
        let rows = &mut self.unfiltereds;
        rows.start = rows.stream.position();
        let key = rows.key()?;
        let (deletion, static_row) = rows.partition_head()?;
        rows.rows_at = rows.stream.position();
        self.walk = if self.filter.slices.is_empty() {
            Walk::Done
        } else if self.filter.reversed {
            Walk::Backward(Backward::new(self.filter.slices.len()))
        } else if self.filter.selects_all() {
            Walk::All
        } else {
            Walk::Forward(Forward::default())
        };
        Ok(Started {
            key,
            deletion,
            static_row,
        })
    }

    fn needs_row_index(&self) -> bool {
        !self.filter.slices.is_empty() && !self.walks_all()
    }

    /// True if all unfiltereds are wanted in stored order.
    fn walks_all(&self) -> bool {
        self.filter.selects_all() && !self.filter.reversed
    }

    /// True if partitions are read from start to end: no index is needed to find the next.
    pub(super) fn reads_all(&self) -> bool {
        self.walks_all() && self.unfiltereds.cells.is_none()
    }

    /// Moves to the next partition, after all that is left of this one, and starts it; nothing at the end of the
    /// data. Requires: all is read, see [`PartitionReader::reads_all`].
    #[inline(always)]
    pub(super) fn begin_following(&mut self) -> Step<Option<Started>> {
        self.leave()?;
        if self.unfiltereds.stream.is_at_end() {
            return Ok(None);
        }
        self.begin().map(Some)
    }

    /// The same, if the next partition is an ordinary one and its start is at hand; gives its key. Else nothing has changed.
    #[inline(always)]
    pub(super) fn begin_following_at_hand(&mut self) -> Option<Bytes> {
        if !self.wants_all {
            return None;
        }
        let rows = &mut self.unfiltereds;
        let (_, offset) = rows.stream.window();
        let offset = match (&self.walk, rows.stream.rest()) {
            (Walk::Done, _) => offset,
            (Walk::End, [END_OF_PARTITION, ..]) => offset + 1,
            _ => return None,
        };
        let key = rows.begin_at_hand(offset)?;
        self.walk = Walk::All;
        Some(key)
    }

    /// Moves to the end of the partition, as above.
    #[inline(always)]
    fn leave(&mut self) -> Step<()> {
        while let Walk::All | Walk::End = self.walk {
            match self.unfiltereds.next_head()? {
                Some(head) => self.unfiltereds.skip(&head)?,
                None => self.walk = Walk::Done,
            }
        }
        Ok(())
    }

    /// The key of the partition that follows, if all of this one was read, and it is at hand.
    pub(super) fn peek_key(&self) -> Option<Bytes> {
        let stream = &self.unfiltereds.stream;
        let rest = match (&self.walk, stream.rest()) {
            (Walk::Done, rest) if self.reads_all() => rest,
            (Walk::End, [END_OF_PARTITION, rest @ ..]) => rest,
            _ => return None,
        };
        Some(stream.window().0.slice_ref(key_at_hand(rest)?))
    }

    /// Shows the visitor the partitions that follow, see [`RowFormat::visit_plain`]. Requires: all is read.
    pub(super) fn visit_following(
        &mut self,
        keys: WantedKeys<'_, impl Fn(&Token, &[u8]) -> bool>,
        visitor: &mut dyn PlainVisitor,
    ) -> Step<Option<PlainRun>> {
        if !self.unfiltereds.format.may_be_plain() {
            return Ok(None);
        }
        self.leave()?;
        let Unfiltereds {
            stream,
            format,
            patterns,
            ..
        } = &mut self.unfiltereds;
        Ok(show_partitions(stream, format, patterns, keys, visitor))
    }

    /// Shows the visitor the rows of the partition that follow, see [`RowFormat::visit_rows`].
    pub(super) fn visit_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> u64 {
        let rows = &mut self.unfiltereds;
        let format = &rows.format;
        if !format.rows_may_be_plain() || rows.cells.is_some() {
            return 0;
        }
        let end = match &self.walk {
            Walk::All => before,
            Walk::Forward(forward) => match forward.slice_ahead(&self.filter.slices, &format.comparator) {
                Some(slice) => format.comparator.lesser(before, Some(&slice.end)),
                None => return 0,
            },
            Walk::Done | Walk::End | Walk::Backward(_) => return 0,
        };
        show_rows(&mut rows.stream, format, &mut rows.patterns, key, end, visitor)
    }

    /// The next wanted unfiltered of the partition.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Step<Option<Unfiltered>> {
        let rows = &mut self.unfiltereds;
        if self.wants_all
            && matches!(self.walk, Walk::All)
            && let Some(row) = rows.format.row_at_hand(&mut rows.stream)
            && !row.is_empty()
        {
            if row.clustering.is_empty() {
                // A partition without clustering has one row.
                self.walk = Walk::End;
            }
            return Ok(Some(Unfiltered::Row(row)));
        }
        let next = match &mut self.walk {
            Walk::Done | Walk::End => return Ok(None),
            Walk::All => rows.next(),
            Walk::Forward(forward) => forward.next(rows, &self.filter.slices),
            Walk::Backward(backward) => backward.next(rows, &self.filter.slices),
        };
        match &next {
            // A partition without clustering has one row.
            Ok(Some(Unfiltered::Row(row)))
                if row.clustering.values().is_empty() && matches!(self.walk, Walk::All) =>
            {
                self.walk = Walk::End;
            }
            Ok(Some(_)) => {}
            // Also after an error: the stream stands somewhere in the middle.
            Ok(None) | Err(_) => self.walk = Walk::Done,
        }
        next
    }

    /// Damage at the start of the partition.
    pub(super) fn corrupt_start(&self, expected: &'static str) -> crate::Error {
        let rows = &self.unfiltereds;
        rows.stream.chunks().corrupt(rows.start, expected)
    }
}
