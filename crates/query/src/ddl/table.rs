//! CREATE TABLE and ALTER TABLE.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ilion_cql::ast::{AlterTable, ColumnDefinition, CreateTable, CreateTableLike, Direction, TableChange};
use ilion_schema::{ClusteringOrder, CopyTable, NewColumn, PropertyValue, SchemaChange, TableAlteration};

use super::{keyspace, properties};
use crate::Error;
use crate::context::{Execution, PlanContext};
use crate::type_name::column_type;

pub(super) fn create(create: &CreateTable, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let keyspace = keyspace(&create.table, context)?;
    // Compat: whether the table exists is checked before its columns.
    let columns = match context.schema.table(&keyspace, &create.table.name) {
        Some(_) => Vec::new(),
        None => columns(&create.columns, &keyspace, context)?,
    };
    check_order_once(&create.clustering_order, &create.table.name)?;
    let (partition_key, clustering) = match &create.primary_key {
        Some(key) => (key.partition_key.clone(), key.clustering.clone()),
        None => Default::default(),
    };
    Ok(SchemaChange::CreateTable(Box::new(ilion_schema::CreateTable {
        name: create.table.name.clone(),
        if_not_exists: create.if_not_exists,
        columns,
        partition_key,
        clustering,
        clustering_order: clustering_order(&create.clustering_order),
        compact_storage: create.compact_storage,
        properties: properties(&create.properties),
        id: None,
        keyspace,
    })))
}

/// Compat: whether a column is ordered twice is checked before whether the table exists.
fn check_order_once(order: &[(String, Direction)], table: &str) -> Result<(), Error> {
    let mut names = order.iter().map(|(name, _)| name).enumerate();
    let repeated = names.find(|(index, name)| order[..*index].iter().any(|(known, _)| known == *name));
    match repeated {
        Some((_, name)) => Err(Error::Invalid(format!(
            "Duplicate column '{name}' in CLUSTERING ORDER BY clause for table '{table}'"
        ))),
        None => Ok(()),
    }
}

/// `CLUSTERING ORDER BY` in the form of the schema.
pub(super) fn clustering_order(given: &[(String, Direction)]) -> Vec<(String, ClusteringOrder)> {
    let order = |(name, direction): &(String, Direction)| {
        let order = match direction {
            Direction::Ascending => ClusteringOrder::Asc,
            Direction::Descending => ClusteringOrder::Desc,
        };
        (name.clone(), order)
    };
    given.iter().map(order).collect()
}

/// The change, with the default compaction for tables and views that do not give one.
pub(super) fn with_default_compaction<'c>(
    mut change: Cow<'c, SchemaChange>,
    execution: &Execution<'_>,
) -> Cow<'c, SchemaChange> {
    let release = execution.schema.release;
    let is_known = |default: &&BTreeMap<String, String>| {
        !default
            .get("class")
            .is_some_and(|class| release.lacks_compaction(class))
    };
    let default = execution.query_options.default_compaction.as_ref();
    let Some(default) = default.filter(is_known) else {
        return change;
    };
    if !matches!(
        *change,
        SchemaChange::CreateTable(_) | SchemaChange::CreateView(_)
    ) {
        return change;
    }
    let properties = match change.to_mut() {
        SchemaChange::CreateTable(create) => &mut create.properties,
        SchemaChange::CreateView(create) => &mut create.properties,
        _ => return change,
    };
    let given = properties.0.entry("compaction".to_owned());
    given.or_insert_with(|| PropertyValue::Map(default.clone()));
    change
}

pub(super) fn copy(copy: &CreateTableLike, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    if copy.with_indexes {
        return Err(Error::invalid(
            "CREATE TABLE LIKE WITH INDEXES is not supported by Ilion yet",
        ));
    }
    Ok(SchemaChange::CopyTable(Box::new(CopyTable {
        keyspace: keyspace(&copy.table, context)?,
        name: copy.table.name.clone(),
        if_not_exists: copy.if_not_exists,
        source_keyspace: keyspace(&copy.source, context)?,
        source: copy.source.name.clone(),
        properties: properties(&copy.properties),
        id: None,
    })))
}

pub(super) fn alter(alter: &AlterTable, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let keyspace = keyspace(&alter.table, context)?;
    let alteration = match &alter.change {
        TableChange::AddColumns {
            if_not_exists,
            columns: added,
        } => TableAlteration::AddColumns {
            // Compat: whether the table exists is checked before the columns.
            columns: match context.schema.table(&keyspace, &alter.table.name) {
                Some(_) => columns(added, &keyspace, context)?,
                None => Vec::new(),
            },
            if_not_exists: *if_not_exists,
        },
        TableChange::DropColumns {
            if_exists,
            columns,
            timestamp_micros,
        } => TableAlteration::DropColumns {
            columns: columns.clone(),
            if_exists: *if_exists,
            timestamp_micros: timestamp_micros.as_deref().map(timestamp).transpose()?,
        },
        TableChange::RenameColumns { if_exists, renames } => TableAlteration::RenameColumns {
            renames: renames.clone(),
            if_exists: *if_exists,
        },
        TableChange::AlterColumnType { .. } => TableAlteration::AlterColumnType,
        TableChange::AlterColumnMask { .. } => return Err(no_masks()),
        TableChange::DropCompactStorage => TableAlteration::DropCompactStorage,
        TableChange::Properties(given) => TableAlteration::Options(properties(given)),
    };
    Ok(SchemaChange::AlterTable {
        table: alter.table.name.clone(),
        if_exists: alter.if_exists,
        alteration,
        keyspace,
    })
}

fn columns(
    definitions: &[ColumnDefinition],
    keyspace: &str,
    context: &PlanContext<'_>,
) -> Result<Vec<NewColumn>, Error> {
    definitions
        .iter()
        .map(|definition| {
            if definition.mask.is_some() {
                return Err(no_masks());
            }
            Ok(NewColumn {
                name: definition.name.clone(),
                ty: column_type(&definition.type_name, Some(keyspace), context.schema)?,
                is_static: definition.is_static,
            })
        })
        .collect()
}

fn timestamp(digits: &str) -> Result<i64, Error> {
    digits
        .parse()
        .map_err(|_| Error::Syntax(format!("Invalid timestamp {digits}: it has to fit in 64 bits")))
}

/// Compat: `ColumnMask.ensureEnabled`; masking is off by default in Cassandra.
fn no_masks() -> Error {
    Error::invalid(
        "Cannot mask columns because dynamic data masking is not enabled. Ilion does not support it yet",
    )
}
