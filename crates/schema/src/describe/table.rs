//! CREATE TABLE.
//!
//! A dropped column is created, dropped with its timestamp, and added again if it exists again. A table that is made from these
//! statements skips the same old cells.

use std::fmt::Write as _;

use ilion_types::{CqlType, quote_name};

use super::options::with_clause;
use super::{Internals, qualified};
use crate::{Column, ColumnKind, DroppedColumn, TableKind, TableSchema};

const INDENT: &str = "    ";

/// The CREATE TABLE statement; a comment if CQL cannot create such a table.
pub fn describe_table(table: &TableSchema, internals: Internals) -> String {
    let statement = create_statement(table, internals);
    let name = qualified(&table.keyspace, &table.name);
    if table.kind == TableKind::Virtual {
        return format!(
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\n\
             Structure, for reference:\n{statement}\n*/"
        );
    }
    if table.is_compact() {
        return format!(
            "/*\nWarning: Table {name} omitted because it has constructs not compatible with CQL (was created \
             via legacy API).\nApproximate structure, for reference:\n(this should not be used to reproduce \
             this schema)\n\n{statement}\n*/"
        );
    }
    statement
}

fn create_statement(table: &TableSchema, internals: Internals) -> String {
    let keyword = if table.kind == TableKind::Virtual {
        "VIRTUAL"
    } else {
        "CREATE"
    };
    let name = qualified(&table.keyspace, &table.name);
    let dropped = match internals {
        Internals::Shown => dropped_columns(table),
        Internals::Hidden => Vec::new(),
    };
    let mut lines: Vec<String> = columns(table)
        .filter(|column| dropped.iter().all(|old| old.name != column.name))
        .map(|column| column_definition(table, column))
        .collect();
    lines.extend(dropped.iter().map(|old| definition(&old.name, &old.ty, old.kind)));
    if !has_simple_key(table) {
        lines.push(primary_key(table));
    }
    let body: Vec<String> = lines.iter().map(|line| format!("{INDENT}{line}")).collect();
    let options = with_clause(table, internals);
    let mut out = format!(
        "{keyword} TABLE {name} (\n{}\n) WITH {options};",
        body.join(",\n")
    );
    for old in dropped {
        let column = quote_name(&old.name);
        let _ = write!(
            out,
            "\nALTER TABLE {name} DROP {column} USING TIMESTAMP {};",
            old.dropped_micros
        );
        if let Some(again) = table.column_named(&old.name) {
            let _ = write!(
                out,
                "\nALTER TABLE {name} ADD {};",
                masked_definition(again, again.kind)
            );
        }
    }
    out
}

/// True if the key can be printed as `k int PRIMARY KEY`.
fn has_simple_key(table: &TableSchema) -> bool {
    table.partition_key().len() == 1 && table.clustering().len() == 0
}

/// The dropped columns, in the order of their drop times.
fn dropped_columns(table: &TableSchema) -> Vec<&DroppedColumn> {
    let mut dropped: Vec<&DroppedColumn> = table.dropped.values().collect();
    dropped.sort_by_key(|column| (column.dropped_micros, &column.name));
    dropped
}

pub(super) fn clustering(table: &TableSchema) -> Vec<&Column> {
    table
        .clustering()
        .filter(|column| !table.is_hidden(column))
        .collect()
}

/// The columns of a CREATE statement, in storage order.
fn columns(table: &TableSchema) -> impl Iterator<Item = &Column> {
    table
        .partition_key()
        .chain(clustering(table))
        .chain(table.statics())
        .chain(table.regulars().filter(|column| !table.is_hidden(column)))
}

fn column_definition(table: &TableSchema, column: &Column) -> String {
    let is_hidden_static = column.kind == ColumnKind::Static && table.is_static_compact();
    let kind = if is_hidden_static {
        ColumnKind::Regular
    } else {
        column.kind
    };
    let mut text = masked_definition(column, kind);
    if column.kind == ColumnKind::PartitionKey && has_simple_key(table) {
        text.push_str(" PRIMARY KEY");
    }
    text
}

/// Compat: `ColumnMetadata.appendCqlTo`.
fn masked_definition(column: &Column, kind: ColumnKind) -> String {
    let text = definition(&column.name, &column.ty, kind);
    match &column.mask {
        Some(mask) => format!("{text} MASKED WITH {mask}"),
        None => text,
    }
}

fn definition(name: &str, ty: &CqlType, kind: ColumnKind) -> String {
    let suffix = if kind == ColumnKind::Static { " static" } else { "" };
    format!("{} {ty}{suffix}", quote_name(name))
}

/// `PRIMARY KEY ((a, b), c)`
pub(super) fn primary_key(table: &TableSchema) -> String {
    let join = |columns: Vec<&Column>| {
        columns
            .into_iter()
            .map(|column| quote_name(&column.name))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let partition = join(table.partition_key().collect());
    let partition = if table.partition_key().len() > 1 {
        format!("({partition})")
    } else {
        partition
    };
    match clustering(table) {
        columns if columns.is_empty() => format!("PRIMARY KEY ({partition})"),
        columns => format!("PRIMARY KEY ({partition}, {})", join(columns)),
    }
}
