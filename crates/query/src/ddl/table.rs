//! CREATE TABLE and ALTER TABLE.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ilion_cql::ast::{
    self, AlterTable, ColumnDefinition, CreateTable, CreateTableLike, Direction, TableChange,
};
use ilion_schema::{
    ClusteringOrder, CopyTable, NewColumn, PropertyValue, SchemaChange, TableAlteration, TableKind,
};

use super::common::{keyspace, properties};
use crate::Error;
use crate::context::{Execution, PlanContext};
use crate::masking::{MaskedColumn, check_enabled, define};
use crate::type_name::column_type;

pub(super) fn create(create: &CreateTable, context: &PlanContext<'_>) -> Result<SchemaChange, Error> {
    let keyspace = keyspace(&create.table, context)?;
    check_masks(&create.columns, context)?;
    // Compat: whether the table exists is checked before its columns.
    let columns = match context.schema.table(&keyspace, &create.table.name) {
        Some(_) => Vec::new(),
        None => columns(&create.columns, &keyspace, &create.table.name, context)?,
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
    if let TableChange::AddColumns { columns, .. } = &alter.change {
        check_masks(columns, context)?;
    }
    let alteration = match &alter.change {
        TableChange::AddColumns {
            if_not_exists,
            columns: added,
        } => TableAlteration::AddColumns {
            // Compat: whether the table exists is checked before the columns.
            columns: match context.schema.table(&keyspace, &alter.table.name) {
                Some(_) => columns(added, &keyspace, &alter.table.name, context)?,
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
        TableChange::AlterColumnMask {
            if_exists,
            column,
            mask,
        } => TableAlteration::MaskColumn {
            mask: altered_mask(mask.as_ref(), column, &keyspace, &alter.table.name, context)?,
            column: column.clone(),
            if_exists: *if_exists,
        },
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
    table: &str,
    context: &PlanContext<'_>,
) -> Result<Vec<NewColumn>, Error> {
    definitions
        .iter()
        .map(|definition| {
            let ty = column_type(&definition.type_name, Some(keyspace), context.schema)?;
            let column = MaskedColumn {
                keyspace,
                table,
                name: &definition.name,
                ty: &ty,
            };
            let mask = definition.mask.as_ref();
            Ok(NewColumn {
                mask: mask.map(|mask| define(mask, &column, context)).transpose()?,
                name: definition.name.clone(),
                is_static: definition.is_static,
                ty,
            })
        })
        .collect()
}

fn timestamp(digits: &str) -> Result<i64, Error> {
    digits
        .parse()
        .map_err(|_| Error::Syntax(format!("Invalid timestamp {digits}: it has to fit in 64 bits")))
}

/// Compat: `ColumnMask.ensureEnabled`; Cassandra 5.0 forgets it for ALTER TABLE ADD.
fn check_masks(columns: &[ColumnDefinition], context: &PlanContext<'_>) -> Result<(), Error> {
    match columns.iter().any(|column| column.mask.is_some()) {
        true => check_enabled(context),
        false => Ok(()),
    }
}

/// The new mask of a column; `None` to drop it. Also `None` if the table or column cannot be altered, which is refused later.
fn altered_mask(
    given: Option<&ast::ColumnMask>,
    column: &str,
    keyspace: &str,
    table: &str,
    context: &PlanContext<'_>,
) -> Result<Option<ilion_schema::ColumnMask>, Error> {
    let Some(given) = given else {
        return Ok(None);
    };
    check_enabled(context)?;
    let found = context.schema.table(keyspace, table);
    let found = found.filter(|table| table.kind == TableKind::Regular);
    let Some(found) = found.and_then(|table| table.shown_named(column)) else {
        return Ok(None);
    };
    let column = MaskedColumn {
        keyspace,
        table,
        name: column,
        ty: &found.ty,
    };
    define(given, &column, context).map(Some)
}
