//! Plain rows (`ilion_rows::PlainRow`), used in place: where the values of columns are, and what consumes them.

mod aggregates;
mod page;

use std::ops::Range;

use bytes::Bytes;
use ilion_rows::{AlikeRows, Clustering, Flow, PlainRow, Row, may_be_plain, rows_may_be_plain};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::decode_composite;

pub(super) use aggregates::{PlainAggregates, PlainArguments};
pub(super) use page::{PageEnd, PlainPage, PlainSelection};

/// Where the value of a column is in plain rows.
#[derive(Debug)]
enum PlainColumn {
    /// The whole partition key.
    Key,
    KeyComponent(usize),
    Clustering(usize),
    Static(ColumnId),
    Cell(ColumnId),
}

impl PlainColumn {
    /// `None` if plain rows do not have the column.
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

    /// The value in a row; `None` is null.
    ///
    /// # Errors
    /// The partition key cannot be decoded by the table's types.
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

    /// Where the value is in rows with the same layout; `None` if the partition key of each row must be decoded.
    fn part<'p>(&self, rows: &AlikeRows<'p>, within: Within<'p>) -> Option<PlainValue<'p>> {
        let layout = rows.layout();
        Some(match self {
            Self::Key => match &layout.key {
                Some(place) => PlainValue::At(place.clone()),
                None => PlainValue::Same(Some(&rows.partition()?.key)),
            },
            Self::KeyComponent(index) if !within.key.is_empty() => {
                PlainValue::Same(within.key_component(*index))
            }
            Self::KeyComponent(_) => return None,
            Self::Clustering(index) => PlainValue::At(layout.clustering.get(*index)?.clone()),
            Self::Static(column) => PlainValue::Same(within.static_value(*column)),
            Self::Cell(column) => match layout.cell(*column) {
                Some(place) => PlainValue::At(place.clone()),
                None => PlainValue::Same(None),
            },
        })
    }
}

/// True if the table may have plain rows.
fn has_plain_rows(table: &TableSchema) -> bool {
    may_be_plain(table) || rows_may_be_plain(table)
}

/// The values of a column in rows with the same layout.
enum PlainValue<'p> {
    /// Each row has its own value in this range.
    At(Range<usize>),
    /// All rows have this value; `None` is null.
    Same(Option<&'p [u8]>),
}

/// The partition of the rows, if a partition of the table can have several rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Within<'p> {
    /// The components of its key.
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

/// Consumes the plain rows of a scan. Like `ilion_rows::PlainVisitor`, but also gets the partition of the rows.
pub(super) trait PlainTaker {
    /// The next rows are of one partition, in a table with clustering columns. `given` of its rows or groups were already returned.
    fn begin_partition(&mut self, _given: u32) {}

    /// Takes one row.
    fn row(&mut self, row: &PlainRow<'_>, within: Within<'_>) -> Flow;

    /// Takes rows with the same layout; returns how many it took.
    fn rows(&mut self, rows: &AlikeRows<'_>, within: Within<'_>) -> (usize, Flow);

    /// The row after which the consumer stopped; `None` if it does not need that position.
    fn take_last(&mut self) -> Option<Clustering> {
        None
    }
}
