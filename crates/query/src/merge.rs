//! Merges several updates of one partition, and measures the size of an update as the limits of batches do.

use bytes::Bytes;
use ilion_rows::{Cell, ClusteringComparator, Data, PartitionUpdate, Row};
use ilion_schema::TableSchema;

/// Merges the later updates into the first. They usually have the same timestamp, so the rules for cells decide which one wins, cell by
/// cell; the order of the updates does not matter.
pub(crate) fn merge_updates(
    first: PartitionUpdate,
    rest: impl Iterator<Item = PartitionUpdate>,
    table: &TableSchema,
) -> PartitionUpdate {
    let mut merged = first;
    for update in rest {
        merged.deletion = match (merged.deletion, update.deletion) {
            (Some(one), Some(other)) => Some(one.max(other)),
            (one, other) => one.or(other),
        };
        merged.static_row = match (merged.static_row, update.static_row) {
            (Some(mut one), Some(other)) => {
                one.merge(other, table);
                Some(one)
            }
            (one, other) => one.or(other),
        };
        merged.rows.extend(update.rows);
        merged.ranges.extend(update.ranges);
    }
    merged.rows = sorted_rows(merged.rows, table);
    merged
}

fn sorted_rows(mut rows: Vec<Row>, table: &TableSchema) -> Vec<Row> {
    let comparator = ClusteringComparator::of(table);
    rows.sort_by(|a, b| comparator.compare(&a.clustering, &b.clustering));
    let mut sorted: Vec<Row> = Vec::with_capacity(rows.len());
    for row in rows {
        match sorted.last_mut() {
            Some(last) if comparator.compare(&last.clustering, &row.clustering).is_eq() => {
                last.merge(row, table);
            }
            _ => sorted.push(row),
        }
    }
    sorted
}

/// Compat: `PartitionUpdate.dataSize`, the unit of the limits of batches.
pub(crate) fn data_len(update: &PartitionUpdate) -> usize {
    const DELETION_LEN: usize = 12;
    let deletions = usize::from(update.deletion.is_some()) + update.ranges.len();
    let rows = update.static_row.iter().chain(&update.rows);
    deletions * DELETION_LEN + rows.map(row_len).sum::<usize>()
}

fn row_len(row: &Row) -> usize {
    const KEY_AND_DELETION_LEN: usize = 8 + 12;
    let clustering: usize = row.clustering.values().iter().flatten().map(Bytes::len).sum();
    let columns = row.columns.iter().map(|column| match &column.data {
        Data::Simple(cell) => cell_len(cell),
        Data::Complex(complex) => {
            let cells = complex.cells.iter();
            cells.map(|(path, cell)| path.len() + cell_len(cell)).sum()
        }
    });
    clustering + KEY_AND_DELETION_LEN + columns.sum::<usize>()
}

fn cell_len(cell: &Cell) -> usize {
    const TIMES_LEN: usize = 8 + 4 + 4;
    TIMES_LEN + cell.value.len()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ilion_rows::{Clustering, ColumnData, DeletionTime};
    use ilion_schema::{ClusteringOrder, TableBuilder, TableId};
    use ilion_types::CqlType;

    use super::*;

    fn table() -> Arc<TableSchema> {
        TableBuilder::new("ks", "t", TableId(uuid::Uuid::nil()))
            .partition_key("k", CqlType::Int)
            .clustering("c", CqlType::TinyInt, ClusteringOrder::Desc)
            .static_column("s", CqlType::Blob)
            .regular("v", CqlType::Blob)
            .build()
    }

    fn row(table: &TableSchema, clustering: Option<u8>, column: &str, timestamp: i64, value: &[u8]) -> Row {
        let values = clustering.map(|value| Bytes::from(vec![value]));
        Row {
            columns: vec![ColumnData {
                column: table.column_named(column).unwrap().id,
                data: Data::Simple(Cell::live(timestamp, Bytes::copy_from_slice(value))),
            }],
            ..Row::empty(Clustering::of(values))
        }
    }

    fn rows(rows: Vec<Row>) -> PartitionUpdate {
        PartitionUpdate {
            rows,
            ..PartitionUpdate::default()
        }
    }

    #[test]
    fn rows_come_out_in_clustering_order_each_once_and_the_newest_cell_wins() {
        let table = table();
        let at = |clustering, timestamp, value: &[u8]| row(&table, Some(clustering), "v", timestamp, value);
        let merged = merge_updates(
            rows(vec![at(2, 10, b"old")]),
            [
                rows(vec![at(1, 10, b"one")]),
                rows(vec![at(3, 10, b"x"), at(2, 11, b"new")]),
            ]
            .into_iter(),
            &table,
        );
        assert_eq!(
            merged.rows,
            [at(3, 10, b"x"), at(2, 11, b"new"), at(1, 10, b"one")]
        );
    }

    #[test]
    fn the_static_row_and_the_deletion_are_merged_too() {
        let table = table();
        let statics = |timestamp, value: &[u8]| PartitionUpdate {
            static_row: Some(row(&table, None, "s", timestamp, value)),
            deletion: Some(DeletionTime::new(timestamp - 5, 0)),
            ..PartitionUpdate::default()
        };
        let merged = merge_updates(statics(20, b"new"), [statics(10, b"old")].into_iter(), &table);
        assert_eq!(merged, statics(20, b"new"));
    }

    #[test]
    fn values_paths_and_times_make_the_size() {
        let table = table();
        let update = rows(vec![row(&table, Some(1), "v", 1, &[0; 100])]);
        assert_eq!(data_len(&update), 1 + 20 + 16 + 100);
    }
}
