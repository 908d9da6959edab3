//! [`Watched`]: a cursor that reports its progress to a [`Watch`] after every stretch of about a mebibyte.

use ilion_rows::{
    AlikeRows, Bound, Cursor, DecoratedKey, Flow, PartitionHead, PlainRow, PlainRun, PlainVisitor, ReadError,
    Unfiltered,
};

/// Bytes between two reports.
const STRETCH_BYTES: u64 = 1 << 20;
/// Most rows and partitions between two reports.
const STRETCH_ITEMS_MAX: u64 = 4096;
/// A plain partition counts as two items: the partition and its row.
const ITEMS_OF_PLAIN: u64 = 2;

/// Receives progress.
pub trait Watch: Send {
    /// Reports the bytes that were read since the last report. May pause the caller.
    ///
    /// # Errors
    /// The watch stops the read; the reader must end.
    fn look(&mut self, bytes: u64) -> Result<(), ReadError>;
}

/// Counts items, and reports after each stretch.
pub struct Stretches<W> {
    watch: W,
    /// Average bytes of a row or partition.
    item_bytes: u64,
    stretch_items: u64,
    items: u64,
}

/// A cursor that reports its progress.
pub struct Watched<C, W> {
    cursor: C,
    stretches: Stretches<W>,
}

impl<W: Watch> Stretches<W> {
    /// For a source of about `items` rows and partitions with `bytes` in total.
    pub fn new(watch: W, bytes: u64, items: u64) -> Self {
        let item_bytes = (bytes / items.max(1)).max(1);
        Self {
            watch,
            item_bytes,
            stretch_items: (STRETCH_BYTES / item_bytes).clamp(1, STRETCH_ITEMS_MAX),
            items: 0,
        }
    }

    /// Counts rows and partitions, and reports them at the end of a stretch.
    ///
    /// # Errors
    /// The watch stops the read.
    #[inline]
    pub fn count(&mut self, items: u64) -> Result<(), ReadError> {
        self.items += items;
        if self.items >= self.stretch_items {
            return self.look();
        }
        Ok(())
    }

    /// Rows and partitions until the next report; at least one.
    fn left(&self) -> u64 {
        self.stretch_items.saturating_sub(self.items).max(1)
    }

    #[cold]
    fn look(&mut self) -> Result<(), ReadError> {
        let bytes = self.items.saturating_mul(self.item_bytes);
        self.items = 0;
        self.watch.look(bytes)
    }
}

impl<C: Cursor, W: Watch> Watched<C, W> {
    /// Wraps a cursor with about `items` rows and partitions, and `bytes` in total.
    pub fn new(cursor: C, watch: W, bytes: u64, items: u64) -> Self {
        Self {
            cursor,
            stretches: Stretches::new(watch, bytes, items),
        }
    }
}

/// Ends a run of plain partitions or rows at the end of the stretch.
struct Stretch<'v> {
    visitor: &'v mut dyn PlainVisitor,
    left: u64,
    is_cut: bool,
}

impl Stretch<'_> {
    /// Counts the items that the visitor took; ends the run at the end of the stretch.
    #[inline]
    fn after(&mut self, taken: u64, flow: Flow) -> Flow {
        if flow != Flow::Next {
            return flow;
        }
        self.left -= taken;
        self.is_cut = self.left == 0;
        if self.is_cut { Flow::Last } else { flow }
    }
}

impl PlainVisitor for Stretch<'_> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let flow = self.visitor.row(row);
        self.after(1, flow)
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let (taken, flow) = self.visitor.rows(&rows.first(left));
        (taken, self.after(taken as u64, flow))
    }
}

impl<C: Cursor, W: Watch> Cursor for Watched<C, W> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.stretches.count(1)?;
        self.cursor.next_partition()
    }

    #[inline]
    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let unfiltered = self.cursor.next_unfiltered()?;
        if unfiltered.is_some() {
            self.stretches.count(1)?;
        }
        Ok(unfiltered)
    }

    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let mut stretch = Stretch {
            visitor,
            left: self.stretches.left().div_ceil(ITEMS_OF_PLAIN),
            is_cut: false,
        };
        let mut run = self.cursor.plain_partitions(before, &mut stretch)?;
        if let Some(run) = &mut run {
            run.is_over &= !stretch.is_cut;
            self.stretches.count(ITEMS_OF_PLAIN * run.count)?;
        }
        Ok(run)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        let mut stretch = Stretch {
            visitor,
            left: self.stretches.left(),
            is_cut: false,
        };
        let count = self.cursor.plain_rows(key, before, &mut stretch)?;
        self.stretches.count(count)?;
        Ok(count)
    }

    ilion_rows::cursor_methods!(forward cursor: lower_bound peek skip_deleted);
}

#[cfg(test)]
mod tests;
