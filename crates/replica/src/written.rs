//! The bytes of what a command has written, for digests: the same on all replicas.
//!
//! [`encode_mutation`] names the columns in the order of their numbers. A node numbers columns in its own way: those that were added while
//! the process ran come last, and a process that finds them in the schema numbers them by name. So here each column is encoded alone, in the
//! order of names.

use ilion_rows::{ColumnData, Mutation, PartitionUpdate, Row, encode_mutation};
use ilion_schema::TableSchema;

/// Appends a mutation to what was written.
pub(crate) fn append(mutation: &Mutation, written: &mut Vec<u8>) {
    let PartitionUpdate {
        deletion,
        static_row,
        rows,
        ranges,
    } = &mutation.update;
    let mut append_update = |update: PartitionUpdate| {
        let part = Mutation {
            update,
            ..mutation.clone()
        };
        encode_mutation(&part, written);
    };
    append_update(PartitionUpdate {
        deletion: *deletion,
        static_row: static_row.as_ref().map(|row| with(row, Vec::new())),
        rows: rows.iter().map(|row| with(row, Vec::new())).collect(),
        ranges: ranges.clone(),
    });
    for column in static_row.iter().flat_map(|row| by_name(row, &mutation.table)) {
        append_update(PartitionUpdate {
            static_row: static_row.as_ref().map(|row| with(row, vec![column.clone()])),
            ..PartitionUpdate::default()
        });
    }
    for row in rows {
        for column in by_name(row, &mutation.table) {
            append_update(PartitionUpdate {
                rows: vec![with(row, vec![column.clone()])],
                ..PartitionUpdate::default()
            });
        }
    }
}

/// The row with these columns only.
fn with(row: &Row, columns: Vec<ColumnData>) -> Row {
    Row {
        clustering: row.clustering.clone(),
        liveness: row.liveness,
        deletion: row.deletion,
        columns,
    }
}

/// The columns of a row in the order of their names.
fn by_name<'r>(row: &'r Row, table: &TableSchema) -> Vec<&'r ColumnData> {
    let mut columns: Vec<&ColumnData> = row.columns.iter().collect();
    columns.sort_by_key(|column| table.column(column.column).map(|column| column.name.clone()));
    columns
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use ilion_rows::{Cell, Clustering, Data, DecoratedKey, Liveness};
    use ilion_schema::{TableBuilder, TableId};
    use ilion_types::{CqlType, Partitioner};
    use uuid::Uuid;

    use super::*;

    /// What is written of a row of a table whose columns are numbered in this order, and the bytes of its mutation.
    fn written(columns: [&str; 3], values: &[(&str, u8)]) -> (Vec<u8>, Vec<u8>) {
        let table =
            TableBuilder::new("ks", "t", TableId(Uuid::from_u128(7))).partition_key("k", CqlType::Int);
        let table = columns
            .iter()
            .fold(table, |table, name| table.regular(*name, CqlType::Int));
        let table: Arc<TableSchema> = table.build();
        let mut row = Row::empty(Clustering::of([]));
        row.liveness = Liveness::live(5);
        row.columns = values
            .iter()
            .map(|(name, value)| ColumnData {
                column: table.column_named(name).unwrap().id,
                data: Data::Simple(Cell::live(5, Bytes::copy_from_slice(&[*value; 4]))),
            })
            .collect();
        row.columns.sort_by_key(|column| column.column);
        let key = DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(&[0, 0, 0, 9]));
        let update = PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        };
        let mutation = Mutation { table, key, update };
        let (mut bytes, mut encoded) = (Vec::new(), Vec::new());
        append(&mutation, &mut bytes);
        encode_mutation(&mutation, &mut encoded);
        (bytes, encoded)
    }

    #[test]
    fn the_numbers_of_columns_do_not_matter_and_the_values_do() {
        let values = [("v", 1), ("added", 2)];
        let (by_name, by_name_encoded) = written(["added", "other", "v"], &values);
        let (added_later, added_later_encoded) = written(["v", "other", "added"], &values);
        assert_eq!(by_name, added_later);
        assert_ne!(
            by_name_encoded, added_later_encoded,
            "otherwise this test shows nothing"
        );
        assert_ne!(
            by_name,
            written(["added", "other", "v"], &[("v", 2), ("added", 1)]).0
        );
        assert_ne!(
            by_name,
            written(["added", "other", "v"], &[("v", 1), ("other", 2)]).0
        );
        assert_ne!(by_name, written(["added", "other", "v"], &[("v", 1)]).0);
    }
}
