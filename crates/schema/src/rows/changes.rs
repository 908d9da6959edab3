//! What to write to `system_schema` when the schema changes: the rows that are new or differ, and what is deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;

use super::{SCHEMA_TABLES, SchemaRow, encode_keyspace};
use crate::{Keyspace, Schema, TableKind};

/// One write to `system_schema`. All of a change go with one timestamp; deletions of a change never meet its puts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowChange {
    /// The whole row: cells that are null are deleted.
    Put(SchemaRow),
    /// The row is gone.
    Delete {
        /// The table.
        table: &'static str,
        /// The partition key.
        keyspace: String,
        /// The clustering, serialized.
        clustering: Vec<Bytes>,
    },
    /// The partition is gone.
    DeletePartition {
        /// The table.
        table: &'static str,
        /// The partition key.
        keyspace: String,
    },
}

impl Schema {
    /// Every row of every keyspace that is stored (virtual ones are not).
    pub fn to_rows(&self) -> Vec<SchemaRow> {
        let stored = self.keyspaces.keys().filter_map(|name| stored(self, name));
        stored.flat_map(|keyspace| encode_keyspace(keyspace)).collect()
    }
}

/// The writes that take the stored schema from `old` to `new`. Virtual keyspaces are not stored; from the default (empty)
/// schema it is everything.
pub fn row_changes(old: &Schema, new: &Schema) -> Vec<RowChange> {
    let mut changes = Vec::new();
    let names: BTreeSet<&String> = old.keyspaces.keys().chain(new.keyspaces.keys()).collect();
    for name in names {
        match (stored(old, name), stored(new, name)) {
            (Some(_), None) => changes.extend(SCHEMA_TABLES.map(|table| RowChange::DeletePartition {
                table,
                keyspace: name.clone(),
            })),
            (before, Some(after)) if before.is_none_or(|before| !Arc::ptr_eq(before, after)) => {
                changes.extend(keyspace_changes(before.map(Arc::as_ref), after));
            }
            _ => {}
        }
    }
    changes
}

fn stored<'a>(schema: &'a Schema, name: &str) -> Option<&'a Arc<Keyspace>> {
    let is_virtual = |keyspace: &Keyspace| {
        keyspace
            .tables
            .values()
            .any(|table| table.kind == TableKind::Virtual)
    };
    schema.keyspace(name).filter(|keyspace| !is_virtual(keyspace))
}

type Key = (&'static str, Vec<Bytes>);

fn keyspace_changes(old: Option<&Keyspace>, new: &Keyspace) -> Vec<RowChange> {
    let keyed = |keyspace: &Keyspace| -> BTreeMap<Key, SchemaRow> {
        encode_keyspace(keyspace)
            .into_iter()
            .map(|row| ((row.table, row.clustering.clone()), row))
            .collect()
    };
    let before = old.map(keyed).unwrap_or_default();
    let after = keyed(new);
    let gone = before
        .keys()
        .filter(|key| !after.contains_key(*key))
        .map(|(table, clustering)| RowChange::Delete {
            table,
            keyspace: new.name.clone(),
            clustering: clustering.clone(),
        });
    let put = after
        .iter()
        .filter(|(key, row)| before.get(*key) != Some(*row))
        .map(|(_, row)| RowChange::Put(row.clone()));
    gone.chain(put).collect()
}
