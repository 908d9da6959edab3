//! Plain rows, answered where they lie (`ilion_rows::PlainRow`): from the bytes of a source to those of the answer.

use bytes::Bytes;
use ilion_codec::SHARED_MIN;
use ilion_rows::{Clustering, Flow, PlainRow, PlainVisitor, Row, may_be_plain, rows_may_be_plain};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::decode_composite;

use super::rows_out::RowsOut;

/// What is answered of plain rows.
#[derive(Debug)]
pub(super) struct PlainSelection(Vec<Selected>);

#[derive(Debug)]
enum Selected {
    /// All of the partition key.
    Key,
    KeyComponent(usize),
    Clustering(usize),
    Static(ColumnId),
    Cell(ColumnId),
}

impl PlainSelection {
    /// Of columns as they are; nothing if rows of the table are never plain, or this is not to be had of them.
    pub fn of(columns: &[Column], table: &TableSchema) -> Option<Self> {
        let is_composite = table.partition_key().len() > 1;
        let selected = |column: &Column| {
            Some(match column.kind {
                ColumnKind::PartitionKey if is_composite => {
                    Selected::KeyComponent(usize::from(column.position))
                }
                ColumnKind::PartitionKey => Selected::Key,
                ColumnKind::Clustering => Selected::Clustering(usize::from(column.position)),
                ColumnKind::Static if column.is_complex() => return None,
                ColumnKind::Static => Selected::Static(column.id),
                ColumnKind::Regular => Selected::Cell(column.id),
            })
        };
        if !may_be_plain(table) && !rows_may_be_plain(table) {
            return None;
        }
        columns.iter().map(selected).collect::<Option<_>>().map(Self)
    }

    /// Appends the row; false if it was left alone, since it is damaged, or has a value that should not be copied.
    #[inline]
    fn write(&self, row: &PlainRow<'_>, within: Within<'_>, out: &mut RowsOut) -> bool {
        if row.cells.iter().any(|(_, value)| value.len() >= SHARED_MIN) {
            return false;
        }
        let start = out.cells.end().len();
        for selected in &self.0 {
            match selected {
                Selected::Key => out.value(Some(row.key)),
                Selected::Cell(column) => out.value(row.cell(*column)),
                Selected::Clustering(index) => out.value(row.clustering.get(*index).copied().flatten()),
                Selected::Static(column) => {
                    let cell = within.static_row.and_then(|row| row.cell(*column));
                    out.value(cell.map(|cell| cell.value));
                }
                Selected::KeyComponent(index) if !within.key.is_empty() => {
                    out.value(within.key.get(*index).map(|component| &component[..]));
                }
                Selected::KeyComponent(index) => match decode_composite(row.key) {
                    Ok(components) => out.value(components.get(*index).copied()),
                    Err(_) => {
                        out.cells.end().truncate(start);
                        return false;
                    }
                },
            }
        }
        out.end_row();
        true
    }
}

/// What is known of the partition that has the rows, if it has many.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Within<'p> {
    /// Components of its key.
    pub key: &'p [Bytes],
    pub static_row: Option<&'p Row>,
}

/// How far a page goes that takes plain rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageEnd {
    /// So many rows it then has.
    pub rows_max: u32,
    /// So many rows are given of each partition.
    pub per_partition: Option<u32>,
    /// It ends when it has so many bytes.
    pub bytes_max: usize,
}

/// Takes plain rows into a page.
pub(super) struct PlainPage<'p> {
    pub selection: &'p PlainSelection,
    pub within: Within<'p>,
    pub out: &'p mut RowsOut,
    pub end: PageEnd,
    /// Of the row with which the page ended.
    pub last: Option<Clustering>,
}

impl PlainVisitor for PlainPage<'_> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if !self.selection.write(row, self.within, self.out) {
            return Flow::Leave;
        }
        if self.out.row_count < self.end.rows_max && self.out.cells.len() < self.end.bytes_max {
            return Flow::Next;
        }
        let values = row.clustering.iter();
        let values = values.map(|value| value.map(Bytes::copy_from_slice));
        self.last = Some(Clustering::new(values.collect()));
        Flow::Last
    }
}
