//! Writes the rows and markers of one partition to a new SSTable. Deleted ranges are closed and opened again around gaps.
//!
//! The last item is held back until the next one comes, since a marker that opens a range is dropped if a gap follows.
//! Invariant: `open` is the deletion that is open after the last item, including the held one.

use ilion_rows::{Bound, BoundKind, ClusteringComparator, DeletionTime, Direction, Marker, Unfiltered};

use crate::sstable::output_directory::Output;

/// A description of the expected row or marker, for errors.
pub(super) type Expected = &'static str;

pub(super) struct Rows {
    comparator: ClusteringComparator,
    held: Option<Unfiltered>,
    open: Option<DeletionTime>,
    /// After a gap: the deletion that is open there according to the index.
    reopen: Option<DeletionTime>,
}

impl Rows {
    pub(super) fn new(comparator: ClusteringComparator) -> Self {
        Self {
            comparator,
            held: None,
            open: None,
            reopen: None,
        }
    }

    /// True if no deleted range is open, so that the partition may end here.
    pub(super) fn is_closed(&self) -> bool {
        self.open.is_none() && self.reopen.is_none()
    }

    /// Adds the next item, or returns why it does not fit.
    pub(super) fn take(
        &mut self,
        unfiltered: Unfiltered,
        output: &mut Output,
    ) -> anyhow::Result<Result<(), Expected>> {
        if !self.ascends(&unfiltered) {
            return Ok(Err("expected a row or marker that sorts above the one before"));
        }
        let unfiltered = match self.reopen.take() {
            None => unfiltered,
            Some(open) => match self.reopened(open, unfiltered, output)? {
                Ok(Some(unfiltered)) => unfiltered,
                Ok(None) => return Ok(Ok(())),
                Err(expected) => return Ok(Err(expected)),
            },
        };
        if let Unfiltered::Marker(marker) = &unfiltered {
            if marker.end != self.open {
                return Ok(Err(
                    "expected a marker that ends the deletion that is open before it",
                ));
            }
            self.open = marker.start;
        }
        self.hold(unfiltered, output)?;
        Ok(Ok(()))
    }

    fn ascends(&self, unfiltered: &Unfiltered) -> bool {
        let held = self.held.as_ref();
        held.is_none_or(|held| self.comparator.compare_unfiltered(held, unfiltered).is_lt())
    }

    /// Opens the deleted range before the first item after a gap, or ends it if that item is its end. Returns the item to add; `None` if
    /// it only closed the range.
    fn reopened(
        &mut self,
        open: DeletionTime,
        unfiltered: Unfiltered,
        output: &mut Output,
    ) -> anyhow::Result<Result<Option<Unfiltered>, Expected>> {
        match unfiltered {
            Unfiltered::Row(row) => {
                let bound = Bound::new(BoundKind::InclStart, row.clustering.values().clone());
                let marker = Marker::at(&bound, None, Some(open), Direction::Forward);
                self.open = Some(open);
                self.hold(Unfiltered::Marker(marker), output)?;
                Ok(Ok(Some(Unfiltered::Row(row))))
            }
            Unfiltered::Marker(marker) if marker.end == Some(open) => {
                let starting = marker.start.map(|start| {
                    let bound = Bound::new(marker.bound.kind.opening_side(), marker.bound.values.clone());
                    Unfiltered::Marker(Marker::at(&bound, None, Some(start), Direction::Forward))
                });
                Ok(Ok(starting))
            }
            Unfiltered::Marker(_) => Ok(Err("expected a marker that ends what the index says is open")),
        }
    }

    fn hold(&mut self, unfiltered: Unfiltered, output: &mut Output) -> anyhow::Result<()> {
        match self.held.replace(unfiltered) {
            Some(before) => output.add(&before),
            None => Ok(()),
        }
    }

    /// Continues after a gap, where the deletion `open` is open.
    pub(super) fn resume(&mut self, open: Option<DeletionTime>, output: &mut Output) -> anyhow::Result<()> {
        if self.open == open {
            return Ok(());
        }
        self.cut(output)?;
        self.reopen = open;
        Ok(())
    }

    /// Closes the open range, since a gap follows.
    pub(super) fn cut(&mut self, output: &mut Output) -> anyhow::Result<()> {
        self.reopen = None;
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        match self.held.take() {
            Some(Unfiltered::Marker(marker)) => {
                self.held = marker.end.map(|end| {
                    let bound = Bound::new(marker.bound.kind.closing_side(), marker.bound.values);
                    Unfiltered::Marker(Marker::at(&bound, Some(end), None, Direction::Forward))
                });
            }
            Some(Unfiltered::Row(row)) => {
                let bound = Bound::new(BoundKind::InclEnd, row.clustering.values().clone());
                output.add(&Unfiltered::Row(row))?;
                let marker = Marker::at(&bound, Some(open), None, Direction::Forward);
                self.held = Some(Unfiltered::Marker(marker));
            }
            None => {}
        }
        Ok(())
    }

    /// Writes the held item.
    pub(super) fn finish(&mut self, output: &mut Output) -> anyhow::Result<()> {
        match self.held.take() {
            Some(last) => output.add(&last),
            None => Ok(()),
        }
    }
}
