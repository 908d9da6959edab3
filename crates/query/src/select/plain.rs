//! Plain rows, answered where they lie (`ilion_rows::PlainRow`): from the bytes of a source to those of the answer.

use std::ops::Range;

use bytes::Bytes;
use ilion_codec::SHARED_MIN;
use ilion_rows::{
    AlikeRows, Clustering, Flow, PlainRow, PlainVisitor, Row, RowLayout, may_be_plain, rows_may_be_plain,
};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::decode_composite;
use smallvec::SmallVec;

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

    /// Where each value is in rows that are laid out alike; nothing if the key of each has to be taken apart.
    fn parts<'p>(&self, rows: &AlikeRows<'p>, within: Within<'p>) -> Option<SmallVec<[Part<'p>; 8]>> {
        let layout = rows.layout();
        let part = |selected: &Selected| {
            Some(match selected {
                Selected::Key => match &layout.key {
                    Some(place) => Part::At(place.clone()),
                    None => Part::Same(Some(&rows.partition()?.key)),
                },
                Selected::KeyComponent(index) if !within.key.is_empty() => {
                    Part::Same(within.key.get(*index).map(|component| &component[..]))
                }
                Selected::KeyComponent(_) => return None,
                Selected::Clustering(index) => Part::At(layout.clustering.get(*index)?.clone()),
                Selected::Static(column) => {
                    let cell = within.static_row.and_then(|row| row.cell(*column));
                    Part::Same(cell.map(|cell| cell.value))
                }
                Selected::Cell(column) => match layout.cell(*column) {
                    Some(place) => Part::At(place.clone()),
                    None => Part::Same(None),
                },
            })
        };
        self.0.iter().map(part).collect()
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

/// A value of rows that are laid out alike.
enum Part<'p> {
    /// Each row has its own there.
    At(Range<usize>),
    /// All have the same; nothing is null.
    Same(Option<&'p [u8]>),
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

impl PlainPage<'_> {
    #[inline]
    fn is_full(&self) -> bool {
        self.out.row_count >= self.end.rows_max || self.out.cells.len() >= self.end.bytes_max
    }

    fn end_with<'v>(&mut self, clustering: impl Iterator<Item = Option<&'v [u8]>>) {
        let values = clustering.map(|value| value.map(Bytes::copy_from_slice));
        self.last = Some(Clustering::new(values.collect()));
    }

    fn take_alike(&mut self, rows: &AlikeRows<'_>, parts: &[Part<'_>]) -> (usize, Flow) {
        for (index, row) in rows.iter().enumerate() {
            for part in parts {
                self.out.value(match part {
                    Part::At(place) => Some(RowLayout::part(row, place)),
                    Part::Same(value) => *value,
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

impl PlainVisitor for PlainPage<'_> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if !self.selection.write(row, self.within, self.out) {
            return Flow::Leave;
        }
        if !self.is_full() {
            return Flow::Next;
        }
        self.end_with(row.clustering.iter().copied());
        Flow::Last
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        match self.selection.parts(rows, self.within) {
            Some(parts) if rows.layout().len < SHARED_MIN => self.take_alike(rows, &parts),
            _ => rows.each(|row| self.row(row)),
        }
    }
}
