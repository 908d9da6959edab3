//! CREATE and DROP INDEX. This crate does not know the classes of indexes; afterwards the caller lets the class check the definition.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_types::{CqlType, quote_name};

use super::alter_table::full_name;
use super::tables::absent;
use super::{CreateIndex, DropObject, IndexPart, IndexTarget};
use crate::error::{config, invalid};
use crate::index_target::print_targets;
use crate::names::check_index_name;
use crate::{Column, ColumnKind, Error, IndexKind, IndexSchema, Keyspace, Schema, TableKind, TableSchema};

/// Classes of storage-attached indexes, in lower case: short names are not case-sensitive.
const STORAGE_ATTACHED: [&str; 3] = [
    "sai",
    "storageattachedindex",
    "org.apache.cassandra.index.sai.storageattachedindex",
];
/// The name of the built-in index on a hidden table, for USING.
const BUILT_IN: &str = "legacy_local_table";

impl Schema {
    pub(super) fn create_index(&self, create: &CreateIndex) -> Result<Option<Schema>, Error> {
        let (kind, mut options) = kind_and_options(create)?;
        let keyspace = self.existing(&create.keyspace)?;
        let Some(table) = keyspace.tables.get(&create.table) else {
            return invalid(format!("Table '{}' doesn't exist", create.table));
        };
        if let Some(name) = create
            .name
            .as_ref()
            .filter(|name| keyspace.indexes.contains_key(*name))
        {
            return absent(create.if_not_exists, || format!("Index '{name}' already exists"));
        }
        check_table(table)?;
        let targets = prepare_targets(table, &create.targets)?;
        let class = options.get("class_name").map(String::as_str);
        check_targets(table, &targets, kind, class)?;
        let name = match &create.name {
            Some(name) => name.clone(),
            None => keyspace.free_index_name(&create.table, &targets),
        };
        options.insert("target".to_owned(), print_targets(&targets));
        let index = IndexSchema {
            name,
            table: create.table.clone(),
            kind,
            options,
        };
        let twin = keyspace.indexes.values().find(|other| {
            other.table == index.table && other.kind == index.kind && other.options == index.options
        });
        if let Some(twin) = twin {
            return absent(create.if_not_exists, || {
                format!(
                    "Index {} is a duplicate of existing index {}",
                    index.name, twin.name
                )
            });
        }
        check_one_storage_attached(keyspace, &index)?;
        check_index_name(&index)?;
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.indexes.insert(index.name.clone(), Arc::new(index));
        })))
    }

    pub(super) fn drop_index(&self, drop: &DropObject) -> Result<Option<Schema>, Error> {
        let found = self
            .keyspace(&drop.keyspace)
            .filter(|keyspace| keyspace.indexes.contains_key(&drop.name));
        let Some(keyspace) = found else {
            return absent(drop.if_exists, || {
                format!("Index '{}.{}' doesn't exist'", drop.keyspace, drop.name)
            });
        };
        Ok(Some(self.with_changed(keyspace, |keyspace| {
            keyspace.indexes.remove(&drop.name);
        })))
    }
}

/// The kind and options that USING and CUSTOM select.
fn kind_and_options(create: &CreateIndex) -> Result<(IndexKind, BTreeMap<String, String>), Error> {
    create.properties.only(&["options"])?;
    let class = create.class.as_deref().unwrap_or(BUILT_IN);
    if class.eq_ignore_ascii_case(BUILT_IN) {
        if create.is_custom {
            return unknown_class(class);
        }
        if create.properties.0.contains_key("options") {
            return invalid("Cannot specify options for a non-CUSTOM index");
        }
        return Ok((IndexKind::Composites, BTreeMap::new()));
    }
    let given = create.properties.map("options")?.cloned().unwrap_or_default();
    for reserved in ["class_name", "target"] {
        if given.contains_key(reserved) {
            return invalid(format!("Cannot specify {reserved} as a CUSTOM option"));
        }
    }
    let mut options = given;
    options.insert("class_name".to_owned(), class.to_owned());
    Ok((IndexKind::Custom, options))
}

fn unknown_class<T>(class: &str) -> Result<T, Error> {
    config(format!("Unable to find custom indexer class '{class}'"))
}

impl IndexSchema {
    /// True for a storage-attached index. Several of these are searched together.
    pub fn is_storage_attached(&self) -> bool {
        self.kind == IndexKind::Custom && self.class_name().is_some_and(is_storage_attached)
    }
}

fn is_storage_attached(class: &str) -> bool {
    STORAGE_ATTACHED
        .iter()
        .any(|known| class.eq_ignore_ascii_case(known))
}

/// Refuses a second storage-attached index on the same column or part of it, whatever its options.
fn check_one_storage_attached(keyspace: &Keyspace, index: &IndexSchema) -> Result<(), Error> {
    let is_twin = |other: &IndexSchema| other.is_storage_attached() && other.target() == index.target();
    match index.target().filter(|_| index.is_storage_attached()) {
        Some((column, _)) if keyspace.indexes_of(&index.table).any(|other| is_twin(other)) => invalid(
            format!("Cannot create more than one storage-attached index on the same column: {column}"),
        ),
        _ => Ok(()),
    }
}

fn check_table(table: &TableSchema) -> Result<(), Error> {
    if table.is_counter() {
        return invalid("Secondary indexes on counter tables aren't supported");
    }
    if table.kind == TableKind::View {
        return invalid("Secondary indexes on materialized views aren't supported");
    }
    Ok(())
}

/// The targets of a statement; if one names no part of a collection, its values are the default.
fn prepare_targets(table: &TableSchema, targets: &[IndexTarget]) -> Result<Vec<IndexTarget>, Error> {
    let prepare = |target: &IndexTarget| {
        let Some(column) = table.shown_named(&target.column) else {
            return invalid(format!(
                "Undefined column name {} in table {}",
                quote_name(&target.column),
                full_name(table)
            ));
        };
        let is_values = target.part == IndexPart::Simple && column.ty.is_collection();
        let part = if is_values { IndexPart::Values } else { target.part };
        Ok(IndexTarget {
            column: target.column.clone(),
            part,
        })
    };
    targets.iter().map(prepare).collect()
}

fn check_targets(
    table: &TableSchema,
    targets: &[IndexTarget],
    kind: IndexKind,
    class: Option<&str>,
) -> Result<(), Error> {
    let is_custom = kind == IndexKind::Custom;
    if targets.is_empty() && !is_custom {
        return invalid("Only CUSTOM indexes can be created without specifying a target column");
    }
    if targets.len() > 1 && !is_custom {
        return invalid("Only CUSTOM indexes support multiple columns");
    }
    for (position, target) in targets.iter().enumerate() {
        if targets[..position]
            .iter()
            .any(|known| known.column == target.column)
        {
            return invalid(format!(
                "Duplicate column '{}' in index target list",
                target.column
            ));
        }
    }
    for target in targets {
        if let Some(column) = table.column_named(&target.column) {
            check_target(table, column, target.part)?;
        }
    }
    match (targets, class.is_some_and(is_storage_attached)) {
        ([_], _) => Ok(()),
        ([], true) => invalid("Failed to retrieve target column for: "),
        (_, true) => invalid(format!(
            "A storage-attached index cannot be created over multiple columns: {}",
            print_targets(targets)
        )),
        (_, false) => invalid("An index is on exactly one column"),
    }
}

fn check_target(table: &TableSchema, column: &Column, part: IndexPart) -> Result<(), Error> {
    let Column { name, ty, .. } = column;
    if ty.contains_duration() {
        let what = match ty {
            CqlType::Duration => "duration columns",
            CqlType::Tuple(_) => "tuples containing durations",
            CqlType::Udt { .. } => "UDTs containing durations",
            _ => "collections containing durations",
        };
        return invalid(format!("Secondary indexes are not supported on {what}"));
    }
    if table.is_compact() && column.is_primary_key() {
        return invalid(
            "Secondary indexes are not supported on PRIMARY KEY columns in COMPACT STORAGE tables",
        );
    }
    let is_compact_value = column.kind == ColumnKind::Regular && table.clustering().len() > 0;
    if table.is_compact() && is_compact_value {
        return invalid(
            "Secondary indexes are not supported on compact value column of COMPACT STORAGE tables",
        );
    }
    if column.kind == ColumnKind::PartitionKey && table.partition_key().len() == 1 {
        return invalid(format!(
            "Cannot create secondary index on the only partition key column {name}"
        ));
    }
    let is_frozen_collection = ty.is_collection() && !ty.is_multi_cell();
    if is_frozen_collection && part != IndexPart::Full {
        return invalid(format!(
            "Cannot create {part}() index on frozen column {name}. Frozen collections are immutable and must \
             be fully indexed by using the 'full({name})' modifier"
        ));
    }
    if !is_frozen_collection && part == IndexPart::Full {
        return invalid("full() indexes can only be created on frozen collections");
    }
    if !ty.is_collection() && part != IndexPart::Simple {
        return invalid(format!(
            "Cannot create {part}() index on {name}. Non-collection columns only support simple indexes"
        ));
    }
    let is_live_map = matches!(ty, CqlType::Map { frozen: false, .. });
    if !is_live_map && matches!(part, IndexPart::Keys | IndexPart::Entries) {
        return invalid(format!(
            "Cannot create index on {part} of column {name} with non-map type"
        ));
    }
    if matches!(ty, CqlType::Udt { frozen: false, .. }) {
        return invalid(format!("Cannot create index on non-frozen UDT column {name}"));
    }
    Ok(())
}

impl Keyspace {
    /// `table_column_idx`, followed by a number if an index has that name.
    fn free_index_name(&self, table: &str, targets: &[IndexTarget]) -> String {
        let joined = match targets {
            [target] => format!("{table}_{}_idx", target.column),
            _ => format!("{table}_idx"),
        };
        let base: String = joined
            .chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_')
            .collect();
        let numbered = (1_u32..).map(|number| format!("{base}_{number}"));
        std::iter::once(base.clone())
            .chain(numbered)
            .find(|name| !self.indexes.contains_key(name))
            .unwrap_or(base)
    }
}
