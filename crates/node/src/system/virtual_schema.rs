//! `system_virtual_schema`: the schema of the virtual tables, which drivers read.

use ilion_engine::VirtualRow;
use ilion_schema::{ClusteringOrder, Column, ColumnKind, Schema, TableKind, TableSchema};

use crate::values::{cell, int, text};

fn virtual_tables(schema: &Schema) -> impl Iterator<Item = &TableSchema> {
    let tables = schema
        .keyspaces
        .values()
        .flat_map(|keyspace| keyspace.tables.values());
    tables
        .map(AsRef::as_ref)
        .filter(|table| table.kind == TableKind::Virtual)
}

pub(super) fn keyspaces(schema: &Schema) -> Vec<VirtualRow> {
    let mut names: Vec<&str> = virtual_tables(schema)
        .map(|table| table.keyspace.as_str())
        .collect();
    names.dedup();
    names
        .into_iter()
        .map(|name| VirtualRow {
            partition_key: vec![text(name)],
            ..VirtualRow::default()
        })
        .collect()
}

pub(super) fn tables(schema: &Schema) -> Vec<VirtualRow> {
    virtual_tables(schema)
        .map(|table| VirtualRow {
            partition_key: vec![text(&table.keyspace)],
            clustering: vec![text(&table.name)],
            cells: vec![cell("comment", text(&table.options.comment))],
        })
        .collect()
}

pub(super) fn columns(schema: &Schema) -> Vec<VirtualRow> {
    virtual_tables(schema)
        .flat_map(|table| {
            let columns = table.select_order().into_iter();
            columns.map(|column| row_of(table, column))
        })
        .collect()
}

fn row_of(table: &TableSchema, column: &Column) -> VirtualRow {
    let position = match column.kind {
        ColumnKind::PartitionKey | ColumnKind::Clustering => i32::from(column.position),
        ColumnKind::Static | ColumnKind::Regular => -1,
    };
    let kind = column.kind.name();
    let order = match (column.kind, column.order) {
        (ColumnKind::Clustering, ClusteringOrder::Asc) => "asc",
        (ColumnKind::Clustering, ClusteringOrder::Desc) => "desc",
        _ => "none",
    };
    VirtualRow {
        partition_key: vec![text(&table.keyspace)],
        clustering: vec![text(&table.name), text(&column.name)],
        cells: vec![
            cell("clustering_order", text(order)),
            cell("column_name_bytes", text(&column.name)),
            cell("kind", text(kind)),
            cell("position", int(position)),
            cell("type", text(&column.ty.to_string())),
        ],
    }
}
