//! Tests with columns that were dropped from the table, or dropped and added again.

use std::sync::Arc;

use ilion_rows::{ClusteringFilter, KeyRange, ReadError, Unfiltered};
use ilion_schema::{ClusteringOrder, ColumnKind, DroppedColumn, TableBuilder, TableId, TableSchema};
use ilion_sstable::{SSTable, Scan, dump};
use ilion_types::{CqlType, Uuid};

use crate::support::{scan_all, small_cases};

/// Timestamps in the file are from 1700000000000000 to 1700000000000030.
const BETWEEN_MICROS: i64 = 1_700_000_000_000_020;
const AFTER_MICROS: i64 = 1_795_190_151_055_000;

fn file() -> Arc<SSTable> {
    let cases = small_cases();
    let case = cases.iter().find(|case| case.name == "dropped_column-nb");
    case.unwrap().open(0).0
}

fn table() -> TableBuilder {
    TableBuilder::new("fx", "dropped_column", TableId(Uuid::nil()))
        .partition_key("k", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .regular("v", CqlType::Text)
}

fn map() -> CqlType {
    CqlType::Map {
        key: Arc::new(CqlType::Int),
        value: Arc::new(CqlType::Int),
        frozen: false,
    }
}

fn dropped(mut table: TableBuilder, name: &str, ty: CqlType, dropped_micros: i64) -> TableBuilder {
    let column = DroppedColumn {
        name: name.to_owned(),
        kind: ColumnKind::Regular,
        ty,
        dropped_micros,
    };
    table.dropped.insert(name.to_owned(), column);
    table
}

fn dump_all(sstable: &Arc<SSTable>, table: &Arc<TableSchema>) -> String {
    let filter = Arc::new(ClusteringFilter::all());
    let mut cursor = sstable.cursor(table, KeyRange::all(), filter, Scan::Point);
    let mut out = String::new();
    while dump::dump_partition(&mut cursor, table, &mut out).unwrap() {}
    out
}

#[test]
fn dropped_columns_are_read_over() {
    let both = dropped(table(), "gone", CqlType::Text, AFTER_MICROS);
    let table = dropped(both, "gm", map(), AFTER_MICROS).build();
    let text = dump_all(&file(), &table);
    let first = "{\"type\":\"row\",\"clustering\":[25],\"liveness_info\":{\"tstamp\":\"1700000000000026\"},\
        \"cells\":[{\"name\":\"v\",\"value\":\"teak\"}]}";
    assert!(text.contains(first), "{text}");
    assert!(!text.contains("gone") && !text.contains("\"gm\""), "{text}");
}

#[test]
fn columns_that_came_back_have_what_was_written_since() {
    let back = table().regular("gone", CqlType::Text).regular("gm", map());
    let back = dropped(back, "gone", CqlType::Text, BETWEEN_MICROS);
    let table = dropped(back, "gm", map(), BETWEEN_MICROS).build();
    let names = ["gone", "gm"].map(|name| table.column_named(name).unwrap().id);
    let mut kept = 0;
    for partition in scan_all(&file(), &table) {
        for unfiltered in partition.unfiltereds {
            let Unfiltered::Row(row) = unfiltered else {
                panic!("the file has rows only");
            };
            let is_newer = row.liveness.timestamp_micros > BETWEEN_MICROS;
            assert!(names.iter().all(|name| row.column(*name).is_some() == is_newer));
            assert!(row.columns.is_sorted_by_key(|entry| entry.column));
            kept += usize::from(is_newer);
        }
    }
    assert_eq!(kept, 10);
}

#[test]
fn columns_that_the_table_never_had_are_refused() {
    let table = dropped(table(), "gone", CqlType::Text, AFTER_MICROS).build();
    let filter = Arc::new(ClusteringFilter::all());
    let sstable = file();
    let mut cursor = sstable.cursor(&table, KeyRange::all(), filter, Scan::Point);
    let error: ReadError = ilion_rows::Cursor::next_partition(&mut cursor).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("column gm is neither in table fx.dropped_column"),
        "{error}"
    );
}
