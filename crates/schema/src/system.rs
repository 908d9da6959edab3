//! The server's own keyspaces, with Cassandra 5.0's tables, columns and ids.
//!
//! | module | keyspace |
//! | --- | --- |
//! | `local` | `system` |
//! | `schema_tables` | `system_schema` |
//! | `replicated` | `system_auth`, `system_distributed`, `system_traces` |
//! | `definition` | tables from lines of text |
//! | `since` | tables and columns that are newer than 4.0 |
//! | `virtual_tables` | `system_views`, `system_virtual_schema` |
//!
//! When you add a stored table that Cassandra has had since 4.0, nothing else must change: its id is derived from its name. For a newer
//! table or column, see `since`.

mod cluster_views;
mod definition;
mod local;
mod replicated;
mod schema_tables;
mod since;
mod virtual_tables;

pub use schema_tables::schema_column_named;

use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};
use uuid::Uuid;

use crate::digests::RowDigests;
use crate::{Keyspace, Release, Schema, TableId};

impl TableId {
    /// The id of a table of the server: an MD5 UUID of keyspace and table name, the same on every node.
    pub fn of_system_table(keyspace: &str, table: &str) -> TableId {
        let digest = Md5::new().chain_update(keyspace).chain_update(table).finalize();
        TableId(uuid::Builder::from_md5_bytes(digest.into()).into_uuid())
    }
}

impl Schema {
    /// The schema of a new node: the server's own keyspaces.
    pub fn with_system() -> Schema {
        Self::with_system_of(Release::default())
    }

    /// The schema of a new node, for another release. It is made once in a process: a start asks for it several times.
    pub fn with_system_of(release: Release) -> Schema {
        static MADE: [OnceLock<Schema>; 3] = [const { OnceLock::new() }; 3];
        let made = match release {
            Release::V4_0 => &MADE[0],
            Release::V4_1 => &MADE[1],
            Release::V5_0 => &MADE[2],
        };
        made.get_or_init(|| Self::make_system_of(release)).clone()
    }

    fn make_system_of(release: Release) -> Schema {
        let keyspaces = system_keyspaces(release).into_iter();
        let schema = Schema {
            keyspaces: keyspaces
                .map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)))
                .collect(),
            version: Uuid::nil(),
            epoch: 0,
            release,
            digests: RowDigests::default(),
        };
        schema.sealed(0)
    }
}

/// The server's own keyspaces as in a release. They include the virtual ones, which are the same in all releases, since they are not
/// stored.
fn system_keyspaces(release: Release) -> Vec<Keyspace> {
    vec![
        local::keyspace(release),
        schema_tables::keyspace(release),
        replicated::auth(release),
        replicated::distributed(release),
        replicated::traces(release),
        virtual_tables::views(),
        virtual_tables::virtual_schema(),
    ]
}

#[cfg(test)]
mod tests;
