//! Who is shown how rows change, and what of them.

use ilion_rows::{Before, Row, RowChange};
use ilion_schema::ColumnId;

/// What of a row somebody looks at who is shown its changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Watched {
    /// All of it, or whether it has anything at all.
    #[default]
    Rows,
    /// Its key and these columns. Of a row before a change there may be nothing else.
    Columns(Box<[ColumnId]>),
}

impl Watched {
    /// What several look at, each at one column or at whole rows (nothing).
    pub fn of(each: impl Iterator<Item = Option<ColumnId>>) -> Self {
        let columns: Option<Vec<ColumnId>> = each.collect();
        columns.map_or(Self::Rows, |mut columns| {
            columns.sort_unstable();
            columns.dedup();
            Self::Columns(columns.into())
        })
    }

    /// True if a column is looked at.
    pub fn has(&self, column: ColumnId) -> bool {
        match self {
            Self::Rows => true,
            Self::Columns(columns) => columns.contains(&column),
        }
    }

    /// What is looked at of a row.
    pub(crate) fn part_of(&self, row: &Row) -> Row {
        let columns = row.columns.iter().filter(|entry| self.has(entry.column));
        Row {
            clustering: row.clustering.clone(),
            liveness: row.liveness,
            deletion: row.deletion,
            columns: columns.cloned().collect(),
        }
    }
}

/// Somebody who is shown how rows change.
pub(crate) struct Observer<'o> {
    pub(crate) watched: &'o Watched,
    pub(crate) see: &'o mut dyn FnMut(RowChange<'_>),
}

impl Observer<'_> {
    /// Shows a change: the row before (nothing if it was not there) and after.
    #[inline]
    pub(crate) fn show(&mut self, before: Option<Before<'_>>, after: &Row) {
        (self.see)(RowChange { before, after });
    }
}
