//! The writes to `system_schema` for a change: the new and changed rows, and deletions.
//!
//! Rows are made only for objects that differ, so a change costs no more in a keyspace with many tables.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

use super::encode::{aggregate_row, function_row, head_row, index_row, keyspace_row, trigger_row, type_row};
use super::encode_table::table_rows;
use super::{SCHEMA_TABLES, SchemaRow, encode_keyspace};
use crate::{ChangeKind, Diff, Keyspace, Schema, TableKind, Transition};

const MASKS: &str = "column_masks";

/// One write to `system_schema`. All writes of a change have the same timestamp; none of its deletions covers one of its puts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// Writes the whole row; null cells are deleted.
    Put(SchemaRow),
    /// Deletes the row.
    Delete {
        /// The table.
        table: &'static str,
        /// The partition key.
        keyspace: String,
        /// The clustering, serialized.
        clustering: Vec<Bytes>,
    },
    /// Deletes the partition.
    DeletePartition {
        /// The table.
        table: &'static str,
        /// The partition key.
        keyspace: String,
    },
}

impl RowChange {
    /// The table that is written to.
    pub fn table(&self) -> &'static str {
        match self {
            RowChange::Put(row) => row.table,
            RowChange::Delete { table, .. } | RowChange::DeletePartition { table, .. } => table,
        }
    }

    /// The partition key.
    pub fn keyspace(&self) -> &str {
        match self {
            RowChange::Put(row) => &row.keyspace,
            RowChange::Delete { keyspace, .. } | RowChange::DeletePartition { keyspace, .. } => keyspace,
        }
    }
}

impl Schema {
    /// All rows of all stored keyspaces (virtual ones are not stored).
    pub fn to_rows(&self) -> Vec<SchemaRow> {
        let stored = self.keyspaces.values().filter(|keyspace| !is_virtual(keyspace));
        stored.flat_map(|keyspace| encode_keyspace(keyspace)).collect()
    }
}

/// The rows of the objects that differ between two schemas.
#[derive(Debug, Default)]
pub(crate) struct ChangedRows {
    before: BTreeMap<Key, SchemaRow>,
    after: BTreeMap<Key, SchemaRow>,
    /// Keyspaces that were dropped.
    dropped: BTreeSet<String>,
    /// Virtual keyspaces, whose rows are not stored.
    is_virtual: BTreeSet<String>,
}

/// Keyspace, table, clustering.
type Key = (String, &'static str, Vec<Bytes>);

impl ChangedRows {
    /// The rows of the objects in `diffs`. `diffs` must be the differences between the two schemas.
    pub(crate) fn of(diffs: &[Diff], old: &Schema, new: &Schema) -> Self {
        let mut rows = Self::default();
        for diff in diffs {
            let name = diff.keyspace();
            if diff.kind() != ChangeKind::Created
                && let Some(owner) = old.keyspace(name)
            {
                add(&mut rows.before, owner, diff, Side::Before);
            }
            if !diff.is_drop()
                && let Some(owner) = new.keyspace(name)
            {
                add(&mut rows.after, owner, diff, Side::After);
            }
            match diff {
                Diff::Keyspace(Transition::Dropped(gone)) => {
                    rows.dropped.insert(gone.name.clone());
                }
                Diff::Table(it) if it.object().kind == TableKind::Virtual => {
                    rows.is_virtual.insert(name.to_owned());
                }
                _ => {}
            }
        }
        rows
    }

    /// The rows of the old schema.
    pub(crate) fn before(&self) -> impl Iterator<Item = &SchemaRow> {
        self.before.values()
    }

    /// The rows of the new schema.
    pub(crate) fn after(&self) -> impl Iterator<Item = &SchemaRow> {
        self.after.values()
    }

    /// The writes that lead from the old rows to the new ones.
    pub(crate) fn into_changes(self) -> Vec<RowChange> {
        let Self {
            before,
            after,
            dropped,
            is_virtual,
        } = self;
        let whole = dropped.iter().filter(|name| !is_virtual.contains(*name));
        let whole = whole.flat_map(|name| {
            SCHEMA_TABLES.map(|table| RowChange::DeletePartition {
                table,
                keyspace: name.clone(),
            })
        });
        let gone = before.keys().filter(|key| {
            !after.contains_key(*key) && !dropped.contains(&key.0) && !is_virtual.contains(&key.0)
        });
        let gone = gone.map(|(keyspace, table, clustering)| RowChange::Delete {
            table,
            keyspace: keyspace.clone(),
            clustering: clustering.clone(),
        });
        let unmasked = after.keys().filter(|key| {
            let mask = (key.0.clone(), MASKS, key.2.clone());
            let is_new = key.1 == "columns" && !before.contains_key(*key);
            is_new
                && !after.contains_key(&mask)
                && !before.contains_key(&mask)
                && !is_virtual.contains(&key.0)
        });
        // Compat: Cassandra leaves behind the masks of columns that were dropped or renamed. A new column must not get such a mask.
        let unmasked = unmasked.map(|(keyspace, _, clustering)| RowChange::Delete {
            table: MASKS,
            keyspace: keyspace.clone(),
            clustering: clustering.clone(),
        });
        let mut changes: Vec<RowChange> = whole.chain(gone).chain(unmasked).collect();
        let put = after
            .into_iter()
            .filter(|(key, row)| before.get(key) != Some(row) && !is_virtual.contains(&key.0));
        changes.extend(put.map(|(_, row)| RowChange::Put(row)));
        changes
    }
}

pub(super) fn is_virtual(keyspace: &Keyspace) -> bool {
    keyspace
        .tables
        .values()
        .any(|table| table.kind == TableKind::Virtual)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    After,
}

/// The object of a difference on one side. Requires: the object exists on that side.
fn on<T>(it: &Transition<T>, side: Side) -> &T {
    match it {
        Transition::Updated { old, .. } if side == Side::Before => old,
        _ => it.object(),
    }
}

/// Adds the rows of an object on one side.
fn add(rows: &mut BTreeMap<Key, SchemaRow>, owner: &Keyspace, diff: &Diff, side: Side) {
    let mut put = |row: SchemaRow| {
        rows.insert((row.keyspace.clone(), row.table, row.clustering.clone()), row);
    };
    let name = owner.name.as_str();
    match diff {
        Diff::Keyspace(it) => put(keyspace_row(on(it, side))),
        Diff::Type(it) => put(type_row(name, on(it, side))),
        Diff::Table(it) => {
            let table = on(it, side);
            put(head_row(owner, table));
            table_rows(table).for_each(put);
        }
        // One row describes both the view and its table.
        Diff::View(_, it) => {
            if let Some(table) = owner.tables.get(&on(it, side).name) {
                put(head_row(owner, table));
            }
        }
        Diff::Index(_, it) => put(index_row(name, on(it, side))),
        Diff::Trigger(_, it) => put(trigger_row(name, on(it, side))),
        Diff::Function(_, it) => put(function_row(name, on(it, side))),
        Diff::Aggregate(_, it) => put(aggregate_row(name, on(it, side))),
    }
}
