//! Guardrails of schema statements.

use ilion_schema::{
    CreateIndex, NewColumn, Schema, SchemaChange, TableAlteration, TypeAlteration, is_system_keyspace,
};
use ilion_types::CqlType;

use super::properties::{check_expiry, check_properties, check_replication, is_time_window};
use super::{Verdict, check, ensure};
use crate::Error;
use crate::context::Execution;

/// Refuses changes that the operator does not allow.
///
/// # Errors
/// The change is not allowed.
pub(crate) fn check_change(change: &SchemaChange, execution: &Execution<'_>) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    let schema = &**execution.schema;
    match change {
        SchemaChange::CreateKeyspace { name, properties, .. } => {
            if schema.keyspace(name).is_none() {
                let count = users(schema).count() as u64 + 1;
                check(
                    "keyspaces",
                    limits.keyspaces,
                    count,
                    execution,
                    |verdict, limit| match verdict {
                        Verdict::Warning => format!(
                            "Creating keyspace {name}, current number of keyspaces {count} exceeds warning threshold of {limit}."
                        ),
                        Verdict::Failure => format!(
                            "Cannot have more than {limit} keyspaces, aborting the creation of keyspace {name}"
                        ),
                    },
                )?;
            }
            check_replication(name, properties, execution)
        }
        SchemaChange::AlterKeyspace { name, properties, .. } => {
            check_replication(name, properties, execution)
        }
        SchemaChange::DropKeyspace { .. } => ensure(
            "drop_keyspace_enabled",
            limits.drop_keyspace_enabled,
            "DROP KEYSPACE functionality",
        ),
        SchemaChange::DropTable(_) => check_removal(execution),
        SchemaChange::CreateTable(create) => {
            if create.compact_storage {
                let feature = "Creation of new COMPACT STORAGE tables";
                ensure("compact_tables", limits.compact_tables_enabled, feature)?;
            }
            check_properties(&create.properties, execution)?;
            let (compaction, ttl) = (
                create.properties.0.get("compaction"),
                create.properties.0.get("default_time_to_live"),
            );
            check_expiry(compaction.map(is_time_window), ttl, None, execution)?;
            check_tables(&create.keyspace, &create.name, execution)?;
            check_vectors(
                "Column",
                create.columns.iter().map(|column| (&column.name, &column.ty)),
                execution,
            )?;
            check_columns(&create.name, create.columns.len(), execution)
        }
        SchemaChange::CopyTable(copy) => {
            check_properties(&copy.properties, execution)?;
            check_tables(&copy.keyspace, &copy.name, execution)
        }
        SchemaChange::AlterTable {
            keyspace,
            table,
            alteration,
            ..
        } => check_alteration(keyspace, table, alteration, execution),
        SchemaChange::CreateIndex(create) => check_index(create, execution),
        SchemaChange::CreateView(create) => {
            check_properties(&create.properties, execution)?;
            let keyspace = schema.keyspace(&create.keyspace);
            let views = keyspace.map_or(0, |keyspace| keyspace.views_of(&create.base).count()) as u64 + 1;
            let (name, threshold) = (&create.name, limits.materialized_views_per_table);
            check(
                "materialized_views_per_table",
                threshold,
                views,
                execution,
                |verdict, limit| match verdict {
                    Verdict::Warning => format!(
                        "Creating materialized view {name}, current number of views {views} exceeds warning threshold of {limit}."
                    ),
                    Verdict::Failure => format!(
                        "Tables cannot have more than {limit} materialized views, aborting the creation of materialized view {name}"
                    ),
                },
            )
        }
        SchemaChange::AlterView { properties, .. } => check_properties(properties, execution),
        SchemaChange::CreateType { name, fields, .. } => {
            check_vectors("Field", fields.iter().map(|(name, ty)| (name, ty)), execution)?;
            check_fields(name, fields.len(), execution)
        }
        SchemaChange::AlterType {
            keyspace,
            name,
            alteration: TypeAlteration::AddField { name: field, ty, .. },
            ..
        } => {
            check_vectors("Field", [(field, ty)].into_iter(), execution)?;
            let known = schema
                .keyspace(keyspace)
                .and_then(|keyspace| keyspace.types.get(name));
            check_fields(name, known.map_or(0, |known| known.fields.len()) + 1, execution)
        }
        _ => Ok(()),
    }
}

fn check_index(create: &CreateIndex, execution: &Execution<'_>) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    ensure(
        "secondary_indexes",
        limits.secondary_indexes_enabled,
        "User creation of secondary indexes",
    )?;
    let keyspace = execution.schema.keyspace(&create.keyspace);
    let known = keyspace.map_or(0, |keyspace| keyspace.indexes_of(&create.table).count());
    let name = match (&create.name, create.targets.as_slice()) {
        (Some(name), _) => name.clone(),
        (None, [target]) => format!("on table {}, column {}", create.table, target.column),
        (None, _) => format!("on table {}", create.table),
    };
    check(
        "secondary_indexes_per_table",
        limits.secondary_indexes_per_table,
        known as u64 + 1,
        execution,
        |verdict, limit| match verdict {
            Verdict::Warning => format!(
                "Creating secondary index {name}, current number of indexes {} exceeds warning threshold of {limit}.",
                known + 1
            ),
            Verdict::Failure => format!(
                "Tables cannot have more than {limit} secondary indexes, aborting the creation of secondary index {name}"
            ),
        },
    )
}

/// Refuses DROP TABLE and TRUNCATE if the operator has switched them off.
///
/// # Errors
/// They are switched off.
pub(crate) fn check_removal(execution: &Execution<'_>) -> Result<(), Error> {
    let is_enabled = execution.query_options.guardrails.drop_truncate_table_enabled;
    let feature = "DROP and TRUNCATE TABLE functionality";
    ensure("drop_truncate_table_enabled", is_enabled, feature)
}

fn users(schema: &Schema) -> impl Iterator<Item = &ilion_schema::Keyspace> {
    let keyspaces = schema.keyspaces.values().map(|keyspace| &**keyspace);
    keyspaces.filter(|keyspace| !is_system_keyspace(&keyspace.name))
}

fn check_tables(keyspace: &str, name: &str, execution: &Execution<'_>) -> Result<(), Error> {
    let schema = &**execution.schema;
    if schema.table(keyspace, name).is_some() {
        return Ok(());
    }
    let count = users(schema).map(|keyspace| keyspace.tables.len()).sum::<usize>() as u64 + 1;
    let threshold = execution.query_options.guardrails.tables;
    check(
        "tables",
        threshold,
        count,
        execution,
        |verdict, limit| match verdict {
            Verdict::Warning => {
                format!(
                    "Creating table {name}, current number of tables {count} exceeds warning threshold of {limit}."
                )
            }
            Verdict::Failure => {
                format!("Cannot have more than {limit} tables, aborting the creation of table {name}")
            }
        },
    )
}

fn check_columns(table: &str, count: usize, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.columns_per_table;
    check(
        "columns_per_table",
        threshold,
        count as u64,
        execution,
        |verdict, limit| match verdict {
            Verdict::Warning => {
                format!(
                    "The table {table} has {count} columns, this exceeds the warning threshold of {limit}."
                )
            }
            Verdict::Failure => format!(
                "Tables cannot have more than {limit} columns, but {count} provided for table {table}"
            ),
        },
    )
}

fn check_fields(name: &str, count: usize, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.fields_per_udt;
    check(
        "fields_per_udt",
        threshold,
        count as u64,
        execution,
        |verdict, limit| match verdict {
            Verdict::Warning => {
                format!(
                    "The user type {name} has {count} columns, this exceeds the warning threshold of {limit}."
                )
            }
            Verdict::Failure => format!(
                "User types cannot have more than {limit} columns, but {count} provided for user type {name}."
            ),
        },
    )
}

fn check_vectors<'a>(
    what: &str,
    columns: impl Iterator<Item = (&'a String, &'a CqlType)>,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    let threshold = limits.vector_dimensions;
    for (name, ty) in columns {
        let is_allowed = limits.vector_type_enabled || !ty.contains_vector();
        ensure("vector_type_enabled", is_allowed, "usage of the vector type")?;
        if let CqlType::Vector { dimension, .. } = ty {
            check(
                "vector_dimensions",
                threshold,
                u64::from(*dimension),
                execution,
                |verdict, limit| {
                    format!(
                        "{what} {name} has a vector of {dimension} dimensions, this exceeds the {verdict} threshold of {limit}."
                    )
                },
            )?;
        }
    }
    Ok(())
}

fn check_alteration(
    keyspace: &str,
    table: &str,
    alteration: &TableAlteration,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let limits = &execution.query_options.guardrails;
    match alteration {
        TableAlteration::Options(properties) => {
            check_properties(properties, execution)?;
            let known = execution.schema.table(keyspace, table);
            let (compaction, ttl) = (
                properties.0.get("compaction"),
                properties.0.get("default_time_to_live"),
            );
            check_expiry(
                compaction.map(is_time_window),
                ttl,
                known.map(|known| &known.options),
                execution,
            )
        }
        TableAlteration::DropCompactStorage if !limits.drop_compact_storage_enabled => Err(Error::invalid(
            "DROP COMPACT STORAGE is disabled. Enable in cassandra.yaml to use.",
        )),
        TableAlteration::AddColumns { columns, .. } => {
            check_mutable(limits.alter_table_enabled)?;
            let named = columns
                .iter()
                .map(|column: &NewColumn| (&column.name, &column.ty));
            check_vectors("Column", named, execution)?;
            let known = execution.schema.table(keyspace, table);
            let count = known.map_or(0, |known| known.select_order().len()) + columns.len();
            check_columns(table, count, execution)
        }
        TableAlteration::DropColumns { .. } | TableAlteration::RenameColumns { .. } => {
            check_mutable(limits.alter_table_enabled)
        }
        _ => Ok(()),
    }
}

fn check_mutable(is_enabled: bool) -> Result<(), Error> {
    ensure(
        "alter_table",
        is_enabled,
        "User access to ALTER TABLE statement for column mutation",
    )
}
