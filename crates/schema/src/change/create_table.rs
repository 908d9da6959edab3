//! CREATE TABLE, and CREATE TABLE ... LIKE.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ilion_types::CqlType;

use super::compact_table::CompactDraft;
use super::tables::{new_table_id, table_id_of};
use super::{CopyTable, CreateTable, NewColumn};
use crate::error::invalid;
use crate::names::check_table_name;
use crate::{ClusteringOrder, Column, Error, Schema, TableBuilder, TableOptions, TableSchema};

/// Largest number of columns that a table may have over time: ids have 16 bits and are never reused.
pub(super) const COLUMN_COUNT_MAX: usize = 60_000;

impl Schema {
    pub(super) fn create_table(
        &self,
        create: &CreateTable,
        now_micros: i64,
    ) -> Result<Option<Schema>, Error> {
        let keyspace = self.existing(&create.keyspace)?;
        if keyspace.tables.contains_key(&create.name) {
            return already_exists(&create.keyspace, &create.name, create.if_not_exists);
        }
        let options = TableOptions::parse_new(&create.properties)?;
        let id = match table_id_of(&create.properties)?.or(create.id) {
            Some(id) => id,
            None => new_table_id(&create.keyspace, &create.name, now_micros),
        };
        let mut builder = TableBuilder::new(&create.keyspace, &create.name, id);
        builder.options = options;
        let table = Draft::of(create)?.build(builder)?;
        check_table_name(&create.keyspace, &create.name)?;
        if let Some(other) = self.table_by_id(id) {
            return invalid(format!(
                "Table id {id} is already used by {}.{}",
                other.keyspace, other.name
            ));
        }
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.tables.insert(table.name.clone(), table);
        })))
    }

    pub(super) fn copy_table(&self, copy: &CopyTable, now_micros: i64) -> Result<Option<Schema>, Error> {
        let Some(source_keyspace) = self.keyspace(&copy.source_keyspace) else {
            return invalid(format!(
                "Source Keyspace '{}' doesn't exist",
                copy.source_keyspace
            ));
        };
        let keyspace = self.existing(&copy.keyspace)?;
        let Some(source) = source_keyspace.tables.get(&copy.source) else {
            return invalid(format!(
                "Souce Table '{}.{}' doesn't exist",
                copy.source_keyspace, copy.source
            ));
        };
        if source.kind != crate::TableKind::Regular {
            return invalid("Cannot use CREATE TABLE LIKE on a materialized view or virtual table");
        }
        if keyspace.tables.contains_key(&copy.name) {
            return already_exists(&copy.keyspace, &copy.name, copy.if_not_exists);
        }
        let mentions_udt = |ty: &CqlType| ty.contains(&|inner| matches!(inner, CqlType::Udt { .. }));
        if copy.keyspace != copy.source_keyspace
            && source
                .select_order()
                .iter()
                .any(|column| mentions_udt(&column.ty))
        {
            return invalid(
                "Cannot use CREATE TABLE LIKE across different keyspaces when source table have UDTs",
            );
        }
        let is_masked_by_user = |column: &&Column| {
            let mask = column.mask.as_ref();
            mask.is_some_and(|mask| mask.keyspace == copy.source_keyspace)
        };
        if copy.keyspace != copy.source_keyspace && source.select_order().iter().any(is_masked_by_user) {
            return invalid(
                "Cannot use CREATE TABLE LIKE across different keyspaces when source table has masks that call \
                 user-defined functions",
            );
        }
        check_table_name(&copy.keyspace, &copy.name)?;
        let id = copy
            .id
            .unwrap_or_else(|| new_table_id(&copy.keyspace, &copy.name, now_micros));
        let mut builder = TableBuilder::new(&copy.keyspace, &copy.name, id);
        builder.options = source.options.altered(&copy.properties)?;
        builder.flags = source.flags.clone();
        for column in source.every_column() {
            builder = builder
                .add(column.name.clone(), column.kind, column.ty.clone(), column.order)
                .mask(&column.name, column.mask.clone());
        }
        let table = builder.build();
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.tables.insert(table.name.clone(), table);
        })))
    }
}

pub(super) fn already_exists(
    keyspace: &str,
    table: &str,
    if_not_exists: bool,
) -> Result<Option<Schema>, Error> {
    if if_not_exists {
        return Ok(None);
    }
    Err(Error::AlreadyExists {
        keyspace: keyspace.to_owned(),
        table: table.to_owned(),
    })
}

/// A table whose columns have names and types, but are not yet checked against each other.
struct Draft<'a> {
    create: &'a CreateTable,
    columns: BTreeMap<&'a str, &'a NewColumn>,
}

impl<'a> Draft<'a> {
    fn of(create: &'a CreateTable) -> Result<Self, Error> {
        let mut columns = BTreeMap::new();
        for column in &create.columns {
            if columns.insert(column.name.as_str(), column).is_some() {
                return invalid(format!(
                    "Duplicate column '{}' declaration for table '{}'",
                    column.name, create.name
                ));
            }
            check_column_type(&column.ty)?;
        }
        if columns.len() > COLUMN_COUNT_MAX {
            return invalid(format!(
                "Table '{}' has more than {COLUMN_COUNT_MAX} columns",
                create.name
            ));
        }
        Ok(Self { create, columns })
    }

    fn build(&self, mut builder: TableBuilder) -> Result<Arc<TableSchema>, Error> {
        self.check_primary_key()?;
        check_clustering_order(&self.create.clustering, &self.create.clustering_order)?;
        if self.create.compact_storage {
            return self.build_compact(builder);
        }
        let has_static = self.create.columns.iter().any(|column| column.is_static);
        if self.create.clustering.is_empty() && has_static {
            return invalid(STATIC_WITHOUT_CLUSTERING);
        }
        if self.check_counters(&builder.options)? {
            builder.flags.push("counter".to_owned());
        }
        Ok(self.add_masks(self.add_columns(builder)).build())
    }

    fn build_compact(&self, mut builder: TableBuilder) -> Result<Arc<TableSchema>, Error> {
        let is_key = |name: &str| self.key_names().any(|key| key == name);
        let columns = self.columns.iter().filter(|(name, _)| !is_key(name));
        let mut draft = CompactDraft {
            clustering_count: self.create.clustering.len(),
            columns: columns.map(|(name, column)| (*name, *column)).collect(),
            names: self.columns.keys().copied().collect(),
            is_counter: false,
        };
        draft.check()?;
        draft.is_counter = self.check_counters(&builder.options)?;
        builder.flags = draft.flags();
        Ok(self.add_masks(draft.add_columns(self.add_key(builder))).build())
    }

    fn check_primary_key(&self) -> Result<(), Error> {
        let table = &self.create.name;
        if self.create.partition_key.is_empty() {
            return invalid(format!(
                "No PRIMARY KEY specifed for table '{table}' (exactly one required)"
            ));
        }
        let mut seen = BTreeSet::new();
        for name in self.key_names() {
            let Some(column) = self.columns.get(name.as_str()) else {
                return invalid(format!(
                    "Unknown column '{name}' referenced in PRIMARY KEY for table '{table}'"
                ));
            };
            if !seen.insert(name) {
                return invalid(format!(
                    "Duplicate column '{name}' in PRIMARY KEY clause for table '{table}'"
                ));
            }
            check_key_type(name, &column.ty)?;
            if column.is_static {
                return invalid(format!(
                    "Static column '{name}' cannot be part of the PRIMARY KEY"
                ));
            }
        }
        Ok(())
    }

    fn key_names(&self) -> impl Iterator<Item = &'a String> {
        self.create.partition_key.iter().chain(&self.create.clustering)
    }

    /// True for a table of counters. Refuses counters beside other columns, and counters with a TTL.
    fn check_counters(&self, options: &TableOptions) -> Result<bool, Error> {
        if !self
            .create
            .columns
            .iter()
            .any(|column| column.ty == CqlType::Counter)
        {
            return Ok(false);
        }
        let is_key = |name: &str| self.key_names().any(|key| key == name);
        if self
            .create
            .columns
            .iter()
            .any(|column| column.ty != CqlType::Counter && !is_key(&column.name))
        {
            return invalid("Cannot mix counter and non counter columns in the same table");
        }
        if options.default_time_to_live_secs > 0 {
            return invalid("Cannot set default_time_to_live on a table with counters");
        }
        Ok(true)
    }

    fn add_key(&self, mut builder: TableBuilder) -> TableBuilder {
        let ty = |name: &str| {
            self.columns
                .get(name)
                .map_or(CqlType::Blob, |column| column.ty.clone())
        };
        for name in &self.create.partition_key {
            builder = builder.partition_key(name, ty(name));
        }
        for name in &self.create.clustering {
            builder = builder.clustering(name, ty(name), order_of(name, &self.create.clustering_order));
        }
        builder
    }

    fn add_masks(&self, mut builder: TableBuilder) -> TableBuilder {
        for column in self.columns.values() {
            builder = builder.mask(&column.name, column.mask.clone().map(Arc::new));
        }
        builder
    }

    fn add_columns(&self, builder: TableBuilder) -> TableBuilder {
        let mut builder = self.add_key(builder);
        let is_key = |name: &str| self.key_names().any(|key| key == name);
        for (name, column) in self.columns.iter().filter(|(name, _)| !is_key(name)) {
            builder = match column.is_static {
                true => builder.static_column(*name, column.ty.clone()),
                false => builder.regular(*name, column.ty.clone()),
            };
        }
        builder
    }
}

pub(super) const STATIC_WITHOUT_CLUSTERING: &str =
    "Static columns are only useful (and thus allowed) if the table has at least one clustering column";

pub(super) fn order_of(name: &str, given: &[(String, ClusteringOrder)]) -> ClusteringOrder {
    given
        .iter()
        .find(|(known, _)| known == name)
        .map_or(ClusteringOrder::Asc, |(_, order)| *order)
}

/// Checks which types are nested in a column's type.
pub(super) fn check_column_type(ty: &CqlType) -> Result<(), Error> {
    ty.check_nesting()
        .map_err(|refused| Error::Invalid(refused.to_string()))?;
    if let CqlType::Udt {
        definition,
        frozen: false,
    } = ty
        && definition.fields.iter().any(|(_, field)| field.is_multi_cell())
    {
        return invalid("Non-frozen UDTs with nested non-frozen collections are not supported");
    }
    Ok(())
}

/// Checks that a column may be part of a primary key.
pub(super) fn check_key_type(name: &str, ty: &CqlType) -> Result<(), Error> {
    if ty.is_multi_cell() {
        let kind = if ty.is_collection() {
            "collection"
        } else {
            "user-defined"
        };
        let ty = match ty {
            // Compat: keyspace and name are quoted together.
            CqlType::Udt { definition, .. } => format!("\"{}.{}\"", definition.keyspace, definition.name),
            ty => ty.to_string(),
        };
        return invalid(format!(
            "Invalid non-frozen {kind} type {ty} for PRIMARY KEY column '{name}'"
        ));
    }
    if *ty == CqlType::Counter {
        return invalid(format!(
            "counter type is not supported for PRIMARY KEY column '{name}'"
        ));
    }
    if ty.contains_duration() {
        return invalid(format!(
            "duration type is not supported for PRIMARY KEY column '{name}'"
        ));
    }
    Ok(())
}

fn check_clustering_order(clustering: &[String], given: &[(String, ClusteringOrder)]) -> Result<(), Error> {
    let strangers: Vec<_> = given
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !clustering.iter().any(|column| column == name))
        .collect();
    if !strangers.is_empty() {
        return invalid(format!(
            "Only clustering key columns can be defined in CLUSTERING ORDER directive: [{}] are not \
             clustering columns",
            strangers.join(", ")
        ));
    }
    for ((name, _), expected) in given.iter().zip(clustering) {
        if name == expected {
            continue;
        }
        if given.iter().any(|(other, _)| other == expected) {
            return invalid(format!(
                "The order of columns in the CLUSTERING ORDER directive must match that of the clustering \
                 columns ({expected} must appear before {name})"
            ));
        }
        return invalid(format!("Missing CLUSTERING ORDER for column {expected}"));
    }
    Ok(())
}
