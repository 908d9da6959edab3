//! Tables built in code are described as a real Cassandra 5.0.9 described them (fixtures outside of the project).

use std::path::PathBuf;
use std::sync::Arc;

use ilion_types::CqlType;

use super::*;
use crate::{
    ClusteringOrder, ColumnKind, CreateTable, DroppedColumn, FunctionSchema, IndexKind, IndexSchema,
    Keyspace, NewColumn, Properties, PropertyValue, Replication, Schema, SchemaChange, TableBuilder, TableId,
    TableSchema,
};

/// Cassandra's answer; `None` without the fixtures.
fn fixture(case: &str) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/cassandra-5.0");
    let text = std::fs::read_to_string(root.join(case).join("describe.cql")).ok();
    if text.is_none() {
        println!("skipped: no fixture {case}");
    }
    text.map(|text| text.trim_end().to_owned())
}

fn id_in(text: &str) -> TableId {
    let (_, rest) = text.split_once("ID = ").unwrap();
    TableId(rest.get(..36).unwrap().parse().unwrap())
}

fn keyspace() -> Keyspace {
    let mut schema = Schema::default();
    let fx = Keyspace::new("fx", Replication::simple(), true);
    schema.keyspaces.insert("fx".into(), Arc::new(fx));
    let types = [
        (
            "address",
            vec![("street", "text"), ("zip", "int"), ("tags", "frozen<set<text>>")],
        ),
        (
            "person",
            vec![("name", "text"), ("home", "frozen<address>"), ("born", "date")],
        ),
    ];
    for (name, fields) in types {
        let fx = schema.keyspace("fx").unwrap();
        let fields = fields
            .into_iter()
            .map(|(name, ty)| (name.to_owned(), fx.parse_type(ty).unwrap()))
            .collect();
        let change = SchemaChange::CreateType {
            keyspace: "fx".into(),
            name: name.into(),
            fields,
            if_not_exists: false,
        };
        schema = schema.apply(&change, 0).unwrap().schema;
    }
    Keyspace::clone(schema.keyspace("fx").unwrap())
}

/// Creates a table through an ordinary change, from `name type` columns and a key `a b | c d-`.
fn create(
    case: &str,
    id: TableId,
    columns: &str,
    key: &str,
    with: &[(&str, PropertyValue)],
) -> Arc<TableSchema> {
    let keyspace = keyspace();
    let (partition, clustering) = key.split_once('|').unwrap_or((key, ""));
    let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let column = |text: &str| {
        let (name, ty) = text.trim().split_once(' ').unwrap();
        let (ty, is_static) = match ty.strip_suffix(" static") {
            Some(ty) => (ty, true),
            None => (ty, false),
        };
        NewColumn {
            name: name.to_owned(),
            ty: keyspace.parse_type(ty).unwrap(),
            is_static,
            mask: None,
        }
    };
    let order = |name: String| match name.strip_suffix('-') {
        Some(name) => (name.to_owned(), ClusteringOrder::Desc),
        None => (name, ClusteringOrder::Asc),
    };
    let clustering_order: Vec<_> = words(clustering).into_iter().map(order).collect();
    let change = CreateTable {
        keyspace: "fx".into(),
        name: case.into(),
        columns: columns.split(';').map(column).collect(),
        partition_key: words(partition),
        clustering: clustering_order.iter().map(|(name, _)| name.clone()).collect(),
        clustering_order,
        properties: Properties(
            with.iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
        ),
        id: Some(id),
        ..CreateTable::default()
    };
    let mut schema = Schema::default();
    schema.keyspaces.insert("fx".into(), Arc::new(keyspace));
    let schema = schema
        .apply(&SchemaChange::CreateTable(Box::new(change)), 0)
        .unwrap()
        .schema;
    schema.table("fx", case).unwrap().clone()
}

fn check(case: &str, columns: &str, key: &str, with: &[(&str, PropertyValue)]) {
    for format in ["nb", "oa", "da"] {
        let Some(expected) = fixture(&format!("{case}-{format}")) else {
            continue;
        };
        let table = create(case, id_in(&expected), columns, key, with);
        assert_eq!(
            describe_table(&table, Internals::Shown),
            expected,
            "{case}-{format}"
        );
    }
}

#[test]
fn simple_tables_are_described_as_cassandra_does() {
    check("simple_kv", "k text; v text", "k", &[]);
    check("small_partitions", "a int; b text; v int", "a b", &[]);
    check(
        "static_columns",
        "pk text; ck int; s1 text static; s2 int static; s3 map<text, int> static; v text",
        "pk | ck",
        &[],
    );
    check(
        "wide_mixed",
        "pk int; c1 int; c2 text; c3 timestamp; v int; w text; x boolean",
        "pk | c1 c2- c3-",
        &[],
    );
    check(
        "counters_overlap",
        "k text; c int; s counter static; a counter; b counter",
        "k | c",
        &[],
    );
}

#[test]
fn every_kind_of_type_is_described_as_cassandra_does() {
    check(
        "collections_udt",
        "id int; l list<int>; s set<text>; m map<text, bigint>; fl frozen<list<int>>; fs frozen<set<int>>; \
         fm frozen<map<int, text>>; a address; fa frozen<address>; p frozen<person>; t tuple<int, text, double>; \
         vec vector<float, 3>; deep map<text, frozen<list<tuple<int, text>>>>; la list<frozen<address>>; \
         vt vector<text, 2>",
        "id",
        &[],
    );
    check(
        "all_scalars",
        "id int; c_ascii ascii; c_bigint bigint; c_blob blob; c_boolean boolean; c_date date; \
         c_decimal decimal; c_double double; c_duration duration; c_float float; c_inet inet; c_int int; \
         c_smallint smallint; c_text text; c_time time; c_timestamp timestamp; c_timeuuid timeuuid; \
         c_tinyint tinyint; c_uuid uuid; c_varchar varchar; c_varint varint",
        "id",
        &[],
    );
}

#[test]
fn options_are_described_as_cassandra_does() {
    let columns = "k int; c int; b blob; v text";
    let check = |case, with: &[(&str, PropertyValue)]| check(case, columns, "k | c", with);
    check("comp_none", &[("compression", [("enabled", "false")].into())]);
    check(
        "comp_zstd",
        &[
            ("bloom_filter_fp_chance", "0.1".into()),
            (
                "compression",
                [
                    ("class", "ZstdCompressor"),
                    ("chunk_length_in_kb", "4"),
                    ("compression_level", "5"),
                ]
                .into(),
            ),
        ],
    );
    check(
        "comp_snappy",
        &[
            ("bloom_filter_fp_chance", "1".into()),
            (
                "compression",
                [("class", "SnappyCompressor"), ("chunk_length_in_kb", "8")].into(),
            ),
        ],
    );
    check(
        "comp_lz4_ratio",
        &[(
            "compression",
            [
                ("class", "LZ4Compressor"),
                ("chunk_length_in_kb", "4"),
                ("min_compress_ratio", "2.5"),
            ]
            .into(),
        )],
    );
}

#[test]
fn dropped_columns_are_described_as_cassandra_does() {
    for (format, times) in [
        ("nb", None),
        ("oa", Some([1_795_190_381_504_000, 1_795_190_381_919_000])),
        ("da", None),
    ] {
        let Some(expected) = fixture(&format!("dropped_column-{format}")) else {
            continue;
        };
        let times = times.unwrap_or_else(|| {
            let mut parts = expected
                .split("USING TIMESTAMP ")
                .skip(1)
                .map(|rest| rest.split_once(';').unwrap().0);
            std::array::from_fn(|_| parts.next().unwrap().parse().unwrap())
        });
        let table = create(
            "dropped_column",
            id_in(&expected),
            "k int; c int; v text; fresh int",
            "k | c",
            &[],
        );
        let mut builder = table.to_builder();
        let map = keyspace().parse_type("map<int, int>").unwrap();
        for ((name, ty), dropped_micros) in [("gone", CqlType::Text), ("gm", map)].into_iter().zip(times) {
            let dropped = DroppedColumn {
                name: name.into(),
                kind: ColumnKind::Regular,
                ty,
                dropped_micros,
            };
            builder.dropped.insert(name.into(), dropped);
        }
        let table = builder.build();
        assert_eq!(describe_table(&table, Internals::Shown), expected, "{format}");
        let hidden = describe_table(&table, Internals::Hidden);
        assert!(!hidden.contains("gone") && !hidden.contains("ID ="), "{hidden}");
        let again = table.to_builder().regular("gone", CqlType::Text).build();
        let again = describe_table(&again, Internals::Shown);
        assert!(
            again.contains(";\nALTER TABLE fx.dropped_column ADD gone text;\n"),
            "{again}"
        );
    }
}

#[test]
fn compact_tables_are_described_within_a_comment() {
    let Some(expected) = fixture("compact_storage-nb") else {
        return;
    };
    let mut builder = TableBuilder::new("fx", "compact_storage", id_in(&expected))
        .partition_key("k", CqlType::Text)
        .clustering("c", CqlType::Text, ClusteringOrder::Asc)
        .regular("v", CqlType::Blob);
    builder.flags = vec!["dense".into()];
    assert_eq!(describe_table(&builder.build(), Internals::Shown), expected);
}

#[test]
fn other_objects_are_described_in_cassandras_layout() {
    let mut keyspace = keyspace();
    keyspace.functions.push(Arc::new(FunctionSchema {
        name: "Plus".into(),
        arguments: vec![
            ("a".into(), CqlType::Int),
            ("t".into(), keyspace.parse_type("tuple<int, text>").unwrap()),
        ],
        body: "return a;".into(),
        called_on_null_input: false,
        language: "java".into(),
        return_type: CqlType::Int,
    }));
    let index = IndexSchema {
        name: "by_v".into(),
        table: "t".into(),
        kind: IndexKind::Custom,
        options: [
            ("class_name", "sai"),
            ("target", "v"),
            ("similarity_function", "cosine"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into(),
    };
    keyspace.indexes.insert("by_v".into(), Arc::new(index));
    let texts: Vec<String> = describe_keyspace_elements(&keyspace, Internals::Hidden)
        .into_iter()
        .map(|element| {
            format!(
                "{} {}\n{}",
                element.kind.name(),
                element.name,
                element.create_statement
            )
        })
        .collect();
    assert_eq!(
        texts.join("\n"),
        "keyspace fx\n\
         CREATE KEYSPACE fx WITH replication = {'class': 'SimpleStrategy', 'replication_factor': '1'}  AND durable_writes = true;\n\
         type address\n\
         CREATE TYPE fx.address (\n    street text,\n    zip int,\n    tags frozen<set<text>>\n);\n\
         type person\n\
         CREATE TYPE fx.person (\n    name text,\n    home frozen<address>,\n    born date\n);\n\
         function Plus(int, frozen<tuple<int, text>>)\n\
         CREATE FUNCTION fx.\"Plus\"(a int, t tuple<int, text>)\n    RETURNS NULL ON NULL INPUT\n    RETURNS int\n    LANGUAGE java\n    AS $$return a;$$;"
    );
    assert_eq!(
        describe_index("fx", &keyspace.indexes["by_v"]),
        "CREATE CUSTOM INDEX by_v ON fx.t (v) USING 'sai' WITH OPTIONS = {'similarity_function': 'cosine'};"
    );
}

#[test]
fn system_tables_are_described_too() {
    let schema = Schema::with_system();
    for keyspace in schema.keyspaces.values() {
        for element in describe_keyspace_elements(keyspace, Internals::Shown) {
            assert!(
                element.create_statement.contains("CREATE ") || element.create_statement.contains("VIRTUAL ")
            );
        }
    }
    let clients = describe_table(
        schema.table("system_views", "clients").unwrap(),
        Internals::Hidden,
    );
    assert!(
        clients.ends_with("AND comment = 'currently connected clients';\n*/"),
        "{clients}"
    );
}
