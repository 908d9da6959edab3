//! Tables of the server from lines of text.
//!
//! Each table is one line of text: `name type role` per column, separated by `;`. The role is `pk` (partition key), `ck`
//! (clustering), `static` or empty. Key columns are in key order, the others in any order.

use std::sync::Arc;

use ilion_types::CqlType;

use super::since;
use crate::{
    ClusteringOrder, ColumnKind, Keyspace, Release, Replication, TableBuilder, TableId, TableKind,
    TableSchema,
};

/// A table of the server.
#[derive(Clone, Copy)]
pub(super) struct Definition {
    pub name: &'static str,
    pub comment: &'static str,
    pub columns: &'static str,
}

pub(super) const fn table(name: &'static str, comment: &'static str, columns: &'static str) -> Definition {
    Definition {
        name,
        comment,
        columns,
    }
}

/// A keyspace with those of these tables that the release has. `adjust` sets options that are not the default.
pub(super) fn keyspace(
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

pub(super) fn virtual_kind(builder: &mut TableBuilder) {
    builder.kind = TableKind::Virtual;
}
