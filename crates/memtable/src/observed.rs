//! Observers of writes: which columns they need, and how a change is shown to them.

use ilion_rows::{Before, Row, RowChange};
use ilion_schema::ColumnId;

/// The columns that an observer needs from a row as it was before a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Observed {
    /// The whole row, or only whether the row is empty.
    #[default]
    Rows,
    /// The key of the row and these columns. The old row may lack all others.
    Columns(Box<[ColumnId]>),
}

impl Observed {
    /// The union of what several observers need; each needs one column, or (`None`) whole rows.
    pub fn of(each: impl Iterator<Item = Option<ColumnId>>) -> Self {
        let columns: Option<Vec<ColumnId>> = each.collect();
        columns.map_or(Self::Rows, |mut columns| {
            columns.sort_unstable();
            columns.dedup();
            Self::Columns(columns.into())
        })
    }

    /// True if a column is needed.
    pub fn has(&self, column: ColumnId) -> bool {
        match self {
            Self::Rows => true,
            Self::Columns(columns) => columns.contains(&column),
        }
    }

    /// The needed part of a row.
    pub(crate) fn part_of(&self, row: &Row) -> Row {
        let columns = row.columns.iter().filter(|entry| self.has(entry.column));
        Row {
            clustering: row.clustering.clone(),
            columns: columns.cloned().collect(),
            ..*row
        }
    }
}

/// A callback for changed rows, and the columns that it needs.
pub(crate) struct Observer<'o> {
    pub(crate) observed: &'o Observed,
    pub(crate) see: &'o mut dyn FnMut(RowChange<'_>),
}

impl Observer<'_> {
    /// Shows a change: the old row (`None` if it did not exist) and the new one.
    #[inline]
    pub(crate) fn show(&mut self, before: Option<Before<'_>>, after: &Row) {
        (self.see)(RowChange { before, after });
    }
}
