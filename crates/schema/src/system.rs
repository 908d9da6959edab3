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

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use md5::{Digest, Md5};

use crate::digests::RowDigests;
use crate::rows::encode_keyspace;
use crate::{Keyspace, Release, Schema, SchemaRow, TableId};

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

    /// The schema of a new node, for another release.
    pub fn with_system_of(release: Release) -> Schema {
        Own::of(release).schema.clone()
    }
}

/// The server's own keyspaces of a release, with what a start needs of them. They are made once in a process.
pub(crate) struct Own {
    pub schema: Schema,
    known: BTreeMap<String, Known>,
}

/// What is known of an own keyspace that is as it was made.
pub(crate) struct Known {
    rows: Vec<SchemaRow>,
    pub digests: RowDigests,
}

impl Own {
    pub(crate) fn of(release: Release) -> &'static Self {
        static MADE: [OnceLock<Own>; 3] = [const { OnceLock::new() }; 3];
        let made = match release {
            Release::V4_0 => &MADE[0],
            Release::V4_1 => &MADE[1],
            Release::V5_0 => &MADE[2],
        };
        made.get_or_init(|| Self::make(release))
    }

    /// What is known of this very keyspace. `None`: it is another one, or was changed.
    pub(crate) fn known(&self, keyspace: &Arc<Keyspace>) -> Option<&Known> {
        let own = self.schema.keyspaces.get(&keyspace.name)?;
        Arc::ptr_eq(own, keyspace).then(|| self.known.get(&keyspace.name))?
    }

    /// The rows of an own keyspace as it was made.
    pub(crate) fn rows(&self, keyspace: &str) -> &[SchemaRow] {
        self.known.get(keyspace).map_or(&[], |known| &known.rows)
    }

    /// All rows of a keyspace as it is.
    pub(crate) fn rows_of(&self, keyspace: &Arc<Keyspace>) -> Cow<'_, [SchemaRow]> {
        match self.known(keyspace) {
            Some(known) => Cow::Borrowed(&known.rows),
            None => Cow::Owned(encode_keyspace(keyspace)),
        }
    }

    fn make(release: Release) -> Self {
        let keyspaces: Vec<Arc<Keyspace>> = system_keyspaces(release).into_iter().map(Arc::new).collect();
        let known = keyspaces.iter().map(|keyspace| {
            let rows = encode_keyspace(keyspace);
            let digests = RowDigests::of(&rows);
            (keyspace.name.clone(), Known { rows, digests })
        });
        let known: BTreeMap<String, Known> = known.collect();
        let digests = known.values().map(|known| known.digests);
        let digests = digests.fold(RowDigests::default(), RowDigests::plus);
        let schema = Schema {
            keyspaces: keyspaces
                .into_iter()
                .map(|keyspace| (keyspace.name.clone(), keyspace))
                .collect(),
            version: digests.version(),
            epoch: 0,
            release,
            digests,
        };
        Self { schema, known }
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
