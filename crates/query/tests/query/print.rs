//! Answers as text.

use ilion_query::{ColumnSpec, Error, Executed, Outcome, Prepared, ResultSet};
use ilion_rows::{Cell, Cursor, Data, DeletionTime, Row, Unfiltered};
use ilion_schema::TableSchema;
use ilion_schema::{EventTarget, SchemaEvent};
use ilion_types::CqlType;

/// Whether a header has the types of the columns.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Types {
    Hidden,
    Shown,
}

pub fn answer(result: &Result<Executed, Error>, types: Types) -> String {
    match result {
        Err(refused) => error(refused),
        Ok(executed) => {
            let warnings = executed.warnings.iter();
            let warnings: String = warnings.map(|text| format!("warning: {text}\n")).collect();
            warnings + &outcome(&executed.outcome, types)
        }
    }
}

pub fn error(refused: &Error) -> String {
    let kind = format!("{refused:?}");
    let kind = kind.split(['(', ' ']).next().unwrap_or_default().to_owned();
    format!("error {kind}: {}\n", refused.message())
}

fn outcome(outcome: &Outcome, types: Types) -> String {
    match outcome {
        Outcome::Void => "ok\n".to_owned(),
        Outcome::SetKeyspace(keyspace) => format!("keyspace {keyspace}\n"),
        Outcome::SchemaChange(events) if events.is_empty() => "unchanged\n".to_owned(),
        Outcome::SchemaChange(events) => events.iter().map(event).collect(),
        Outcome::Rows(rows) => format!(
            "{}{}({} rows)\n",
            header(&rows.columns, types),
            body(rows),
            rows.row_count
        ),
    }
}

fn event(event: &SchemaEvent) -> String {
    let (kind, name) = match &event.target {
        EventTarget::Keyspace => ("keyspace", None),
        EventTarget::Table(name) => ("table", Some(name)),
        EventTarget::Type(name) => ("type", Some(name)),
        EventTarget::Function(name, _) => ("function", Some(name)),
        EventTarget::Aggregate(name, _) => ("aggregate", Some(name)),
    };
    let change = format!("{:?}", event.kind).to_lowercase();
    match name {
        None => format!("{change} {kind} {}\n", event.keyspace),
        Some(name) => format!("{change} {kind} {}.{name}\n", event.keyspace),
    }
}

pub fn header(columns: &[ColumnSpec], types: Types) -> String {
    let names: Vec<String> = columns
        .iter()
        .map(|column| match types {
            Types::Hidden => column.name.to_string(),
            Types::Shown => format!("{} {}", column.name, column.ty),
        })
        .collect();
    format!("{}\n", names.join(" | "))
}

pub fn body(rows: &ResultSet) -> String {
    let joined = rows.cells.clone().into_vec();
    let mut rest = joined.as_slice();
    let mut out = String::new();
    for _ in 0..rows.row_count {
        let cells: Vec<String> = rows
            .columns
            .iter()
            .map(|column| {
                let (len, after) = rest.split_first_chunk::<4>().expect("a length for each cell");
                rest = after;
                let Ok(len) = usize::try_from(i32::from_be_bytes(*len)) else {
                    return "null".to_owned();
                };
                let (cell, after) = rest.split_at(len);
                rest = after;
                value(cell, &column.ty)
            })
            .collect();
        out += &format!("{}\n", cells.join(" | "));
    }
    assert!(rest.is_empty(), "cells are left over");
    out
}

/// A value as a literal.
pub fn value(cell: &[u8], ty: &CqlType) -> String {
    if cell.is_empty() && !matches!(ty, CqlType::Text | CqlType::Ascii | CqlType::Blob) {
        return "empty".to_owned();
    }
    ty.print_literal(cell)
        .unwrap_or_else(|error| format!("BAD {cell:02x?} ({error})"))
}

pub fn prepared(prepared: &Prepared) -> String {
    let mut out = format!("variables: {}", header(&prepared.variables, Types::Shown));
    if !prepared.partition_key_indexes.is_empty() {
        out += &format!("partition key: {:?}\n", prepared.partition_key_indexes);
    }
    if let Some(columns) = &prepared.result_columns {
        out += &format!("columns: {}", header(columns, Types::Shown));
    }
    out
}

/// Everything that is stored in a table, including timestamps and tombstones.
pub fn dump(table: &TableSchema, cursor: &mut dyn Cursor) -> String {
    let mut out = String::new();
    while let Some(head) = cursor.next_partition().unwrap() {
        out += &format!(
            "partition {}{}\n",
            key(table, &head.key.key),
            deleted(head.deletion)
        );
        if let Some(row) = &head.static_row {
            out += &format!("  static{}\n", content(table, row));
        }
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            match unfiltered {
                Unfiltered::Row(row) => {
                    out += &format!(
                        "  row {}{}\n",
                        clustering(table, row.clustering.values()),
                        content(table, &row)
                    );
                }
                Unfiltered::Marker(marker) => {
                    out += &format!(
                        "  {:?} {}{}{}\n",
                        marker.bound.kind,
                        clustering(table, &marker.bound.values),
                        marker
                            .end
                            .map(|it| format!(" ends{}", deleted(it)))
                            .unwrap_or_default(),
                        marker
                            .start
                            .map(|it| format!(" starts{}", deleted(it)))
                            .unwrap_or_default(),
                    );
                }
            }
        }
    }
    out
}

fn key(table: &TableSchema, key: &[u8]) -> String {
    let types: Vec<&CqlType> = table.partition_key().map(|column| &column.ty).collect();
    if let [ty] = types.as_slice() {
        return value(key, ty);
    }
    let components = ilion_types::decode_composite(key).unwrap();
    let values: Vec<String> = components
        .iter()
        .zip(types)
        .map(|(component, ty)| value(component, ty))
        .collect();
    values.join(":")
}

fn clustering<'v>(table: &TableSchema, values: impl IntoIterator<Item = &'v Option<bytes::Bytes>>) -> String {
    let values: Vec<String> = values
        .into_iter()
        .zip(table.clustering())
        .map(|(cell, column)| match cell {
            Some(cell) => value(cell, &column.ty),
            None => "null".to_owned(),
        })
        .collect();
    values.join(":")
}

fn deleted(deletion: DeletionTime) -> String {
    if deletion.is_live() {
        String::new()
    } else {
        format!(" del@{}", deletion.marked_at_micros)
    }
}

fn content(table: &TableSchema, row: &Row) -> String {
    let mut out = deleted(row.deletion);
    if !row.liveness.is_none() {
        out += &format!(" live@{}", row.liveness.timestamp_micros);
        if row.liveness.ttl_secs != 0 {
            out += &format!(" ttl={}", row.liveness.ttl_secs);
        }
    }
    for entry in &row.columns {
        let column = table.column(entry.column).unwrap();
        match &entry.data {
            Data::Simple(data) => out += &format!(" {}={}", column.name, cell(data, &column.ty)),
            Data::Complex(complex) => {
                out += &format!(" {}={{{}", column.name, deleted(complex.deletion).trim());
                for (path, data) in &complex.cells {
                    let ty = ilion_rows::paths::value_type(&column.ty, path);
                    let ty = ty.unwrap_or(&CqlType::Blob);
                    out += &format!(" [{}]={}", path_text(&column.ty, path), cell(data, ty));
                }
                out += "}";
            }
        }
    }
    out
}

fn path_text(ty: &CqlType, path: &[u8]) -> String {
    match ty {
        CqlType::Set { element, .. } => value(path, element),
        CqlType::Map { key, .. } => value(path, key),
        CqlType::List { .. } => value(path, &CqlType::TimeUuid),
        _ => value(path, &CqlType::SmallInt),
    }
}

fn cell(cell: &Cell, ty: &CqlType) -> String {
    let mut out = if cell.is_tombstone() {
        "deleted".to_owned()
    } else if *ty == CqlType::Counter {
        format!("total {}", ilion_rows::counter::total(&cell.value))
    } else {
        value(&cell.value, ty)
    };
    out += &format!("@{}", cell.timestamp_micros);
    if cell.is_expiring() {
        out += &format!(" ttl={}", cell.ttl_secs);
    }
    out
}
