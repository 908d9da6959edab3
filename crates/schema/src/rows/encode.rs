//! Keyspaces to rows.
//!
//! Compat: the cells that are null are the same as in `SchemaKeyspace` of Cassandra 5.0.

use ilion_types::UserType;

use super::SchemaRow;
use super::encode_table::{table_row, table_rows, view_row};
use super::values::{boolean, key, text, text_list, text_map, type_list};
use crate::{
    AggregateSchema, FunctionSchema, IndexKind, IndexSchema, Keyspace, TableKind, TableSchema, TriggerSchema,
};

/// All rows of a keyspace.
pub fn encode_keyspace(keyspace: &Keyspace) -> Vec<SchemaRow> {
    let name = keyspace.name.as_str();
    let mut rows = vec![keyspace_row(keyspace)];
    rows.extend(keyspace.types.values().map(|ty| type_row(name, ty)));
    for table in keyspace.tables.values() {
        rows.push(head_row(keyspace, table));
        rows.extend(table_rows(table));
    }
    rows.extend(keyspace.indexes.values().map(|index| index_row(name, index)));
    rows.extend(keyspace.triggers.iter().map(|trigger| trigger_row(name, trigger)));
    rows.extend(
        keyspace
            .functions
            .iter()
            .map(|function| function_row(name, function)),
    );
    rows.extend(
        keyspace
            .aggregates
            .iter()
            .map(|aggregate| aggregate_row(name, aggregate)),
    );
    rows
}

/// The row of a table in `tables`, or of a view in `views`.
pub(super) fn head_row(keyspace: &Keyspace, table: &TableSchema) -> SchemaRow {
    match (table.kind, keyspace.views.get(&table.name)) {
        (TableKind::View, Some(view)) => view_row(view, table),
        _ => table_row(table),
    }
}

pub(super) fn keyspace_row(keyspace: &Keyspace) -> SchemaRow {
    SchemaRow {
        table: "keyspaces",
        keyspace: keyspace.name.clone(),
        clustering: Vec::new(),
        cells: vec![
            ("durable_writes", boolean(keyspace.durable_writes)),
            ("replication", text_map(&keyspace.replication.options)),
        ],
    }
}

pub(super) fn type_row(keyspace: &str, definition: &UserType) -> SchemaRow {
    SchemaRow {
        table: "types",
        keyspace: keyspace.to_owned(),
        clustering: vec![key(&definition.name)],
        cells: vec![
            (
                "field_names",
                text_list(definition.fields.iter().map(|(name, _)| name.clone())),
            ),
            (
                "field_types",
                text_list(definition.fields.iter().map(|(_, ty)| ty.to_string())),
            ),
        ],
    }
}

pub(super) fn index_row(keyspace: &str, index: &IndexSchema) -> SchemaRow {
    let kind = match index.kind {
        IndexKind::Keys => "KEYS",
        IndexKind::Composites => "COMPOSITES",
        IndexKind::Custom => "CUSTOM",
    };
    SchemaRow {
        table: "indexes",
        keyspace: keyspace.to_owned(),
        clustering: vec![key(&index.table), key(&index.name)],
        cells: vec![("kind", text(kind)), ("options", text_map(&index.options))],
    }
}

pub(super) fn trigger_row(keyspace: &str, trigger: &TriggerSchema) -> SchemaRow {
    SchemaRow {
        table: "triggers",
        keyspace: keyspace.to_owned(),
        clustering: vec![key(&trigger.table), key(&trigger.name)],
        cells: vec![("options", text_map(&trigger.options))],
    }
}

pub(super) fn function_row(keyspace: &str, function: &FunctionSchema) -> SchemaRow {
    SchemaRow {
        table: "functions",
        keyspace: keyspace.to_owned(),
        clustering: vec![key(&function.name), type_list(function.argument_types())],
        cells: vec![
            (
                "argument_names",
                text_list(function.arguments.iter().map(|(name, _)| name.clone())),
            ),
            ("body", text(&function.body)),
            ("called_on_null_input", boolean(function.called_on_null_input)),
            ("language", text(&function.language)),
            ("return_type", text(&function.return_type.to_string())),
        ],
    }
}

pub(super) fn aggregate_row(keyspace: &str, aggregate: &AggregateSchema) -> SchemaRow {
    SchemaRow {
        table: "aggregates",
        keyspace: keyspace.to_owned(),
        clustering: vec![key(&aggregate.name), type_list(aggregate.argument_types.iter())],
        cells: vec![
            ("final_func", aggregate.final_func.as_deref().and_then(text)),
            ("initcond", aggregate.initcond.as_deref().and_then(text)),
            ("return_type", text(&aggregate.return_type.to_string())),
            ("state_func", text(&aggregate.state_func)),
            ("state_type", text(&aggregate.state_type.to_string())),
        ],
    }
}
