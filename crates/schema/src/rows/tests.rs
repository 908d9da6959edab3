use std::collections::BTreeMap;

use ilion_types::CqlType;

use super::*;
use crate::{
    ClusteringOrder, CreateAggregate, CreateFunction, CreateIndex, CreateTable, CreateView, Error, IndexPart,
    IndexTarget, NewColumn, Properties, Release, Schema, SchemaChange, TableAlteration,
};

fn names(list: &[&str]) -> Vec<String> {
    list.iter().map(|name| (*name).to_owned()).collect()
}

fn then(schema: &Schema, change: SchemaChange) -> Schema {
    let applied = schema
        .apply(&change, 1_700_000_000_123_456)
        .unwrap_or_else(|refused| panic!("{refused}"));
    let from_all_of_it = applied.schema.clone().sealed(applied.schema.epoch);
    assert_eq!(applied.schema, from_all_of_it, "the version after {change:?}");
    assert_eq!(applied.changes, row_changes(schema, &applied.schema));
    applied.schema
}

fn column(schema: &Schema, name: &str, ty: &str) -> NewColumn {
    let ty = schema.keyspace("ks").unwrap().parse_type(ty).unwrap();
    NewColumn {
        name: name.to_owned(),
        ty,
        is_static: name.starts_with("s_"),
        mask: None,
    }
}

fn row_changes(old: &Schema, new: &Schema) -> Vec<RowChange> {
    ChangedRows::of(&crate::diff(old, new), old, new).into_changes()
}

/// The schema of the rows, or the first error in them.
fn decoded(rows: impl IntoIterator<Item = SchemaRow>) -> Result<Schema, Error> {
    let LoadedSchema {
        schema, mut faults, ..
    } = Schema::from_rows_in_part(Release::V5_0, rows);
    match faults.is_empty() {
        true => Ok(schema),
        false => Err(faults.remove(0).error),
    }
}

/// A schema with one object of each kind.
fn populated() -> Schema {
    let replication = BTreeMap::from([
        ("class".to_owned(), "SimpleStrategy".to_owned()),
        ("replication_factor".to_owned(), "1".to_owned()),
    ]);
    let properties = Properties([("replication".to_owned(), crate::PropertyValue::Map(replication))].into());
    let create = SchemaChange::CreateKeyspace {
        name: "ks".into(),
        properties,
        if_not_exists: false,
    };
    let mut schema = then(&Schema::with_system(), create);
    // The type that is used has the later name.
    for (name, field) in [("zip", "int"), ("Address", "frozen<zip>")] {
        let ty = schema.keyspace("ks").unwrap().parse_type(field).unwrap();
        let fields = vec![("street".to_owned(), CqlType::Text), ("rest".to_owned(), ty)];
        let create = SchemaChange::CreateType {
            keyspace: "ks".into(),
            name: name.into(),
            fields,
            if_not_exists: false,
        };
        schema = then(&schema, create);
    }
    let columns = [
        ("k", "uuid"),
        ("j", "frozen<set<text>>"),
        ("c", "timestamp"),
        ("s_one", "int"),
        ("home", "\"Address\""),
        ("m", "map<text, frozen<list<int>>>"),
        ("v", "vector<float, 3>"),
        ("gone", "frozen<\"Address\">"),
    ];
    let create = CreateTable {
        keyspace: "ks".into(),
        name: "t".into(),
        columns: columns.map(|(name, ty)| column(&schema, name, ty)).into(),
        partition_key: names(&["k", "j"]),
        clustering: names(&["c"]),
        clustering_order: vec![("c".into(), ClusteringOrder::Desc)],
        properties: Properties(
            [
                ("cdc".to_owned(), "true".into()),
                ("compression".to_owned(), [("enabled", "false")].into()),
                (
                    "caching".to_owned(),
                    [("keys", "NONE"), ("rows_per_partition", "7")].into(),
                ),
                (
                    "compaction".to_owned(),
                    [("class", "UnifiedCompactionStrategy")].into(),
                ),
            ]
            .into(),
        ),
        ..CreateTable::default()
    };
    schema = then(&schema, SchemaChange::CreateTable(Box::new(create)));
    schema = then(
        &schema,
        SchemaChange::AlterTable {
            keyspace: "ks".into(),
            table: "t".into(),
            if_exists: false,
            alteration: TableAlteration::DropColumns {
                columns: names(&["gone"]),
                if_exists: false,
                timestamp_micros: None,
            },
        },
    );
    let create = CreateIndex {
        keyspace: "ks".into(),
        table: "t".into(),
        targets: vec![IndexTarget {
            column: "m".into(),
            part: IndexPart::Keys,
        }],
        ..CreateIndex::default()
    };
    schema = then(&schema, SchemaChange::CreateIndex(Box::new(create)));
    let create = CreateView {
        keyspace: "ks".into(),
        name: "by_c".into(),
        base_keyspace: "ks".into(),
        base: "t".into(),
        selected: names(&["c", "k", "j", "v"]),
        where_clause: "c IS NOT NULL AND k IS NOT NULL AND j IS NOT NULL".into(),
        not_null: names(&["c", "k", "j"]),
        partition_key: names(&["c"]),
        clustering: names(&["k", "j"]),
        ..CreateView::default()
    };
    schema = then(&schema, SchemaChange::CreateView(Box::new(create)));
    functions(&schema)
}

fn functions(schema: &Schema) -> Schema {
    let create = CreateFunction {
        keyspace: "ks".into(),
        name: "plus".into(),
        arguments: vec![("a".into(), CqlType::Int), ("b".into(), CqlType::Int)],
        return_type: CqlType::Int,
        called_on_null_input: true,
        language: "java".into(),
        body: "return a + b;".into(),
        or_replace: false,
        if_not_exists: false,
    };
    let schema = then(schema, SchemaChange::CreateFunction(Box::new(create)));
    let create = CreateAggregate {
        keyspace: "ks".into(),
        name: "total".into(),
        argument_types: vec![CqlType::Int],
        state_func: "plus".into(),
        state_type: CqlType::Int,
        final_func: None,
        initcond: Some("0".into()),
        or_replace: false,
        if_not_exists: false,
    };
    let schema = then(&schema, SchemaChange::CreateAggregate(Box::new(create)));
    let create = SchemaChange::CreateTrigger {
        keyspace: "ks".into(),
        table: "t".into(),
        name: "tr".into(),
        class: "org.Example".into(),
        if_not_exists: false,
    };
    then(&schema, create)
}

/// Applies a change's writes to stored rows.
fn applied(changes: Vec<RowChange>, stored: &mut BTreeMap<(&'static str, String, Vec<Bytes>), SchemaRow>) {
    for change in changes {
        match change {
            RowChange::Put(row) => {
                stored.insert((row.table, row.keyspace.clone(), row.clustering.clone()), row);
            }
            RowChange::Delete {
                table,
                keyspace,
                clustering,
            } => {
                stored.remove(&(table, keyspace, clustering));
            }
            RowChange::DeletePartition { table, keyspace } => {
                stored.retain(|key, _| (key.0, &key.1) != (table, &keyspace));
            }
        }
    }
}

#[test]
fn every_kind_of_object_reads_back_as_it_was() {
    let schema = populated();
    let back = decoded(schema.to_rows()).unwrap();
    let (before, after) = (schema.keyspace("ks").unwrap(), back.keyspace("ks").unwrap());
    assert_eq!(before.types, after.types);
    assert_eq!(before.indexes, after.indexes);
    assert_eq!(before.views, after.views);
    assert_eq!(before.functions, after.functions);
    assert_eq!(before.aggregates, after.aggregates);
    assert_eq!(before.triggers, after.triggers);
    assert_eq!(before.tables["by_c"], after.tables["by_c"]);
    let (before, after) = (&before.tables["t"], &after.tables["t"]);
    // Column ids belong to the process: after a restart, a dropped column's id is free again.
    let by_value = |table: &crate::TableSchema| {
        let columns = table.select_order().into_iter();
        columns
            .map(|c| (c.name.clone(), c.kind, c.position, c.ty.clone(), c.order))
            .collect::<Vec<_>>()
    };
    assert_eq!(by_value(before), by_value(after));
    assert_eq!((&before.options, &before.flags), (&after.options, &after.flags));
    assert_eq!(before.dropped, after.dropped);
    assert_eq!(schema.version, back.version);
}

#[test]
fn system_keyspaces_read_back_as_they_were() {
    let schema = Schema::with_system();
    let back = decoded(schema.to_rows()).unwrap();
    assert_eq!(schema, back);
    assert_eq!(decoded([]).unwrap(), schema);
}

#[test]
fn changes_of_rows_lead_from_schema_to_schema() {
    let empty = Schema::default();
    let system = Schema::with_system();
    let full = populated();
    let alter = SchemaChange::AlterTable {
        keyspace: "ks".into(),
        table: "t".into(),
        if_exists: false,
        alteration: TableAlteration::Options([("comment", "x")].into_iter().collect()),
    };
    let altered = then(&full, alter);
    let dropped = then(
        &altered,
        SchemaChange::DropKeyspace {
            name: "ks".into(),
            if_exists: false,
        },
    );
    let mut stored = BTreeMap::new();
    for (old, new) in [
        (&empty, &system),
        (&system, &full),
        (&full, &altered),
        (&altered, &dropped),
    ] {
        applied(row_changes(old, new), &mut stored);
        let back = decoded(stored.values().cloned()).unwrap();
        assert_eq!(back.version, new.version);
    }
    assert_eq!(dropped.version, system.version);
    assert_eq!(row_changes(&full, &altered).len(), 1);
}

#[test]
fn damaged_rows_are_refused_by_name() {
    let whole = populated().to_rows();
    let mut rows = whole.clone();
    for row in &mut rows {
        if row.table == "columns" && row.keyspace == "ks" {
            row.cells.retain(|(name, _)| *name != "type");
        }
    }
    let refused = decoded(rows).unwrap_err();
    assert!(
        matches!(refused, Error::Corrupt { table: "columns", .. }),
        "{refused}"
    );
    for cut in 0..200 {
        let mut rows = whole.clone();
        let count = rows.len();
        let row = &mut rows[(cut * 7) % count];
        for (_, value) in row.cells.iter_mut().filter(|(_, value)| value.is_some()) {
            let bytes = value.take().unwrap_or_default();
            *value = Some(bytes.slice(..bytes.len() / 2));
        }
        // Any result is fine, but no panic.
        let _ = decoded(rows);
    }
}

#[test]
fn rows_of_own_keyspaces_that_are_not_as_they_should_be_are_missing() {
    let missing = |rows: &[SchemaRow]| {
        let loaded = Schema::from_rows_in_part(Release::V5_0, rows.iter().cloned());
        let names = loaded.missing.iter().map(|row| (row.table, row.keyspace.clone()));
        (names.collect::<Vec<_>>(), loaded.schema.version)
    };
    let fresh = Schema::with_system();
    let mut rows = fresh.to_rows();
    let all = missing(&[]);
    assert_eq!((all.0.len(), all.1), (rows.len(), fresh.version));
    // The order of rows means nothing, and a null cell is as good as none.
    rows.reverse();
    for row in &mut rows {
        row.cells.retain(|(_, value)| value.is_some());
    }
    assert_eq!(missing(&rows), (vec![], fresh.version));
    let of_local = rows
        .iter()
        .position(|row| row.keyspace == "system" && row.table == "columns");
    rows[of_local.unwrap()].cells[0].1 = Some(bytes::Bytes::from_static(b"another"));
    assert_eq!(missing(&rows).0, [("columns", "system".to_owned())]);
    rows.retain(|row| (row.table, row.keyspace.as_str()) != ("keyspaces", "system_auth"));
    let with_auth = missing(&rows);
    assert!(with_auth.0.contains(&("keyspaces", "system_auth".to_owned())));
    assert_eq!(with_auth.1, fresh.version);
}

#[test]
fn the_replication_of_an_own_keyspace_stays_as_users_changed_it() {
    let mut rows = Schema::with_system().to_rows();
    let options = BTreeMap::from([
        ("class".to_owned(), "NetworkTopologyStrategy".to_owned()),
        ("dc1".to_owned(), "3".to_owned()),
    ]);
    let of_auth = |row: &&mut SchemaRow| (row.table, row.keyspace.as_str()) == ("keyspaces", "system_auth");
    let changed = rows.iter_mut().find(of_auth).unwrap();
    for (name, value) in &mut changed.cells {
        if *name == "replication" {
            *value = values::text_map(&options);
        }
    }
    let loaded = Schema::from_rows_in_part(Release::V5_0, rows);
    assert_eq!(
        loaded.schema.keyspace("system_auth").unwrap().replication.options,
        options
    );
    assert_eq!(loaded.missing, []);
}
