//! [`Affected`]: the tables that a change of the schema may have changed. All others are left as they are.

use std::collections::{BTreeMap, BTreeSet};

use ilion_schema::{Diff, TableSchema};

/// Tables that a schema may have changed.
pub(crate) enum Affected {
    /// All tables, since the schema was read again from its rows.
    All,
    /// Tables that the changes from the last schema to this one touch.
    Some {
        /// Keyspaces all of whose tables are affected.
        keyspaces: BTreeSet<String>,
        /// Names of tables by keyspace.
        tables: BTreeMap<String, BTreeSet<String>>,
    },
}

impl Affected {
    /// Tables that differ, whose indexes differ, or whose keyspace has other options.
    pub(crate) fn by(diffs: &[Diff]) -> Self {
        let mut keyspaces = BTreeSet::new();
        let mut tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for diff in diffs {
            let (keyspace, table) = match diff {
                Diff::Keyspace(it) => {
                    keyspaces.insert(it.object().name.clone());
                    continue;
                }
                Diff::Table(it) => (&it.object().keyspace, &it.object().name),
                Diff::View(keyspace, it) => (keyspace, &it.object().name),
                Diff::Index(keyspace, it) => (keyspace, &it.object().table),
                // A table that uses a changed type has a diff of its own.
                Diff::Type(_) | Diff::Function(..) | Diff::Aggregate(..) | Diff::Trigger(..) => continue,
            };
            tables.entry(keyspace.clone()).or_default().insert(table.clone());
        }
        Self::Some { keyspaces, tables }
    }

    pub(crate) fn has(&self, table: &TableSchema) -> bool {
        match self {
            Self::All => true,
            Self::Some { keyspaces, tables } => {
                let names = tables.get(&table.keyspace);
                keyspaces.contains(&table.keyspace) || names.is_some_and(|names| names.contains(&table.name))
            }
        }
    }
}
