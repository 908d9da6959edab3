//! Reads slices of a partition in stored order.
//!
//! At the start of a slice, the deletion that is open there is returned as a marker; at its end, the open deletion is closed.
//! Blocks before a slice are not read: the index has the deletion that is open behind them.

use std::cmp::Ordering;

use ilion_rows::{Bound, ClusteringComparator, DeletionTime, Direction, Marker, Slice, Unfiltered};

use super::unfiltereds::Unfiltereds;
use crate::error::Step;
use crate::row::decode::Head;

impl Head {
    /// Compares the position of the head with a bound.
    pub(super) fn compare(&self, bound: &Bound, comparator: &ClusteringComparator) -> Ordering {
        match self {
            Self::Row(row) => comparator.compare_bound_to_row(bound, &row.clustering).reverse(),
            Self::Marker(marker) => comparator.compare_bounds(&marker.bound, bound),
        }
    }
}

/// The state of a forward walk.
#[derive(Debug, Default)]
pub(super) struct Forward {
    /// Index of the current slice.
    slice: usize,
    is_inside: bool,
    /// True if the slice can have only one row, and that row was returned.
    is_row_found: bool,
    /// The deletion that is open at the stream's position.
    open: Option<DeletionTime>,
    /// A head that was read, but not yet compared with the slice.
    pending: Option<Head>,
    is_at_end: bool,
}

impl Forward {
    pub(super) fn next(&mut self, rows: &mut Unfiltereds, slices: &[Slice]) -> Step<Option<Unfiltered>> {
        while let Some(slice) = slices.get(self.slice) {
            if !self.is_inside {
                self.enter(rows, slice)?;
                self.is_inside = true;
                if let Some(open) = self.open {
                    return Ok(Some(marker_at(&slice.start, None, Some(open))));
                }
            }
            if !self.is_row_found
                && let Some(head) = self.take_before(rows, &slice.end)?
            {
                // The slice can have only this row, so the stream need not read on to find its end.
                self.is_row_found = matches!(head, Head::Row(_)) && slice.is_one_row(&rows.format.comparator);
                if let Some(unfiltered) = rows.finish(head)? {
                    return Ok(Some(unfiltered));
                }
                continue;
            }
            self.is_row_found = false;
            self.slice += 1;
            self.is_inside = false;
            if let Some(open) = self.open {
                return Ok(Some(marker_at(&slice.end, Some(open), None)));
            }
        }
        Ok(None)
    }

    /// The slice that continues at the stream's position, if its next rows may be shown to a visitor. `None` for slices of one row,
    /// for which that would be slower.
    pub(super) fn slice_ahead<'s>(
        &self,
        slices: &'s [Slice],
        comparator: &ClusteringComparator,
    ) -> Option<&'s Slice> {
        let is_at_stream = self.is_inside && self.pending.is_none() && !self.is_row_found && !self.is_at_end;
        let slice = slices
            .get(self.slice)
            .filter(|_| is_at_stream && self.open.is_none())?;
        (!slice.is_one_row(comparator)).then_some(slice)
    }

    /// Moves to the first unfiltered after the start of the slice.
    fn enter(&mut self, rows: &mut Unfiltereds, slice: &Slice) -> Step<()> {
        self.jump(rows, &slice.start)?;
        loop {
            let Some(head) = self.take_head(rows)? else {
                return Ok(());
            };
            if head.compare(&slice.start, &rows.format.comparator).is_gt() {
                self.pending = Some(head);
                return Ok(());
            }
            self.pass(&head);
            rows.skip(&head)?;
        }
    }

    /// Moves to the block of `bound`, unless the stream is already there.
    fn jump(&mut self, rows: &mut Unfiltereds, bound: &Bound) -> Step<()> {
        let (Some(index), false) = (&rows.row_index, bound.values.is_empty()) else {
            return Ok(());
        };
        let Some(block) = index.block_of(bound)? else {
            self.pending = None;
            self.is_at_end = true;
            self.open = None;
            return Ok(());
        };
        let position = rows.start.saturating_add(block.offset);
        if position > rows.stream.position() {
            self.open = block.open;
            self.pending = None;
            rows.stream.seek(position);
        }
        Ok(())
    }

    /// The next head, if it is before `end`; else it stays pending.
    fn take_before(&mut self, rows: &mut Unfiltereds, end: &Bound) -> Step<Option<Head>> {
        let Some(head) = self.take_head(rows)? else {
            return Ok(None);
        };
        if head.compare(end, &rows.format.comparator).is_lt() {
            self.pass(&head);
            return Ok(Some(head));
        }
        self.pending = Some(head);
        Ok(None)
    }

    fn take_head(&mut self, rows: &mut Unfiltereds) -> Step<Option<Head>> {
        if self.pending.is_some() {
            return Ok(self.pending.take());
        }
        if self.is_at_end {
            return Ok(None);
        }
        let head = rows.next_head()?;
        self.is_at_end = head.is_none();
        Ok(head)
    }

    fn pass(&mut self, head: &Head) {
        if let Head::Marker(marker) = head {
            self.open = marker.start;
        }
    }
}

fn marker_at(bound: &Bound, end: Option<DeletionTime>, start: Option<DeletionTime>) -> Unfiltered {
    Unfiltered::Marker(Marker::at(bound, end, start, Direction::Forward))
}
