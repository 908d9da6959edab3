//! Reads the rows and markers of a partition that a filter selects.

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
use super::unfiltereds::Unfiltereds;
use crate::cells::CellLookup;
use crate::error::Step;
use crate::open::OpenedParts;
use crate::row::decode::{RowFormat, Unwanted};
use crate::row::format::unfiltered_flag::END_OF_PARTITION;
use crate::row::key_at_hand;
use crate::row::seen::{Patterns, WantedKeys};
use crate::{DataStream, Result};

/// How the unfiltereds of the partition are read.
#[derive(Debug)]
enum Walk {
    /// No unfiltereds are left.
    Done,
    /// All unfiltereds are read in stored order.
    All,
    /// Only the end-of-partition mark is left to read.
    End,
    Forward(Forward),
    Backward(Backward),
}

/// The start of a partition: key, deletion and static row.
pub(super) struct Started {
    pub(super) key: Bytes,
    pub(super) deletion: DeletionTime,
    pub(super) static_row: Option<Row>,
}

/// Reads partitions of one file, one at a time.
#[derive(Debug)]
pub(crate) struct PartitionReader {
    /// Gives access to the row indexes.
    parts: Arc<OpenedParts>,
    filter: Arc<ClusteringFilter>,
    unfiltereds: Unfiltereds,
    walk: Walk,
    /// True if all columns of all rows are selected, in stored order.
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

    /// True if the partition that starts at `position` has this key.
    pub(crate) fn has_key_at(&mut self, position: u64, key: &[u8]) -> Result<bool> {
        self.unfiltereds.stream.seek(position);
        Ok(self.unfiltereds.key()? == key)
    }

    /// Moves to the start of a partition. Requires: [`PartitionReader::reads_all`].
    pub(super) fn stand_at(&mut self, position: u64) {
        self.unfiltereds.stream.seek(position);
        self.walk = Walk::Done;
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

    /// Reads the start of the partition at the stream's position.
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

    /// True if all unfiltereds are selected, in stored order.
    fn walks_all(&self) -> bool {
        self.filter.selects_all() && !self.filter.reversed
    }

    /// True if partitions are read from start to end, so that no index is needed to find the next one.
    pub(super) fn reads_all(&self) -> bool {
        self.walks_all() && self.unfiltereds.cells.is_none()
    }

    /// Skips the rest of this partition and starts the next one; `None` at the end of the data. Requires:
    /// [`PartitionReader::reads_all`].
    #[inline]
    pub(super) fn begin_following(&mut self) -> Step<Option<Started>> {
        self.leave()?;
        if self.unfiltereds.stream.is_at_end() {
            return Ok(None);
        }
        self.begin().map(Some)
    }

    /// As [`Self::begin_following`], for an ordinary partition whose start is in the window; returns its key. Otherwise returns `None`,
    /// and changes nothing.
    #[inline]
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

    /// Moves to the end of the partition. Requires: [`PartitionReader::reads_all`].
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

    /// The key of the next partition, if this one was read to its end and the key is in the window.
    pub(super) fn peek_key(&self) -> Option<Bytes> {
        let stream = &self.unfiltereds.stream;
        let rest = match (&self.walk, stream.rest()) {
            (Walk::Done, rest) if self.reads_all() => rest,
            (Walk::End, [END_OF_PARTITION, rest @ ..]) => rest,
            _ => return None,
        };
        Some(stream.window().0.slice_ref(key_at_hand(rest)?))
    }

    /// Shows the visitor the partitions that follow, see [`RowFormat::visit_plain`]. Requires: [`PartitionReader::reads_all`].
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

    /// Jumps over a deleted run, see [`ilion_rows::Cursor::skip_deleted`].
    pub(super) fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<()> {
        let rows = &mut self.unfiltereds;
        let comparator = &rows.format.comparator;
        let (position, end) = match &self.walk {
            Walk::All => (rows.stream.position(), before),
            Walk::Forward(forward) => match forward.slice_ahead(&self.filter.slices, comparator) {
                Some(slice) => (
                    rows.stream.position(),
                    comparator.lesser(before, Some(&slice.end)),
                ),
                None => return Ok(()),
            },
            Walk::Backward(backward) => match backward.next_row() {
                Some(position) => (position, before),
                None => return Ok(()),
            },
            Walk::Done | Walk::End => return Ok(()),
        };
        let Some(run) = self.parts.deleted_runs()?.and_then(|runs| runs.at(position)) else {
            return Ok(());
        };
        let order = |bound: &Bound, row| comparator.compare_bound_to_row(bound, row);
        if let Walk::Backward(backward) = &mut self.walk {
            if end.is_none_or(|end| order(end, &run.first).is_lt()) {
                backward.skip_from(run.place.start);
            }
        } else if end.is_none_or(|end| order(end, &run.last).is_gt()) {
            rows.stream.seek(run.place.end);
        }
        Ok(())
    }

    /// The next selected unfiltered of the partition.
    #[inline(always)]
    pub(super) fn next(&mut self) -> Step<Option<Unfiltered>> {
        let rows = &mut self.unfiltereds;
        if self.wants_all
            && matches!(self.walk, Walk::All)
            && let Some(row) = rows.format.row_at_hand(&mut rows.stream)
            && !row.is_empty()
        {
            if row.clustering.is_empty() {
                // A partition without clustering columns has one row.
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
            // A partition without clustering columns has one row.
            Ok(Some(Unfiltered::Row(row)))
                if row.clustering.values().is_empty() && matches!(self.walk, Walk::All) =>
            {
                self.walk = Walk::End;
            }
            Ok(Some(_)) => {}
            // Also after an error, since the stream's position is then undefined.
            Ok(None) | Err(_) => self.walk = Walk::Done,
        }
        next
    }

    /// An error about damage at the start of the partition.
    pub(super) fn corrupt_start(&self, expected: &'static str) -> crate::Error {
        let rows = &self.unfiltereds;
        rows.stream.chunks().corrupt(rows.start, expected)
    }
}
