//! The encoder's view of a row, in any representation.

use std::ops::Deref;

use bytes::Bytes;
use ilion_rows::{CellRef, ComplexColumn, Data, DeletionTime, EntryRow, Liveness, PlainRow, Row};
use ilion_schema::ColumnId;

use crate::row::format::state::RowState;

/// A row to be stored.
pub(crate) trait RowSource {
    /// The type of a clustering value.
    type Value: Deref<Target = [u8]>;

    /// A value for each clustering column.
    fn clustering(&self) -> &[Option<Self::Value>];
    /// What the row has besides its clustering and its columns.
    fn state(&self) -> RowState;
    /// The column at an index; `None` behind the last one.
    fn column(&self, index: usize) -> Option<(ColumnId, Content<'_>)>;
}

/// The data of a column.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Content<'r> {
    /// One cell. The second field is its value as `Bytes`, if the value can be shared instead of copied.
    Simple(CellRef<'r>, Option<&'r Bytes>),
    /// An unfrozen collection or user type.
    Complex(&'r ComplexColumn),
}

impl RowSource for Row {
    type Value = Bytes;

    #[inline]
    fn clustering(&self) -> &[Option<Bytes>] {
        self.clustering.values()
    }

    #[inline]
    fn state(&self) -> RowState {
        RowState::of(self)
    }

    #[inline]
    fn column(&self, index: usize) -> Option<(ColumnId, Content<'_>)> {
        let entry = self.columns.get(index)?;
        let content = match &entry.data {
            Data::Simple(cell) => Content::Simple(cell.into(), Some(&cell.value)),
            Data::Complex(complex) => Content::Complex(complex),
        };
        Some((entry.column, content))
    }
}

/// A plain row, read from an SSTable or memtable, whose liveness and cells have the same timestamp.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenRow<'s, 'b> {
    pub(crate) row: &'s PlainRow<'b>,
    pub(crate) written_micros: i64,
}

impl<'b> RowSource for SeenRow<'_, 'b> {
    type Value = &'b [u8];

    #[inline]
    fn clustering(&self) -> &[Option<&'b [u8]>] {
        self.row.clustering
    }

    #[inline]
    fn state(&self) -> RowState {
        RowState::new(Liveness::live(self.written_micros), DeletionTime::LIVE)
    }

    #[inline]
    fn column(&self, index: usize) -> Option<(ColumnId, Content<'_>)> {
        let (column, value) = *self.row.cells.get(index)?;
        let cell = CellRef::live(self.written_micros, value);
        Some((column, Content::Simple(cell, None)))
    }
}

/// An entry of a hidden table of an index; it has no columns.
impl<'e> RowSource for EntryRow<'e> {
    type Value = &'e [u8];

    #[inline]
    fn clustering(&self) -> &[Option<&'e [u8]>] {
        &self.clustering
    }

    #[inline]
    fn state(&self) -> RowState {
        RowState::new(self.liveness, self.deletion)
    }

    #[inline]
    fn column(&self, _: usize) -> Option<(ColumnId, Content<'_>)> {
        None
    }
}
