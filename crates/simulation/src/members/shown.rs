//! What a node has, as text: to compare nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::Engine;
use ilion_rows::{ClusteringFilter, Data, DecoratedKey, Row, Unfiltered};
use ilion_schema::{AUTH_KEYSPACE, TableSchema};
use ilion_types::Token;

use crate::command::{COUNTER, REGISTERS};

/// The partitions that clients may have written, by table and key, whose tokens are wanted.
pub(super) fn partitions(
    engine: &Engine,
    cells: &BTreeSet<u64>,
    is_wanted: impl Fn(i64) -> bool,
) -> BTreeMap<(&'static str, u64), String> {
    let schema = engine.schema();
    let keys = (0..REGISTERS).map(|key| ("registers", key));
    let keys = keys.chain(cells.iter().map(|key| ("cells", *key)));
    keys.chain([("counters", COUNTER)])
        .filter_map(|(name, key)| {
            let table = schema.table("ks", name)?;
            let bytes = Bytes::copy_from_slice(&key.to_be_bytes());
            let decorated = DecoratedKey::new(engine.partitioner(), bytes);
            let Token::Murmur3(token) = decorated.token else {
                return None;
            };
            is_wanted(token).then(|| ((name, key), raw(engine, table, &decorated)))
        })
        .collect()
}

/// The row of a role.
pub(super) fn role(engine: &Engine, name: &str) -> String {
    let schema = engine.schema();
    let Some(table) = schema.table(AUTH_KEYSPACE, "roles") else {
        return "no table".to_owned();
    };
    let key = Bytes::copy_from_slice(name.as_bytes());
    raw(engine, table, &DecoratedKey::new(engine.partitioner(), key))
}

/// A partition with its timestamps and tombstones, as it is stored.
fn raw(engine: &Engine, table: &Arc<TableSchema>, key: &DecoratedKey) -> String {
    let read = || -> Result<String, Box<dyn std::error::Error>> {
        let mut cursor = engine.read_partition(table, key, &ClusteringFilter::all())?;
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
