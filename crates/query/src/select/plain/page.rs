//! A page of plain rows, from the bytes of a source to those of the answer.

use bytes::Bytes;
use ilion_codec::SHARED_MIN;
use ilion_rows::{AlikeRows, Clustering, Flow, PlainRow, RowLayout};
use ilion_schema::{Column, TableSchema};
use smallvec::SmallVec;

use super::super::rows_out::RowsOut;
use super::{PlainColumn, PlainTaker, PlainValue, Within, has_plain_rows};

/// The columns of the answer.
#[derive(Debug)]
pub(in crate::select) struct PlainSelection(Vec<PlainColumn>);

impl PlainSelection {
    /// `None` if the table has no plain rows, or plain rows lack one of the columns.
    pub fn of(columns: &[Column], table: &TableSchema) -> Option<Self> {
        if !has_plain_rows(table) {
            return None;
        }
        let columns = columns.iter().map(|column| PlainColumn::of(column, table));
        columns.collect::<Option<_>>().map(Self)
    }

    /// The values in rows with the same layout; `None` if the partition key of each row must be decoded.
    fn parts<'p>(&self, rows: &AlikeRows<'p>, within: Within<'p>) -> Option<SmallVec<[PlainValue<'p>; 8]>> {
        self.0.iter().map(|column| column.part(rows, within)).collect()
    }

    /// Appends the row. Returns false, without appending, if the row is damaged or has a value that is too large to copy.
    #[inline]
    fn write(&self, row: &PlainRow<'_>, within: Within<'_>, out: &mut RowsOut) -> bool {
        if row.cells.iter().any(|(_, value)| value.len() >= SHARED_MIN) {
            return false;
        }
        let start = out.cells.end().len();
        for column in &self.0 {
            let Ok(value) = column.value(row, within) else {
                out.cells.end().truncate(start);
                return false;
            };
            out.value(value);
        }
        out.end_row();
        true
    }
}

/// Where a page of plain rows ends.
#[derive(Clone, Copy, Debug)]
pub(in crate::select) struct PageEnd {
    /// Largest number of rows.
    pub rows_max: u32,
    /// Largest number of rows per partition.
    pub per_partition: Option<u32>,
    /// Number of bytes at which the page ends.
    pub bytes_max: usize,
}

/// Appends plain rows to a page.
pub(in crate::select) struct PlainPage<'p> {
    selection: &'p PlainSelection,
    out: &'p mut RowsOut,
    end: PageEnd,
    /// The clustering of the last row of the page.
    last: Option<Clustering>,
}

impl<'p> PlainPage<'p> {
    /// A page that appends to the rows in `out`.
    pub fn new(selection: &'p PlainSelection, out: &'p mut RowsOut, end: PageEnd) -> Self {
        Self {
            selection,
            out,
            end,
            last: None,
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.out.row_count >= self.end.rows_max || self.out.cells.len() >= self.end.bytes_max
    }

    fn end_with<'v>(&mut self, clustering: impl Iterator<Item = Option<&'v [u8]>>) {
        let values = clustering.map(|value| value.map(Bytes::copy_from_slice));
        self.last = Some(Clustering::new(values.collect()));
    }

    fn take_alike(&mut self, rows: &AlikeRows<'_>, parts: &[PlainValue<'_>]) -> (usize, Flow) {
        for (index, row) in rows.iter().enumerate() {
            for part in parts {
                self.out.value(match part {
                    PlainValue::At(place) => Some(RowLayout::part(row, place)),
                    PlainValue::Same(value) => *value,
                });
            }
            self.out.end_row();
            if self.is_full() {
                let places = rows.layout().clustering.iter();
                self.end_with(places.map(|place| Some(RowLayout::part(row, place))));
                return (index + 1, Flow::Last);
            }
        }
        (rows.count(), Flow::Next)
    }
}

impl PlainTaker for PlainPage<'_> {
    fn begin_partition(&mut self, given: u32) {
        if let Some(limit) = self.end.per_partition {
            let left = limit.saturating_sub(given);
            self.end.rows_max = self.end.rows_max.min(self.out.row_count.saturating_add(left));
        }
    }

    #[inline]
    fn row(&mut self, row: &PlainRow<'_>, within: Within<'_>) -> Flow {
        if !self.selection.write(row, within, self.out) {
            return Flow::Leave;
        }
        if !self.is_full() {
            return Flow::Next;
        }
        self.end_with(row.clustering.iter().copied());
        Flow::Last
    }

    fn rows(&mut self, rows: &AlikeRows<'_>, within: Within<'_>) -> (usize, Flow) {
        match self.selection.parts(rows, within) {
            Some(parts) if rows.layout().len < SHARED_MIN => self.take_alike(rows, &parts),
            _ => rows.each(|row| self.row(row, within)),
        }
    }

    fn take_last(&mut self) -> Option<Clustering> {
        self.last.take()
    }
}
