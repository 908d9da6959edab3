//! CREATE, ALTER and DROP MATERIALIZED VIEW. The table of a view is in the keyspace's tables (kind `View`), and its definition is
//! in the views.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::create_table::{already_exists, check_key_type};
use super::tables::{absent, new_table_id, table_id_of};
use super::{CreateView, DropObject};
use crate::error::invalid;
use crate::names::check_table_name;
use crate::{
    ColumnKind, Error, Keyspace, Properties, Schema, TableBuilder, TableId, TableKind, TableOptions,
    TableSchema, ViewSchema,
};

const OWN_TTL: &str = "Cannot set default_time_to_live for a materialized view. Data in a materialized \
    view always expire at the same time than the corresponding data in the parent table.";

const ALTERED_TTL: &str = "Forbidden default_time_to_live detected for a materialized view. Data in a materialized \
    view always expire at the same time than the corresponding data in the parent table. default_time_to_live must be \
    set to zero, see CASSANDRA-12868 for more information";

impl Schema {
    pub(super) fn create_view(&self, create: &CreateView, now_micros: i64) -> Result<Option<Schema>, Error> {
        if create.base_keyspace != create.keyspace {
            return invalid("Cannot create a materialized view on a table in a different keyspace");
        }
        let keyspace = self.existing(&create.keyspace)?;
        let base = keyspace.tables.get(&create.base);
        let Some(base) = base.filter(|base| base.kind != TableKind::View) else {
            return invalid(format!("Base table '{}' doesn't exist", create.base));
        };
        match keyspace.tables.get(&create.name).map(|table| table.kind) {
            Some(TableKind::View) => {
                return already_exists(&create.keyspace, &create.name, create.if_not_exists);
            }
            Some(_) => {
                return invalid(format!(
                    "Cannot create materialized view '{}' - a table with the same name already exists",
                    create.name
                ));
            }
            None => {}
        }
        check_base(create, base)?;
        let selected = selected_columns(create, base)?;
        check_primary_key(create, base, &selected)?;
        check_where(create)?;
        if create.properties.0.contains_key("default_time_to_live") {
            return invalid(OWN_TTL);
        }
        check_table_name(&create.keyspace, &create.name)?;
        let id = match table_id_of(&create.properties)?.or(create.id) {
            Some(id) => id,
            None => new_table_id(&create.keyspace, &create.name, now_micros),
        };
        let table = build(create, base, &selected, id)?;
        let view = ViewSchema {
            name: create.name.clone(),
            base_table: base.name.clone(),
            base_table_id: base.id,
            include_all_columns: create.selected.is_empty(),
            where_clause: create.where_clause.clone(),
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.tables.insert(table.name.clone(), table);
            keyspace.views.insert(view.name.clone(), Arc::new(view));
        })))
    }

    pub(super) fn alter_view(
        &self,
        keyspace: &str,
        view: &str,
        if_exists: bool,
        properties: &Properties,
    ) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(keyspace)
            .and_then(|owner| Some((owner, owner.tables.get(view)?)));
        let Some((owner, table)) = found.filter(|(_, table)| table.kind == TableKind::View) else {
            return absent(if_exists, || missing(keyspace, view));
        };
        let options = table.options.altered(properties)?;
        if options.gc_grace_secs == 0 {
            return invalid(
                "Cannot alter gc_grace_seconds of a materialized view to 0, since this value is used to TTL \
                 undelivered updates. Setting gc_grace_seconds too low might cause undelivered updates to \
                 expire before being replayed.",
            );
        }
        if options.default_time_to_live_secs > 0 {
            return invalid(ALTERED_TTL);
        }
        let mut builder = table.to_builder();
        builder.options = options;
        let table = builder.build();
        Ok(Some(self.with_changed(owner, |owner| {
            owner.tables.insert(table.name.clone(), table);
        })))
    }

    pub(super) fn drop_view(&self, drop: &DropObject) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(&drop.keyspace)
            .filter(|keyspace| keyspace.views.contains_key(&drop.name));
        let Some(keyspace) = found else {
            return absent(drop.if_exists, || missing(&drop.keyspace, &drop.name));
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.tables.remove(&drop.name);
            keyspace.views.remove(&drop.name);
        })))
    }
}

fn missing(keyspace: &str, view: &str) -> String {
    format!("Materialized view '{keyspace}.{view}' doesn't exist")
}

fn check_base(create: &CreateView, base: &TableSchema) -> Result<(), Error> {
    if base.is_counter() {
        return invalid("Materialized views are not supported on counter tables");
    }
    if base.options.gc_grace_secs == 0 {
        return invalid(format!(
            "Cannot create materialized view '{}' for base table '{}' with gc_grace_seconds of 0, since this \
             value is used to TTL undelivered updates. Setting gc_grace_seconds too low might cause \
             undelivered updates to expire before being replayed.",
            create.name, create.base
        ));
    }
    Ok(())
}

fn selected_columns<'a>(create: &'a CreateView, base: &'a TableSchema) -> Result<BTreeSet<&'a str>, Error> {
    let selected: BTreeSet<&str> = if create.selected.is_empty() {
        base.select_order()
            .into_iter()
            .map(|column| column.name.as_str())
            .collect()
    } else {
        create.selected.iter().map(String::as_str).collect()
    };
    for name in &selected {
        match base.column_named(name).map(|column| column.kind) {
            Some(ColumnKind::Static) => {
                return invalid(format!(
                    "Cannot include static column '{name}' in materialized view '{}'",
                    create.name
                ));
            }
            Some(_) => {}
            None => {
                return invalid(format!(
                    "Undefined column name {} in table {}.{}",
                    ilion_types::quote_name(name),
                    base.keyspace,
                    base.name
                ));
            }
        }
    }
    Ok(selected)
}

fn check_primary_key(
    create: &CreateView,
    base: &TableSchema,
    selected: &BTreeSet<&str>,
) -> Result<(), Error> {
    let view = &create.name;
    if create.partition_key.is_empty() {
        return invalid(format!(
            "Must provide at least one partition key column for materialized view '{view}'"
        ));
    }
    let mut keys = BTreeSet::new();
    for name in create.partition_key.iter().chain(&create.clustering) {
        let Some(column) = base
            .column_named(name)
            .filter(|_| selected.contains(name.as_str()))
        else {
            return invalid(format!(
                "Unknown column '{name}' referenced in PRIMARY KEY for materialized view '{view}'"
            ));
        };
        if !keys.insert(name.as_str()) {
            return invalid(format!(
                "Duplicate column '{name}' in PRIMARY KEY clause for materialized view '{view}'"
            ));
        }
        check_key_type(name, &column.ty)?;
    }
    let ordered = create.clustering_order.iter().map(|(name, _)| name);
    if !create.clustering_order.is_empty() && !ordered.eq(&create.clustering) {
        return invalid("Clustering key columns must exactly match columns in CLUSTERING ORDER BY directive");
    }
    let base_keys = || {
        base.partition_key()
            .chain(base.clustering())
            .map(|column| column.name.as_str())
    };
    let absent: Vec<&str> = base_keys().filter(|name| !keys.contains(name)).collect();
    if !absent.is_empty() {
        return invalid(format!(
            "Cannot create materialized view '{view}' without primary key columns {} from base table '{}'",
            absent.join(", "),
            create.base
        ));
    }
    let regular: Vec<&str> = keys
        .into_iter()
        .filter(|name| base_keys().all(|key| key != *name))
        .collect();
    if regular.len() > 1 {
        return invalid(format!(
            "Cannot include more than one non-primary key column in materialized view primary key (got {})",
            regular.join(", ")
        ));
    }
    Ok(())
}

fn check_where(create: &CreateView) -> Result<(), Error> {
    let keys = || create.partition_key.iter().chain(&create.clustering);
    let free: Vec<&str> = keys()
        .filter(|name| !create.not_null.contains(name) && !create.restricted.contains(name))
        .map(String::as_str)
        .collect();
    if !free.is_empty() {
        return invalid(format!(
            "Primary key columns {} must be restricted with 'IS NOT NULL' or otherwise",
            free.join(", ")
        ));
    }
    let illegal: Vec<&str> = create
        .restricted
        .iter()
        .filter(|name| keys().all(|key| key != *name))
        .map(String::as_str)
        .collect();
    if !illegal.is_empty() {
        return invalid(format!(
            "Non-primary key columns can only be restricted with 'IS NOT NULL' (got: {} restricted illegally)",
            illegal.join(",")
        ));
    }
    Ok(())
}

fn build(
    create: &CreateView,
    base: &TableSchema,
    selected: &BTreeSet<&str>,
    id: TableId,
) -> Result<Arc<TableSchema>, Error> {
    let mut builder = TableBuilder::new(&create.keyspace, &create.name, id);
    builder.kind = TableKind::View;
    builder.options = TableOptions::parse_new(&create.properties)?;
    let columns = |names: &[String], kind| {
        names
            .iter()
            .filter_map(|name| Some((base.column_named(name)?, kind)))
            .collect::<Vec<_>>()
    };
    let is_key = |name: &str| {
        create
            .partition_key
            .iter()
            .chain(&create.clustering)
            .any(|key| key == name)
    };
    let regular: Vec<String> = selected
        .iter()
        .filter(|name| !is_key(name))
        .map(|&name| name.to_owned())
        .collect();
    let all = [
        columns(&create.partition_key, ColumnKind::PartitionKey),
        columns(&create.clustering, ColumnKind::Clustering),
        columns(&regular, ColumnKind::Regular),
    ];
    builder.has_strict_liveness = has_strict_liveness(base, |name| is_key(name));
    for (column, kind) in all.into_iter().flatten() {
        let given = create
            .clustering_order
            .iter()
            .find(|(name, _)| *name == column.name);
        let order = match kind {
            ColumnKind::Clustering => given.map_or(column.order, |(_, order)| *order),
            _ => crate::ClusteringOrder::Asc,
        };
        builder = builder
            .add(column.name.clone(), kind, column.ty.clone(), order)
            .mask(&column.name, column.mask.clone());
    }
    Ok(builder.build())
}

/// True if the view's key has a column that is not in the base's primary key.
pub(crate) fn has_strict_liveness(base: &TableSchema, is_key: impl Fn(&str) -> bool) -> bool {
    base.regulars().any(|column| is_key(&column.name))
}

impl Keyspace {
    /// Sets the properties of views that depend on their base tables, once all tables exist.
    pub(crate) fn complete_views(&mut self) {
        for view in self.views.values() {
            let (Some(base), Some(table)) = (self.tables.get(&view.base_table), self.tables.get(&view.name))
            else {
                continue;
            };
            let is_key = |name: &str| {
                table
                    .column_named(name)
                    .is_some_and(|column| column.is_primary_key())
            };
            if has_strict_liveness(base, is_key) {
                let mut builder = table.to_builder();
                builder.has_strict_liveness = true;
                self.tables.insert(view.name.clone(), builder.build());
            }
        }
    }

    /// Renames a key column of the base table in a view.
    pub(super) fn rename_in_view(&mut self, view: &str, from: &str, to: &str) {
        if let Some(table) = self.tables.get_mut(view) {
            *table = table.to_builder().rename(from, to).build();
        }
        if let Some(definition) = self.views.get_mut(view) {
            let mut renamed = ViewSchema::clone(definition);
            renamed.where_clause = rename_in_clause(&renamed.where_clause, from, to);
            *definition = Arc::new(renamed);
        }
    }
}

/// Replaces a column's name in a WHERE clause, outside of string literals.
fn rename_in_clause(clause: &str, from: &str, to: &str) -> String {
    let (from, to) = (ilion_types::quote_name(from), ilion_types::quote_name(to));
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '"';
    let mut out = String::with_capacity(clause.len());
    let mut rest = clause;
    let mut in_literal = false;
    while let Some(first) = rest.chars().next() {
        let after_word = out.chars().next_back().is_some_and(is_word);
        let tail = rest
            .strip_prefix(&*from)
            .filter(|tail| !tail.starts_with(is_word));
        if let Some(tail) = tail.filter(|_| !in_literal && !after_word) {
            out.push_str(&to);
            rest = tail;
            continue;
        }
        in_literal ^= first == '\'';
        out.push(first);
        rest = &rest[first.len_utf8()..];
    }
    out
}
