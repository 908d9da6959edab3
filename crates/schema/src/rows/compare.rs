//! Comparing rows that are stored with rows that should be.

use bytes::Bytes;

use super::SchemaRow;

/// Those of `wanted` that are not among `stored`, or have other values there.
pub(super) fn missing_rows<'a>(stored: &[SchemaRow], wanted: &'a [SchemaRow]) -> Vec<&'a SchemaRow> {
    let mut sorted: Vec<&SchemaRow> = stored.iter().collect();
    sorted.sort_unstable_by_key(|row| row.key());
    let is_stored = |row: &SchemaRow| {
        let found = sorted.binary_search_by_key(&row.key(), |row| row.key());
        found.is_ok_and(|place| sorted[place].has_same_cells(row))
    };
    wanted.iter().filter(|row| !is_stored(row)).collect()
}

impl SchemaRow {
    fn key(&self) -> (&'static str, &str, &[Bytes]) {
        (self.table, &self.keyspace, &self.clustering)
    }

    /// A missing cell equals a null cell.
    fn has_same_cells(&self, other: &SchemaRow) -> bool {
        let has_all_of = |row: &SchemaRow, other: &SchemaRow| {
            let mut cells = other.cells.iter().filter(|(_, value)| value.is_some());
            cells.all(|cell| row.cells.contains(cell))
        };
        self.cells == other.cells || (has_all_of(self, other) && has_all_of(other, self))
    }
}
