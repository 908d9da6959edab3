use super::*;
use crate::{ColumnKind, TableKind, TableSchema};

#[test]
fn system_tables_have_cassandras_ids() {
    for (keyspace, table, id) in [
        (
            "system_schema",
            "keyspaces",
            "abac5682-dea6-31c5-b535-b3d6cffd0fb6",
        ),
        ("system_schema", "tables", "afddfb9d-bc1e-3068-8056-eed6c302ba09"),
        ("system_schema", "columns", "24101c25-a2ae-3af7-87c1-b40ee1aca33f"),
        ("system_schema", "types", "5a8b1ca8-6602-3f77-a045-9273d308917a"),
        ("system_schema", "views", "9786ac1c-dd58-3201-a7cd-ad556410c985"),
        ("system_schema", "indexes", "0feb57ac-311f-382f-ba6d-9024d305702f"),
        (
            "system_schema",
            "functions",
            "96489b79-80be-3e14-a701-66a0b9159450",
        ),
        (
            "system_schema",
            "aggregates",
            "924c5587-2e3a-345b-b10c-12f37c1ba895",
        ),
        ("system", "local", "7ad54392-bcdd-35a6-8417-4e047860b377"),
        ("system_auth", "roles", "5bc52802-de25-35ed-aeab-188eecebb090"),
    ] {
        let schema = Schema::with_system();
        assert_eq!(
            schema.table(keyspace, table).unwrap().id.to_string(),
            id,
            "{keyspace}.{table}"
        );
    }
}

#[test]
fn every_system_table_has_a_key_and_unique_columns() {
    for keyspace in system_keyspaces(Release::V5_0) {
        for table in keyspace.tables.values() {
            assert!(
                table.partition_key().len() > 0,
                "{}.{}",
                table.keyspace,
                table.name
            );
            let mut names: Vec<_> = table
                .select_order()
                .iter()
                .map(|column| column.name.clone())
                .collect();
            let count = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), count, "{}.{}", table.keyspace, table.name);
        }
    }
}

/// Lines of `RELEASE KEYSPACE TABLE COLUMN KIND POSITION TYPE`, from real Cassandras.
const CASSANDRAS: &str = include_str!("cassandra_columns.txt");

#[test]
fn stored_tables_have_the_columns_that_cassandra_has_in_each_release() {
    for release in [Release::V4_0, Release::V4_1, Release::V5_0] {
        let version = &release.to_string()["Cassandra ".len()..];
        let lines = CASSANDRAS.lines().filter_map(|line| line.strip_prefix(version));
        let theirs: Vec<&str> = lines.map(str::trim).collect();
        let mut ours = Vec::new();
        for keyspace in system_keyspaces(release) {
            let stored = keyspace
                .tables
                .values()
                .filter(|table| table.kind != TableKind::Virtual);
            ours.extend(stored.flat_map(|table| columns_of(table)));
        }
        ours.sort();
        let missing: Vec<_> = theirs
            .iter()
            .filter(|line| !ours.iter().any(|own| own == *line))
            .collect();
        let added: Vec<_> = ours
            .iter()
            .filter(|own| !theirs.contains(&own.as_str()))
            .collect();
        assert!(
            missing.is_empty() && added.is_empty(),
            "{release} has {missing:#?}, and not {added:#?}"
        );
    }
}

fn columns_of(table: &TableSchema) -> Vec<String> {
    let (mut partition_key, mut clustering) = (0.., 0..);
    let line = |column: &crate::Column| {
        let (kind, position) = match column.kind {
            ColumnKind::PartitionKey => ("partition_key", partition_key.next().unwrap_or(-1)),
            ColumnKind::Clustering => ("clustering", clustering.next().unwrap_or(-1)),
            ColumnKind::Static => ("static", -1),
            ColumnKind::Regular => ("regular", -1),
        };
        let (keyspace, name) = (&table.keyspace, &table.name);
        format!(
            "{keyspace} {name} {} {kind} {position} {}",
            column.name, column.ty
        )
    };
    table.select_order().into_iter().map(line).collect()
}
