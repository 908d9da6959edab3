//! The server's own keyspaces, with Cassandra 5.0's tables, columns and ids.
//!
//! Each table is one line of text: `name type role` per column, separated by `;`. The role is `pk` (partition key), `ck`
//! (clustering), `static` or empty. Key columns are in key order, the others in any order.
//!
//! | module | keyspace |
//! | --- | --- |
//! | `local` | `system` |
//! | `schema_tables` | `system_schema` |
//! | `replicated` | `system_auth`, `system_distributed`, `system_traces` |
//! | `since` | tables and columns that are newer than 4.0 |
//! | `virtual_tables` | `system_views`, `system_virtual_schema` |
//!
//! When you add a table that is stored: its id is derived from its name; nothing else must change.

mod cluster_views;
mod local;
mod replicated;
mod schema_tables;
mod since;
mod virtual_tables;

pub use schema_tables::schema_column_named;

use std::sync::Arc;

use ilion_types::CqlType;
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::version::RowDigests;
use crate::{
    ClusteringOrder, ColumnKind, Keyspace, Release, Replication, Schema, TableBuilder, TableId, TableKind,
    TableSchema,
};

/// A table of the server.
#[derive(Clone, Copy)]
struct Definition {
    name: &'static str,
    comment: &'static str,
    columns: &'static str,
}

const fn table(name: &'static str, comment: &'static str, columns: &'static str) -> Definition {
    Definition {
        name,
        comment,
        columns,
    }
}

impl TableId {
    /// The id of a table of the server: an MD5 UUID of both names, the same on every node.
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

/// The server's own keyspaces, including virtual ones, as in a release. Virtual ones are not stored, so they are the same in
/// all releases.
pub(crate) fn system_keyspaces(release: Release) -> Vec<Keyspace> {
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

/// A keyspace with these tables; `adjust` sets non-default options.
fn keyspace(
    release: Release,
    name: &str,
    replication: Replication,
    definitions: &[Definition],
    adjust: impl Fn(&mut TableBuilder),
) -> Keyspace {
    let mut keyspace = Keyspace::new(name, replication, true);
    let known = |definition: &&Definition| since::table(name, definition.name) <= release;
    for definition in definitions.iter().filter(known) {
        let table = build(release, name, definition, &adjust);
        keyspace.tables.insert(table.name.clone(), table);
    }
    keyspace
}

fn build(
    release: Release,
    keyspace: &str,
    definition: &Definition,
    adjust: &impl Fn(&mut TableBuilder),
) -> Arc<TableSchema> {
    let id = TableId::of_system_table(keyspace, definition.name);
    let mut builder = TableBuilder::new(keyspace, definition.name, id);
    definition.comment.clone_into(&mut builder.options.comment);
    adjust(&mut builder);
    let mut columns: Vec<(&str, CqlType, ColumnKind)> = definition.columns.split(';').map(column).collect();
    columns.retain(|(name, ..)| since::column(keyspace, definition.name, name) <= release);
    for (name, ty, _) in &mut columns {
        if let Some(older) = since::older_type(release, keyspace, definition.name, name) {
            *ty = cql_type(older);
        }
    }
    // The order of CREATE TABLE: key columns in order, then the others by name.
    columns.sort_by_key(|(name, _, kind)| match kind {
        ColumnKind::PartitionKey => (0, ""),
        ColumnKind::Clustering => (1, ""),
        _ => (2, *name),
    });
    for (name, ty, kind) in columns {
        builder = builder.add(name.to_owned(), kind, ty, ClusteringOrder::Asc);
    }
    builder.build()
}

#[expect(
    clippy::expect_used,
    reason = "the texts are this crate's own; a test builds every table"
)]
fn column(text: &'static str) -> (&'static str, CqlType, ColumnKind) {
    let (name, rest) = text
        .trim()
        .split_once(' ')
        .expect("a column has a name and a type");
    let roles = [
        (" pk", ColumnKind::PartitionKey),
        (" ck", ColumnKind::Clustering),
        (" static", ColumnKind::Static),
    ];
    let (ty, kind) = roles
        .into_iter()
        .find_map(|(suffix, kind)| Some((rest.strip_suffix(suffix)?, kind)))
        .unwrap_or((rest, ColumnKind::Regular));
    (name, cql_type(ty), kind)
}

#[expect(clippy::expect_used, reason = "as above")]
fn cql_type(text: &'static str) -> CqlType {
    CqlType::parse_cql(text, "", &|_| None).expect("the type of a system table parses")
}

fn virtual_kind(builder: &mut TableBuilder) {
    builder.kind = TableKind::Virtual;
}

#[cfg(test)]
mod tests;
