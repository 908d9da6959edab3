//! Reads slices of a partition from the last row to the first.
//!
//! The starts of rows can only be found forwards. So one block at a time is walked through to find the starts of its rows. Then each row
//! is decoded when it is returned, from the end of the block. A partition without a row index is one block.

use std::cmp::Ordering;
use std::ops::Range;

use ilion_rows::{Bound, DeletionTime, Direction, Marker, Slice, Unfiltered};

use super::row_index::{Blocks, RowIndex};
use super::unfiltereds::Unfiltereds;
use crate::Result;
use crate::error::Step;
use crate::row::decode::Head;

/// Number of bytes after which a walk compares a row with the slice. Skipping this many bytes costs about as much as one comparison.
const STRIDE: u64 = 4096;

/// Initial capacity of the buffer, in rows.
const FIRST_ROWS: usize = 256;

/// The state of a backward walk.
#[derive(Debug)]
pub(super) struct Backward {
    /// Number of leading slices that are not started yet.
    slices_left: usize,
    /// Blocks of the current slice that are not read yet.
    blocks: Blocks,
    is_at_slice_end: bool,
    /// Unfiltereds to return; the next one is last.
    buffer: Vec<Due>,
    /// Rows from this position on are skipped.
    skipped_from: u64,
}

/// An unfiltered to return.
#[derive(Debug)]
enum Due {
    /// A marker, reversed.
    Marker(Box<Marker>),
    /// A row that starts at this position.
    RowAt(u64),
}

/// A run of unfiltereds: a block, or the whole partition.
struct Run {
    start: u64,
    /// Position of the end; `None` means the end of the partition.
    end: Option<u64>,
    open_before: Option<DeletionTime>,
}

impl Backward {
    pub(super) fn new(slice_count: usize) -> Self {
        Self {
            slices_left: slice_count,
            blocks: Blocks::none(),
            is_at_slice_end: false,
            buffer: Vec::new(),
            skipped_from: u64::MAX,
        }
    }

    pub(super) fn next(&mut self, rows: &mut Unfiltereds, slices: &[Slice]) -> Step<Option<Unfiltered>> {
        loop {
            match self.buffer.pop() {
                Some(Due::Marker(marker)) => return Ok(Some(Unfiltered::Marker(*marker))),
                Some(Due::RowAt(position)) => match rows.read_at(position)? {
                    None => continue,
                    row => return Ok(row),
                },
                None => {}
            }
            if let Some(run) = self.next_run(rows)? {
                let is_skipped = run.start >= self.skipped_from && run.open_before.is_none();
                if !is_skipped || self.is_at_slice_end {
                    self.load(rows, &slices[self.slices_left], &run)?;
                    self.drop_skipped();
                }
            } else if self.slices_left == 0 {
                return Ok(None);
            } else {
                self.slices_left -= 1;
                self.enter(rows, &slices[self.slices_left])?;
            }
        }
    }

    /// Position of the next row, if it is known.
    pub(super) fn next_row(&self) -> Option<u64> {
        match self.buffer.last()? {
            Due::RowAt(position) => Some(*position),
            Due::Marker(_) => None,
        }
    }

    /// Skips the rows from `start` on. Requires: all unfiltereds between `start` and the next row are rows, and may be skipped.
    pub(super) fn skip_from(&mut self, start: u64) {
        self.skipped_from = start;
        self.drop_skipped();
    }

    fn drop_skipped(&mut self) {
        while self
            .next_row()
            .is_some_and(|position| position >= self.skipped_from)
        {
            self.buffer.pop();
        }
    }

    /// Finds the blocks of a slice.
    fn enter(&mut self, rows: &Unfiltereds, slice: &Slice) -> Step<()> {
        self.is_at_slice_end = true;
        let Some(index) = &rows.row_index else {
            self.blocks = Blocks::Whole { is_taken: false };
            return Ok(());
        };
        self.blocks = index.blocks_of(slice)?;
        let (RowIndex::Promoted(index), Blocks::Promoted(range)) = (index, &self.blocks) else {
            return Ok(());
        };
        if !range.is_empty() {
            return Ok(());
        }
        if let Some(open) = index.open_before(range.start)? {
            self.buffer.push(closing(slice, open));
            self.buffer.push(opening(slice, open));
        }
        Ok(())
    }

    fn next_run(&mut self, rows: &Unfiltereds) -> Result<Option<Run>> {
        let head_length = rows.rows_at - rows.start;
        let block = self.blocks.take_last(rows.row_index.as_ref(), head_length)?;
        block
            .map(|(start, end)| {
                let position = rows.start.saturating_add(start.offset);
                if position < rows.rows_at {
                    let expected = "a block after the head of its partition";
                    return Err(rows.stream.chunks().corrupt(position, expected));
                }
                Ok(Run {
                    start: position,
                    end: end.map(|end| rows.start.saturating_add(end)),
                    open_before: start.open,
                })
            })
            .transpose()
    }

    /// Fills the buffer with the unfiltereds of a block that the slice selects.
    fn load(&mut self, rows: &mut Unfiltereds, slice: &Slice, run: &Run) -> Step<()> {
        let (from, upto) = self.walk(rows, slice, run)?;
        let upto = self.boundary(rows, upto, &slice.end, Ordering::is_lt)?;
        self.buffer.truncate(upto);
        let from = self.boundary(
            rows,
            from.start..from.end.min(upto),
            &slice.start,
            Ordering::is_le,
        )?;
        let (before, selected) = self.buffer.split_at(from);
        let open_at_start = open_behind(before).unwrap_or(run.open_before);
        let open_at_end = open_behind(selected).unwrap_or(open_at_start);
        self.buffer.drain(..from);
        // The slice begins in this block.
        if let (true, Some(open)) = (self.blocks.is_done(), open_at_start) {
            self.buffer.insert(0, closing(slice, open));
        }
        if let (true, Some(open)) = (self.is_at_slice_end, open_at_end) {
            self.buffer.push(opening(slice, open));
        }
        self.is_at_slice_end = false;
        Ok(())
    }

    /// Puts the unfiltereds of a block into the buffer, up to the end of the slice or a little beyond. Returns two ranges of indexes: in
    /// the first, the selected unfiltereds begin; in the second, they end.
    ///
    /// Rows are skipped by their sizes. One row after each [`STRIDE`] is compared with the slice.
    fn walk(
        &mut self,
        rows: &mut Unfiltereds,
        slice: &Slice,
        run: &Run,
    ) -> Step<(Range<usize>, Range<usize>)> {
        let end = run.end.unwrap_or(u64::MAX);
        let is_one_row = slice.is_one_row(&rows.format.comparator);
        let are_whole = rows.cells.is_none() && !is_one_row;
        let mut count_before = 0;
        let mut first_inside = None;
        let mut count_below_end = 0;
        rows.stream.seek(run.start);
        self.buffer.reserve(FIRST_ROWS);
        loop {
            if are_whole {
                let stride_end = rows.stream.position().saturating_add(STRIDE).min(end);
                let each = |position| self.buffer.push(Due::RowAt(position));
                rows.format.row_starts_at_hand(&mut rows.stream, stride_end, each);
            }
            let position = rows.stream.position();
            if position >= end {
                break;
            }
            let Some(head) = rows.next_head()? else {
                break;
            };
            let comparator = &rows.format.comparator;
            if head.compare(&slice.end, comparator).is_ge() {
                break;
            }
            let is_inside = head.compare(&slice.start, comparator).is_gt();
            rows.skip(&head)?;
            // The slice can have only this row, so the walk need not read on to find its end.
            let is_last = is_one_row && is_inside && matches!(head, Head::Row(_));
            if is_inside {
                first_inside.get_or_insert(self.buffer.len());
            }
            self.buffer.push(match head {
                Head::Row(_) => Due::RowAt(position),
                Head::Marker(marker) => Due::Marker(Box::new(reversed(marker))),
            });
            count_below_end = self.buffer.len();
            if !is_inside {
                count_before = count_below_end;
            }
            if is_last {
                break;
            }
        }
        let count = self.buffer.len();
        Ok((
            count_before..first_inside.unwrap_or(count),
            count_below_end..count,
        ))
    }

    /// The first index of `among` in the buffer whose unfiltered is not before `bound`, or the end of `among`. `is_before` gets the
    /// order of an unfiltered relative to the bound.
    fn boundary(
        &self,
        rows: &mut Unfiltereds,
        mut among: Range<usize>,
        bound: &Bound,
        is_before: fn(Ordering) -> bool,
    ) -> Step<usize> {
        while !among.is_empty() {
            let middle = usize::midpoint(among.start, among.end);
            let comparator = &rows.format.comparator;
            let order = match &self.buffer[middle] {
                Due::Marker(marker) => comparator.compare_bounds(&marker.bound, bound),
                // A bound without values is before or behind all rows, so the row need not be read.
                Due::RowAt(_) if bound.values.is_empty() && bound.kind.is_start() => Ordering::Greater,
                Due::RowAt(_) if bound.values.is_empty() => Ordering::Less,
                Due::RowAt(position) => rows.order_at(*position, bound)?,
            };
            match is_before(order) {
                true => among.start = middle + 1,
                false => among.end = middle,
            }
        }
        Ok(among.start)
    }
}

/// The deletion that is open behind the last of these unfiltereds; `None` if there is no marker among them.
fn open_behind(stops: &[Due]) -> Option<Option<DeletionTime>> {
    stops.iter().rev().find_map(|due| match due {
        // Markers in the buffer are reversed: their `end` is the deletion that starts there in stored order.
        Due::Marker(marker) => Some(marker.end),
        Due::RowAt(_) => None,
    })
}

fn opening(slice: &Slice, open: DeletionTime) -> Due {
    Due::Marker(Box::new(Marker::at(
        &slice.end,
        None,
        Some(open),
        Direction::Reversed,
    )))
}

fn closing(slice: &Slice, open: DeletionTime) -> Due {
    Due::Marker(Box::new(Marker::at(
        &slice.start,
        Some(open),
        None,
        Direction::Reversed,
    )))
}

fn reversed(marker: Marker) -> Marker {
    Marker {
        end: marker.start,
        start: marker.end,
        bound: marker.bound,
    }
}
