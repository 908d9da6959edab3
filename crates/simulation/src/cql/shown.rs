//! The data of a node as text, to compare nodes.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::Engine;
use ilion_query::ResultSet;
use ilion_rows::{ClusteringFilter, Data, DecoratedKey, Row, Unfiltered};
use ilion_schema::{Schema, TableSchema};

/// The values of all rows, row after row.
pub(super) fn cells(rows: &ResultSet) -> Vec<Option<Vec<u8>>> {
    let bytes = rows.cells.clone().into_vec();
    let mut reader = ilion_codec::Reader::new(&bytes);
    let mut cells = Vec::new();
    while !reader.is_empty() {
        match reader.bytes32_or_null() {
            Ok(value) => cells.push(value.map(<[u8]>::to_vec)),
            Err(error) => panic!("an answer does not decode: {error}"),
        }
    }
    cells
}

/// A partition with its timestamps and tombstones, as it is stored.
pub(super) fn raw(engine: &Engine, table: &Arc<TableSchema>, key: i64) -> String {
    let key = Bytes::copy_from_slice(&key.to_be_bytes());
    let key = DecoratedKey::new(engine.partitioner(), key);
    let read = || -> Result<String, Box<dyn std::error::Error>> {
        let mut cursor = engine.read_partition(table, &key, &ClusteringFilter::all())?;
        let mut text = String::new();
        if let Some(head) = cursor.next_partition()? {
            text = format!("{:?} {:?}", head.deletion, head.static_row);
            while let Some(unfiltered) = cursor.next_unfiltered()? {
                match unfiltered {
                    Unfiltered::Row(row) => text.push_str(&raw_row(&row, table)),
                    Unfiltered::Marker(marker) => text.push_str(&format!(" {marker:?}")),
                }
            }
        }
        Ok(text)
    };
    read().unwrap_or_else(|error| panic!("a node reads what it has: {error}"))
}

/// A row as text. Each process gives columns numbers of its own, so they are shown by name.
fn raw_row(row: &Row, table: &TableSchema) -> String {
    let Row {
        clustering,
        liveness,
        deletion,
        columns,
    } = row;
    let columns: BTreeMap<String, &Data> = columns
        .iter()
        .map(|column| {
            let name = table.column(column.column).map(|column| column.name.to_string());
            (name.unwrap_or_default(), &column.data)
        })
        .collect();
    format!(" {clustering:?} {liveness:?} {deletion:?} {columns:?}")
}

/// A bigint.
pub(super) fn number(bytes: &[u8]) -> i64 {
    bytes.try_into().map_or(0, i64::from_be_bytes)
}

/// The tables of the clients, their ids and columns, and what was dropped when.
pub(super) fn schema_text(schema: &Schema) -> String {
    let mut text = String::new();
    for table in schema
        .keyspace("ks")
        .iter()
        .flat_map(|keyspace| keyspace.tables.values())
    {
        let mut columns: Vec<String> = table
            .every_column()
            .iter()
            .map(|column| format!("{} {:?}", column.name, column.ty))
            .collect();
        columns.sort();
        let dropped: Vec<(&String, i64)> = table
            .dropped
            .iter()
            .map(|(name, dropped)| (name, dropped.dropped_micros))
            .collect();
        text.push_str(&format!(
            "{} {} {columns:?} dropped {dropped:?}; ",
            table.name, table.id
        ));
    }
    text
}
