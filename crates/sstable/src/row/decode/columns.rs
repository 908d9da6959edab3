//! The columns of a file, matched with the table's current columns.

use ilion_rows::{ColumnData, NO_TIMESTAMP};
use ilion_schema::{ColumnId, ColumnKind, TableSchema};
use ilion_types::CqlType;

use crate::{Error, HeaderColumn, Result};

/// How a column of the file is decoded.
#[derive(Clone, Debug)]
pub(in crate::row) struct FileColumn {
    /// The column of the table; `None` if it was dropped.
    pub(in crate::row) column: Option<ColumnId>,
    pub(in crate::row) is_complex: bool,
    pub(in crate::row) is_counter: bool,
    /// Length of values that are stored without their length. Compat: values in complex columns always have one.
    pub(in crate::row) fixed_len: Option<usize>,
    /// The column of the table if it is simple and was never dropped: the usual case.
    pub(in crate::row) simple_id: Option<ColumnId>,
    /// Cells up to this timestamp are dropped, even if the column was added again.
    pub(in crate::row) dropped_micros: i64,
}

/// A column that is simple and was never dropped, for rows that have a value in each column.
#[derive(Clone, Copy, Debug)]
pub(in crate::row) struct UsualColumn {
    pub(in crate::row) id: ColumnId,
    /// Length of the values; zero if they are stored with their length.
    pub(in crate::row) fixed_len: usize,
}

impl UsualColumn {
    fn of(column: &FileColumn) -> Option<Self> {
        let fixed_len = column.fixed_len.unwrap_or(0);
        let is_ambiguous = column.fixed_len == Some(0);
        let id = column.simple_id.filter(|_| !is_ambiguous)?;
        Some(Self { id, fixed_len })
    }
}

/// The static or the regular columns of a file, in the order of its header.
#[derive(Clone, Debug)]
pub(in crate::row) struct FileColumns {
    pub(in crate::row) columns: Box<[FileColumn]>,
    /// True if the file's order ascends by id, so that rows need no sorting.
    pub(in crate::row) ids_ascend: bool,
    /// True if no column was ever dropped.
    pub(in crate::row) is_whole: bool,
    /// Indexes by column id, ascending.
    by_id: Box<[(ColumnId, usize)]>,
    /// True if the table would now store the columns that it still has with the same fixed lengths as the file.
    pub(in crate::row) lens_are_same: bool,
    /// All columns, if each is simple, was never dropped, and would now be stored with the same fixed length; else `None`.
    pub(in crate::row) usual: Option<Box<[UsualColumn]>>,
}

impl FileColumns {
    /// Matches the columns of a file with those of the table.
    ///
    /// # Errors
    /// Refused: a column that the table neither has nor has dropped (the schema is older than the file), or a column that is complex
    /// in only one of them.
    pub(in crate::row) fn of(header: &[HeaderColumn], kind: ColumnKind, table: &TableSchema) -> Result<Self> {
        let columns = header
            .iter()
            .map(|column| FileColumn::of(column, kind, table))
            .collect::<Result<Box<[_]>>>()?;
        let ids = columns.iter().filter_map(|column| column.column);
        let indexes = columns.iter().enumerate();
        let mut by_id: Box<[_]> = indexes
            .filter_map(|(index, column)| Some((column.column?, index)))
            .collect();
        by_id.sort_unstable();
        let is_same = |column: &FileColumn| {
            let current = column.column.and_then(|id| table.column(id));
            current.is_none_or(|current| current.ty.fixed_len() == column.fixed_len)
        };
        let lens_are_same = columns.iter().all(is_same);
        let usual = columns.iter().map(UsualColumn::of).collect::<Option<_>>();
        Ok(Self {
            ids_ascend: ids.is_sorted(),
            is_whole: columns
                .iter()
                .all(|column| column.column.is_some() && column.dropped_micros == NO_TIMESTAMP),
            by_id,
            lens_are_same,
            usual: usual.filter(|_| lens_are_same),
            columns,
        })
    }

    /// Sorts the columns of a decoded row by id.
    #[inline]
    pub(in crate::row) fn put_in_order(&self, row: &mut [ColumnData]) {
        if !self.ids_ascend {
            row.sort_unstable_by_key(|entry| entry.column);
        }
    }

    /// The index of the column in the file.
    pub(in crate::row) fn index_of(&self, id: ColumnId) -> Option<usize> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.by_id[at].1)
    }
}

impl FileColumn {
    fn of(header: &HeaderColumn, kind: ColumnKind, table: &TableSchema) -> Result<Self> {
        let is_complex = header.class.ty.is_multi_cell();
        let dropped = table.dropped.get(&header.name);
        let current = table
            .column_named(&header.name)
            .filter(|column| column.kind == kind);
        if current.is_none() && dropped.is_none_or(|dropped| dropped.kind != kind) {
            return Err(Error::Refused(format!(
                "column {} is neither in table {}.{} nor among its dropped columns: the table's schema is older than the file",
                header.name, table.keyspace, table.name
            )));
        }
        if current.is_some_and(|column| column.is_complex() != is_complex) {
            return Err(Error::Refused(format!(
                "column {} of table {}.{} has the type {} in the file: one is frozen and the other is not",
                header.name, table.keyspace, table.name, header.class.text
            )));
        }
        let column = current.map(|column| column.id);
        Ok(Self {
            column,
            simple_id: column.filter(|_| !is_complex && dropped.is_none()),
            is_complex,
            is_counter: header.class.ty == CqlType::Counter,
            fixed_len: header.class.ty.fixed_len(),
            dropped_micros: dropped.map_or(NO_TIMESTAMP, |dropped| dropped.dropped_micros),
        })
    }

    /// True for data that was written after the column was dropped.
    #[inline]
    pub(in crate::row) fn keeps(&self, timestamp_micros: i64) -> bool {
        timestamp_micros > self.dropped_micros || self.dropped_micros == NO_TIMESTAMP
    }
}
