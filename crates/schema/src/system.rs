//! The keyspaces that the server brings along, with Cassandra 5.0's tables, columns and ids.
//!
//! Every table is one line of text: `name type role`, columns apart by `;`, where the role is `pk` (partition key), `ck`
//! (clustering), `static` or nothing. Columns of a kind stand in key order; the others as they come.
//!
//! | module | keyspace |
//! | --- | --- |
//! | `local` | `system` |
//! | `schema_tables` | `system_schema` |
//! | `replicated` | `system_auth`, `system_distributed`, `system_traces` |
//! | `virtual_tables` | `system_views`, `system_virtual_schema` |
//!
//! When you add a table that is stored: its id follows from its name, and nothing else has to change.

mod local;
mod replicated;
mod schema_tables;
mod virtual_tables;

pub(crate) use schema_tables::column_named as schema_column_named;

use std::sync::Arc;

use ilion_types::CqlType;
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::{
    ClusteringOrder, ColumnKind, Keyspace, Replication, Schema, TableBuilder, TableId, TableKind, TableSchema,
};

/// A table of the server.
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
    /// The id of a table that the server brings along: an MD5 UUID of both names, the same on every node.
    pub fn of_system_table(keyspace: &str, table: &str) -> TableId {
        let digest = Md5::new().chain_update(keyspace).chain_update(table).finalize();
        TableId(uuid::Builder::from_md5_bytes(digest.into()).into_uuid())
    }
}

impl Schema {
    /// The schema of a new node: the server's own keyspaces.
    pub fn with_system() -> Schema {
        let keyspaces = system_keyspaces().into_iter();
        let schema = Schema {
            keyspaces: keyspaces
                .map(|keyspace| (keyspace.name.clone(), Arc::new(keyspace)))
                .collect(),
            version: Uuid::nil(),
            epoch: 0,
        };
        schema.sealed(0)
    }
}

/// The server's own keyspaces, virtual ones included.
pub fn system_keyspaces() -> Vec<Keyspace> {
    vec![
        local::keyspace(),
        schema_tables::keyspace(),
        replicated::auth(),
        replicated::distributed(),
        replicated::traces(),
        virtual_tables::views(),
        virtual_tables::virtual_schema(),
    ]
}

/// A keyspace of these tables; `adjust` sets what differs from the default options.
fn keyspace(
    name: &str,
    replication: Replication,
    definitions: &[Definition],
    adjust: impl Fn(&mut TableBuilder),
) -> Keyspace {
    let mut keyspace = Keyspace::new(name, replication, true);
    for definition in definitions {
        let table = build(name, definition, &adjust);
        keyspace.tables.insert(table.name.clone(), table);
    }
    keyspace
}

fn build(keyspace: &str, definition: &Definition, adjust: &impl Fn(&mut TableBuilder)) -> Arc<TableSchema> {
    let id = TableId::of_system_table(keyspace, definition.name);
    let mut builder = TableBuilder::new(keyspace, definition.name, id);
    definition.comment.clone_into(&mut builder.options.comment);
    adjust(&mut builder);
    let mut columns: Vec<(&str, CqlType, ColumnKind)> = definition.columns.split(';').map(column).collect();
    // As CREATE TABLE does: keys in their order, then the others by name.
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
    let ty = CqlType::parse_cql(ty, "", &|_| None).expect("the type of a system table parses");
    (name, ty, kind)
}

fn virtual_kind(builder: &mut TableBuilder) {
    builder.kind = TableKind::Virtual;
}

#[cfg(test)]
mod tests;
