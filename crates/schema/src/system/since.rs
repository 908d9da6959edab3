//! The tables and columns that the server's keyspaces got since 4.0. They are left out in the directory of an older release,
//! since Cassandra does not start if a file has an unknown column.
//!
//! When you add a table or column that is stored, add here the first release of Cassandra that has it.

use crate::Release::{self, V4_0, V4_1, V5_0};

/// Keyspace, table, first release.
const TABLES: &[(&str, &str, Release)] = &[
    ("system", "paxos_repair_history", V4_1),
    ("system", "sstable_activity_v2", V4_1),
    ("system", "top_partitions", V4_1),
    ("system_auth", "cidr_groups", V5_0),
    ("system_auth", "cidr_permissions", V5_0),
    ("system_auth", "identity_to_role", V5_0),
    ("system_distributed", "partition_denylist", V4_1),
    ("system_schema", "column_masks", V5_0),
];

/// Keyspace, table, column, first release.
const COLUMNS: &[(&str, &str, &str, Release)] = &[
    ("system", "compaction_history", "compaction_properties", V5_0),
    ("system", "paxos", "in_progress_read_ballot", V4_1),
    ("system_schema", "tables", "allow_auto_snapshot", V5_0),
    ("system_schema", "tables", "incremental_backups", V5_0),
    ("system_schema", "tables", "memtable", V4_1),
    ("system_schema", "views", "allow_auto_snapshot", V5_0),
    ("system_schema", "views", "incremental_backups", V5_0),
    ("system_schema", "views", "memtable", V4_1),
];

/// Types that columns had in 4.0, where 4.1 changed them.
const TYPES_OF_4_0: &[(&str, &str, &str, &str)] = &[
    ("system", "compaction_history", "id", "uuid"),
    ("system", "peer_events", "hints_dropped", "map<uuid, int>"),
    ("system", "peer_events_v2", "hints_dropped", "map<uuid, int>"),
];

pub(super) fn table(keyspace: &str, table: &str) -> Release {
    let found = TABLES
        .iter()
        .find(|(its_keyspace, name, _)| (*its_keyspace, *name) == (keyspace, table));
    found.map_or(V4_0, |(.., since)| *since)
}

pub(super) fn column(keyspace: &str, table: &str, column: &str) -> Release {
    let found = COLUMNS.iter().find(|(its_keyspace, its_table, name, _)| {
        (*its_keyspace, *its_table, *name) == (keyspace, table, column)
    });
    found.map_or(V4_0, |(.., since)| *since)
}

pub(super) fn older_type(
    release: Release,
    keyspace: &str,
    table: &str,
    column: &str,
) -> Option<&'static str> {
    let mut older = TYPES_OF_4_0.iter().filter(|_| release == V4_0);
    let found = older.find(|(its_keyspace, its_table, name, _)| {
        (*its_keyspace, *its_table, *name) == (keyspace, table, column)
    });
    found.map(|(.., ty)| *ty)
}
