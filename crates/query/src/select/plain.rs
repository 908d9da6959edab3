//! Plain rows, taken where they lie (`ilion_rows::PlainRow`): what their columns have, and who takes them.

mod aggregates;
mod page;

use std::ops::Range;

use bytes::Bytes;
use ilion_rows::{AlikeRows, Clustering, Flow, PlainRow, Row, may_be_plain, rows_may_be_plain};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::decode_composite;

pub(super) use aggregates::{PlainAggregates, PlainArguments};
pub(super) use page::{PageEnd, PlainPage, PlainSelection};

/// A column as it is in plain rows.
#[derive(Debug)]
enum PlainColumn {
    /// All of the partition key.
    Key,
    KeyComponent(usize),
    Clustering(usize),
    Static(ColumnId),
    Cell(ColumnId),
}

impl PlainColumn {
    /// `None` if it is not to be had of plain rows.
    fn of(column: &Column, table: &TableSchema) -> Option<Self> {
        Some(match column.kind {
            ColumnKind::PartitionKey if table.partition_key().len() > 1 => {
                Self::KeyComponent(usize::from(column.position))
            }
            ColumnKind::PartitionKey => Self::Key,
            ColumnKind::Clustering => Self::Clustering(usize::from(column.position)),
            ColumnKind::Static if column.is_complex() => return None,
            ColumnKind::Static => Self::Static(column.id),
            ColumnKind::Regular => Self::Cell(column.id),
        })
    }

    /// The value in a row; null is nothing.
    ///
    /// # Errors
    /// The key is none of the table.
    #[inline]
    fn value<'b>(
        &self,
        row: &PlainRow<'b>,
        within: Within<'b>,
    ) -> Result<Option<&'b [u8]>, ilion_types::Error> {
        Ok(match self {
            Self::Key => Some(row.key),
            Self::Cell(column) => row.cell(*column),
            Self::Clustering(index) => row.clustering.get(*index).copied().flatten(),
            Self::Static(column) => within.static_value(*column),
            Self::KeyComponent(index) if !within.key.is_empty() => within.key_component(*index),
            Self::KeyComponent(index) => decode_composite(row.key)?.get(*index).copied(),
        })
    }

    /// Where the value is in rows that are laid out alike; `None` if the key of each has to be taken apart.
    fn part<'p>(&self, rows: &AlikeRows<'p>, within: Within<'p>) -> Option<Part<'p>> {
        let layout = rows.layout();
        Some(match self {
            Self::Key => match &layout.key {
                Some(place) => Part::At(place.clone()),
                None => Part::Same(Some(&rows.partition()?.key)),
            },
            Self::KeyComponent(index) if !within.key.is_empty() => Part::Same(within.key_component(*index)),
            Self::KeyComponent(_) => return None,
            Self::Clustering(index) => Part::At(layout.clustering.get(*index)?.clone()),
            Self::Static(column) => Part::Same(within.static_value(*column)),
            Self::Cell(column) => match layout.cell(*column) {
                Some(place) => Part::At(place.clone()),
                None => Part::Same(None),
            },
        })
    }
}

/// True if rows of the table are ever plain.
fn has_plain_rows(table: &TableSchema) -> bool {
    may_be_plain(table) || rows_may_be_plain(table)
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

impl<'p> Within<'p> {
    fn key_component(&self, index: usize) -> Option<&'p [u8]> {
        self.key.get(index).map(|component| &component[..])
    }

    fn static_value(&self, column: ColumnId) -> Option<&'p [u8]> {
        Some(self.static_row?.cell(column)?.value)
    }
}

/// Takes the plain rows that a scan comes to, as `ilion_rows::PlainVisitor` does, knowing of their partition.
pub(super) trait PlainTaker {
    /// What follows is of a partition that has many rows, of which so many were given.
    fn begin_partition(&mut self, _given: u32) {}

    /// Takes one.
    fn row(&mut self, row: &PlainRow<'_>, within: Within<'_>) -> Flow;

    /// Takes such that are laid out alike.
    fn rows(&mut self, rows: &AlikeRows<'_>, within: Within<'_>) -> (usize, Flow);

    /// The row after which it wants no more, if it matters where that was.
    fn take_last(&mut self) -> Option<Clustering> {
        None
    }
}
