use std::sync::Arc;

use proptest::prelude::*;

use crate::{CqlType, UserType, composite_class, partition_key_types};

fn address() -> Arc<UserType> {
    Arc::new(UserType {
        keyspace: "fmt".into(),
        name: "addr".into(),
        fields: vec![
            ("street".into(), CqlType::Text),
            ("zip".into(), CqlType::Int),
            (
                "tags".into(),
                CqlType::Set {
                    element: Arc::new(CqlType::Text),
                    frozen: true,
                },
            ),
        ],
    })
}

fn parse(text: &str) -> CqlType {
    CqlType::parse_cql(text, "fmt", &|name| (name == "addr").then(address)).unwrap()
}

/// CQL string and class string (`P.` stands for the package).
const BOTH: [(&str, &str); 13] = [
    ("int", "P.Int32Type"),
    ("list<int>", "P.ListType(P.Int32Type)"),
    ("frozen<list<int>>", "P.FrozenType(P.ListType(P.Int32Type))"),
    (
        "frozen<list<frozen<list<int>>>>",
        "P.FrozenType(P.ListType(P.ListType(P.Int32Type)))",
    ),
    (
        "list<frozen<list<int>>>",
        "P.ListType(P.FrozenType(P.ListType(P.Int32Type)))",
    ),
    (
        "map<text, frozen<list<frozen<tuple<int, text>>>>>",
        "P.MapType(P.UTF8Type,P.FrozenType(P.ListType(P.TupleType(P.Int32Type,P.UTF8Type))))",
    ),
    (
        "frozen<tuple<int, frozen<set<text>>>>",
        "P.TupleType(P.Int32Type,P.SetType(P.UTF8Type))",
    ),
    ("vector<float, 3>", "P.VectorType(P.FloatType , 3)"),
    (
        "frozen<addr>",
        "P.FrozenType(P.UserType(fmt,61646472,737472656574:P.UTF8Type,7a6970:P.Int32Type,74616773:P.SetType(P.UTF8Type)))",
    ),
    (
        "addr",
        "P.UserType(fmt,61646472,737472656574:P.UTF8Type,7a6970:P.Int32Type,74616773:P.FrozenType(P.SetType(P.UTF8Type)))",
    ),
    ("'com.example.Odd(a,b)'", "com.example.Odd(a,b)"),
    (
        "'org.apache.cassandra.db.marshal.DynamicCompositeType(a=>org.apache.cassandra.db.marshal.BytesType)'",
        "P.DynamicCompositeType(a=>P.BytesType)",
    ),
    ("counter", "P.CounterColumnType"),
];

#[test]
fn both_names_of_a_type_round_trip() {
    for (cql, class) in BOTH {
        let class = class.replace("P.", "org.apache.cassandra.db.marshal.");
        let ty = parse(cql);
        assert_eq!(ty.to_string(), cql);
        assert_eq!(ty.to_class(), class);
        assert_eq!(CqlType::from_class(&class), Ok((ty.clone(), false)), "{class}");
        let reversed = ty.to_clustering_class(true);
        assert_eq!(CqlType::from_class(&reversed), Ok((ty, true)));
    }
}

#[test]
fn short_names_and_spaces_are_read() {
    assert_eq!(
        CqlType::from_class("MapType( UTF8Type ,FrozenType(VectorType(Int32Type,2)) )")
            .unwrap()
            .0
            .to_string(),
        "map<text, vector<int, 2>>"
    );
    assert_eq!(
        parse(" FROZEN < Map<VARCHAR,fmt.addr> >").to_string(),
        "frozen<map<text, frozen<addr>>>"
    );
}

#[test]
fn what_does_not_parse_is_refused() {
    let deep = "ListType(".repeat(100_000);
    for class in [
        "",
        "ListType",
        "ListType(",
        "ListType()",
        "MapType(Int32Type)",
        "Int32Type)",
        "Foo(",
        &deep,
        "VectorType(Int32Type,0)",
        "UserType(ks,zz)",
        "UserType(ks,ff)",
        "ReversedType",
    ] {
        assert!(CqlType::from_class(class).is_err(), "{class:.20}");
    }
    let deep = "list<".repeat(100_000);
    for text in [
        "",
        "lst<int>",
        "list<int",
        "list<int>>",
        "map<int>",
        "nope",
        "other.addr",
        "vector<int, 0>",
        "tuple<>",
        "\"addr",
        "int.x",
        &deep,
    ] {
        assert!(
            CqlType::parse_cql(text, "fmt", &|name| (name == "addr").then(address)).is_err(),
            "{text:.20}"
        );
    }
}

#[test]
fn a_composite_key_names_its_components() {
    let class = composite_class([&CqlType::Int, &CqlType::Text]);
    assert_eq!(
        class,
        "org.apache.cassandra.db.marshal.CompositeType(org.apache.cassandra.db.marshal.Int32Type,\
         org.apache.cassandra.db.marshal.UTF8Type)"
    );
    assert_eq!(partition_key_types(&class), Ok(vec![CqlType::Int, CqlType::Text]));
    assert_eq!(partition_key_types("Int32Type"), Ok(vec![CqlType::Int]));
}

#[test]
fn names_are_quoted_where_cql_needs_it() {
    for (name, quoted) in [
        ("abc_1", "abc_1"),
        ("Abc", "\"Abc\""),
        ("1a", "\"1a\""),
        ("select", "\"select\""),
        ("a\"b", "\"a\"\"b\""),
        ("", "\"\""),
        ("key", "key"),
    ] {
        assert_eq!(crate::quote_name(name), quoted);
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_type_parsers_panic(
        parts in prop::collection::vec(prop::sample::select(vec![
            "(", ")", ",", ":", " ", "<", ">", "'", "\"", ".", "\u{fc}", "3", "61", "int", "list", "frozen", "addr",
            "vector", "Int32Type", "ListType", "UserType", "ReversedType", "VectorType", "Odd", "=>",
        ]), 0..12),
    ) {
        let text = parts.concat();
        if let Ok((ty, reversed)) = CqlType::from_class(&text) {
            let class = ty.to_clustering_class(reversed);
            prop_assert_eq!(CqlType::from_class(&class), Ok((ty, reversed)), "{}", class);
        }
        let find = |name: &str| (name == "addr").then(address);
        if let Ok(ty) = CqlType::parse_cql(&text, "fmt", &find) {
            let printed = ty.to_string();
            prop_assert_eq!(CqlType::parse_cql(&printed, "fmt", &find), Ok(ty), "{}", printed);
        }
    }
}
