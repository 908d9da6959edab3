//! The bytes of what a command has written, for digests: the same on all replicas.
//!
//! [`encode_mutation`] names the columns in the order of their ids. A node numbers columns in its own way: those that were added while the
//! process ran come last, and a process that finds them in the schema numbers them by name.

use std::borrow::Cow;
use std::sync::Arc;

use ilion_rows::{Mutation, Row, encode_mutation};
use ilion_schema::TableSchema;

/// Appends a mutation to what was written.
pub(crate) fn append(mutation: &Mutation, written: &mut Vec<u8>) {
    let mutation = match mutation.table.with_column_ids_in_order() {
        None => Cow::Borrowed(mutation),
        Some(table) => Cow::Owned(renumbered(mutation.clone(), table)),
    };
    encode_mutation(&mutation, written);
}

/// The mutation with the column ids of `table`, which has the same columns.
fn renumbered(mut mutation: Mutation, table: Arc<TableSchema>) -> Mutation {
    let update = &mut mutation.update;
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        renumber(row, &mutation.table, &table);
    }
    mutation.table = table;
    mutation
}

fn renumber(row: &mut Row, from: &TableSchema, to: &TableSchema) {
    for entry in &mut row.columns {
        let column = from.column(entry.column);
        if let Some(column) = column.and_then(|column| to.column_named(&column.name)) {
            entry.column = column.id;
        }
    }
    row.columns.sort_by_key(|entry| entry.column);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_rows::{Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, PartitionUpdate};
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
