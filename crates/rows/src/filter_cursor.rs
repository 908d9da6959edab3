//! Applies slices and direction to a source that returns every row.
//!
//! Memtables and SSTables skip rows themselves; this cursor is for other sources. A range deletion that is open where a slice starts
//! is opened there, and closed where the slice ends. Reversed reads keep one partition in memory.

use std::cmp::Ordering;
use std::collections::VecDeque;
use std::sync::Arc;

use crate::{
    Bound, ClusteringComparator, ClusteringFilter, Cursor, DeletionTime, Direction, Marker, PartitionHead,
    ReadError, Slice, Unfiltered,
};

/// Returns the slices of a filter from a forward source, in the filter's direction.
pub struct FilterCursor<C> {
    source: C,
    filter: Arc<ClusteringFilter>,
    comparator: ClusteringComparator,
    /// Index of the current slice.
    slice: usize,
    /// True once the source returned an unfiltered at or behind the start of the slice.
    is_inside: bool,
    /// The deletion that is open in the source.
    open: DeletionTime,
    /// Unfiltereds to return before the source is read again.
    waiting: VecDeque<Unfiltered>,
    /// True if the whole partition was read and reversed.
    is_reversed: bool,
}

impl<C: Cursor> FilterCursor<C> {
    /// Filters `source`. Requires: the source returns every row, in forward direction.
    pub fn new(source: C, filter: Arc<ClusteringFilter>, comparator: ClusteringComparator) -> Self {
        Self {
            source,
            filter,
            comparator,
            slice: 0,
            is_inside: false,
            open: DeletionTime::LIVE,
            waiting: VecDeque::new(),
            is_reversed: false,
        }
    }

    fn next_forward(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            if let Some(unfiltered) = self.waiting.pop_front() {
                return Ok(Some(unfiltered));
            }
            if self.slice == self.filter.slices.len() {
                return Ok(None);
            }
            match self.source.next_unfiltered()? {
                Some(unfiltered) => self.take(unfiltered),
                None => self.slice = self.filter.slices.len(),
            }
        }
    }

    /// Adds to `waiting` the parts of `unfiltered`, and of the range that is open before it, that the slices select.
    fn take(&mut self, unfiltered: Unfiltered) {
        let filter = self.filter.clone();
        while let Some(slice) = filter.slices.get(self.slice) {
            if self.place(&unfiltered, &slice.start) != Ordering::Greater {
                break;
            }
            if !self.is_inside {
                self.is_inside = true;
                self.open_at(slice);
            }
            if self.place(&unfiltered, &slice.end) == Ordering::Less {
                self.follow(&unfiltered);
                self.waiting.push_back(unfiltered);
                return;
            }
            self.close_at(slice);
            self.slice += 1;
            self.is_inside = false;
        }
        self.follow(&unfiltered);
    }

    fn follow(&mut self, unfiltered: &Unfiltered) {
        if let Unfiltered::Marker(marker) = unfiltered {
            self.open = marker.start.unwrap_or(DeletionTime::LIVE);
        }
    }

    /// The order of `unfiltered` relative to `bound`.
    fn place(&self, unfiltered: &Unfiltered, bound: &Bound) -> Ordering {
        match unfiltered {
            Unfiltered::Row(row) => self
                .comparator
                .compare_bound_to_row(bound, &row.clustering)
                .reverse(),
            Unfiltered::Marker(marker) => self.comparator.compare_bounds(&marker.bound, bound),
        }
    }

    fn open_at(&mut self, slice: &Slice) {
        if !self.open.is_live() {
            let marker = Marker::at(&slice.start, None, Some(self.open), Direction::Forward);
            self.waiting.push_back(Unfiltered::Marker(marker));
        }
    }

    fn close_at(&mut self, slice: &Slice) {
        if !self.open.is_live() {
            let marker = Marker::at(&slice.end, Some(self.open), None, Direction::Forward);
            self.waiting.push_back(Unfiltered::Marker(marker));
        }
    }

    fn next_reversed(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if !self.is_reversed {
            let mut all = VecDeque::new();
            while let Some(unfiltered) = self.next_forward()? {
                all.push_front(unfiltered.reversed());
            }
            self.waiting = all;
            self.is_reversed = true;
        }
        Ok(self.waiting.pop_front())
    }
}

impl<C: Cursor> Cursor for FilterCursor<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.slice = 0;
        self.is_inside = false;
        self.open = DeletionTime::LIVE;
        self.waiting.clear();
        self.is_reversed = false;
        self.source.next_partition()
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match self.filter.reversed {
            true => self.next_reversed(),
            false => self.next_forward(),
        }
    }

    crate::cursor_methods!(forward source: lower_bound);

    crate::cursor_methods!(without: peek plain_partitions plain_rows skip_deleted);
}
