//! Reads slices of a partition from the last row to the first.
//!
//! Where rows start can only be found forwards. So one block at a time is walked through for the starts of its rows, and each row is
//! decoded when it is returned, from the end of the block. A partition without a row index is one block.

use ilion_rows::{DeletionTime, Direction, Marker, Slice, Unfiltered};

use super::row_index::{Blocks, RowIndex};
use super::unfiltereds::Unfiltereds;
use crate::Result;
use crate::error::Step;
use crate::row::decode::Head;

/// The state of a backward walk.
#[derive(Debug)]
pub(super) struct Backward {
    /// Number of slices that are not started yet; these are the leading ones.
    slices_left: usize,
    /// Blocks of the current slice that are not read yet.
    blocks: Blocks,
    is_at_slice_end: bool,
    /// Unfiltereds to return; the next one is last.
    buffer: Vec<Due>,
}

/// An unfiltered to return.
#[derive(Debug)]
enum Due {
    Unfiltered(Unfiltered),
    /// A row that starts at this position.
    RowAt(u64),
}

/// A run of unfiltereds: a block, or the whole partition.
struct Run {
    start: u64,
    /// `None`: the end of the partition.
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
        }
    }

    pub(super) fn next(&mut self, rows: &mut Unfiltereds, slices: &[Slice]) -> Step<Option<Unfiltered>> {
        loop {
            match self.buffer.pop() {
                Some(Due::Unfiltered(unfiltered)) => return Ok(Some(unfiltered)),
                Some(Due::RowAt(position)) => match rows.read_at(position)? {
                    None => continue,
                    row => return Ok(row),
                },
                None => {}
            }
            if let Some(run) = self.next_run(rows)? {
                self.load(rows, &slices[self.slices_left], &run)?;
            } else if self.slices_left == 0 {
                return Ok(None);
            } else {
                self.slices_left -= 1;
                self.enter(rows, &slices[self.slices_left])?;
            }
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

    /// Walks through a block, and fills the buffer with what the slice selects.
    fn load(&mut self, rows: &mut Unfiltereds, slice: &Slice, run: &Run) -> Step<()> {
        let is_first_of_slice = self.blocks.is_done();
        let mut open = run.open_before;
        let mut is_inside = false;
        rows.stream.seek(run.start);
        while run.end.is_none_or(|end| rows.stream.position() < end) {
            let position = rows.stream.position();
            let Some(head) = rows.next_head()? else {
                break;
            };
            let comparator = &rows.format.comparator;
            if head.compare(&slice.end, comparator).is_ge() {
                break;
            }
            let is_wanted = head.compare(&slice.start, comparator).is_gt();
            if is_wanted && !is_inside {
                is_inside = true;
                self.begin_run(slice, open.filter(|_| is_first_of_slice));
            }
            if let Head::Marker(marker) = &head {
                open = marker.start;
            }
            let is_row_found =
                is_wanted && matches!(head, Head::Row(_)) && slice.is_one_row(&rows.format.comparator);
            rows.skip(&head)?;
            match head {
                _ if !is_wanted => {}
                Head::Row(_) => self.buffer.push(Due::RowAt(position)),
                Head::Marker(marker) => self.buffer.push(Due::Unfiltered(reversed(marker))),
            }
            // The slice can have only this row, so nothing has to be read to find its end.
            if is_row_found {
                break;
            }
        }
        if !is_inside {
            self.begin_run(slice, open.filter(|_| is_first_of_slice));
        }
        if let (true, Some(open)) = (self.is_at_slice_end, open) {
            self.buffer.push(opening(slice, open));
        }
        self.is_at_slice_end = false;
        Ok(())
    }

    /// Closes the deletion that is open at the start of the slice: the last marker to return.
    fn begin_run(&mut self, slice: &Slice, open: Option<DeletionTime>) {
        if let Some(open) = open {
            self.buffer.push(closing(slice, open));
        }
    }
}

fn opening(slice: &Slice, open: DeletionTime) -> Due {
    let marker = Marker::at(&slice.end, None, Some(open), Direction::Reversed);
    Due::Unfiltered(Unfiltered::Marker(marker))
}

fn closing(slice: &Slice, open: DeletionTime) -> Due {
    let marker = Marker::at(&slice.start, Some(open), None, Direction::Reversed);
    Due::Unfiltered(Unfiltered::Marker(marker))
}

fn reversed(marker: Marker) -> Unfiltered {
    Unfiltered::Marker(Marker {
        end: marker.start,
        start: marker.end,
        bound: marker.bound,
    })
}
