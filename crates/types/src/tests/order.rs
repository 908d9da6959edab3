use std::cmp::Ordering;

use proptest::prelude::*;

use crate::{CqlType, Decimal, encode_list, encode_tuple, encode_varint};

fn scalars() -> Vec<CqlType> {
    [
        "ascii",
        "bigint",
        "blob",
        "boolean",
        "counter",
        "date",
        "decimal",
        "double",
        "duration",
        "empty",
        "float",
        "inet",
        "int",
        "smallint",
        "text",
        "time",
        "timestamp",
        "timeuuid",
        "tinyint",
        "uuid",
        "varint",
        "list<int>",
        "frozen<map<int, text>>",
        "tuple<int, text>",
        "vector<text, 2>",
        "vector<int, 2>",
        "'org.apache.cassandra.db.marshal.LexicalUUIDType'",
    ]
    .iter()
    .map(|name| CqlType::parse_cql(name, "ks", &|_| None).unwrap())
    .collect()
}

fn hex(text: &str) -> Vec<u8> {
    crate::hex::parse(text).unwrap()
}

/// Ascending values of a type, in hex; `=` marks one equal to its predecessor.
const ASCENDING: [(&str, &str); 14] = [
    ("int", " 80000000 ffffffff 00000000 7fffffff"),
    ("tinyint", "80 ff 00 7f"),
    ("boolean", " 00 01 =ff"),
    (
        "varint",
        " 80000000000000000000 8000 ff7f =ffff7f ff 00 =0000 01 7f 0080 00800000000000000000",
    ),
    (
        "decimal",
        "0000000109 0000000001 =000000010a =0000000264 fffffff601 800000000001",
    ),
    (
        "float",
        " ff800000 bf800000 80000000 00000000 00000001 7f800000 7fc00000 =ffc00001",
    ),
    (
        "double",
        " fff0000000000000 8000000000000000 0000000000000000 7ff0000000000000 7ff8000000000000",
    ),
    (
        "uuid",
        " 5fc762a0683211ee840f16802ed7ebc5 5fc762a1683211ee840f16802ed7ebc5 00000000683311ee840f16802ed7ebc5 ee0292b2af084a6d8eaf1fc6f53d20f5",
    ),
    (
        "timeuuid",
        " ffffffff683211ee7f0f16802ed7ebc5 00000000683311eeff0f16802ed7ebc5 00000000683311ee000f16802ed7ebc5 00000001683311ee000f16802ed7ebc5",
    ),
    ("text", " 61 6161 62 ff"),
    (
        "list<int>",
        " 00000000 0000000100000004ffffffff 000000010000000400000001 00000002000000040000000100000004ffffffff 000000010000000400000002",
    ),
    (
        "tuple<int, int>",
        " ffffffff =ffffffffffffffff ffffffff0000000400000001 0000000400000000 =0000000400000000ffffffff 000000040000000000000004ffffffff",
    ),
    (
        "vector<int, 2>",
        "ffffffff00000000 0000000000000000 0000000000000001",
    ),
    (
        "'LexicalUUIDType'",
        "80000000000000000000000000000000 00000000000000008000000000000000 00000000000000000000000000000000",
    ),
];

#[test]
fn values_sort_as_in_cassandra() {
    for (name, values) in ASCENDING {
        let ty = CqlType::parse_cql(name, "ks", &|_| None).unwrap();
        let values: Vec<&str> = values.split(' ').collect();
        for pair in values.windows(2) {
            let wanted = if pair[1].starts_with('=') {
                Ordering::Equal
            } else {
                Ordering::Less
            };
            let (a, b) = (
                hex(pair[0].trim_start_matches('=')),
                hex(pair[1].trim_start_matches('=')),
            );
            assert_eq!(ty.compare(&a, &b), wanted, "{name} {pair:?}");
            assert_eq!(ty.compare(&b, &a), wanted.reverse(), "{name} {pair:?}");
        }
    }
}

fn decimal(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    text.parse::<Decimal>().unwrap().encode(&mut out);
    out
}

#[test]
fn decimals_sort_by_number_whatever_their_scale() {
    let ascending = [
        "-1e2000000000",
        "-10",
        "-9.99999",
        "-1e-2000000000",
        "0",
        "1e-2000000000",
        "0.001",
        "0.01",
        "1",
        "1.00001",
        "9",
        "10",
        "99",
        "1e2",
        "101",
        "1e2000000000",
    ];
    for (low, a) in ascending.iter().enumerate() {
        for (high, b) in ascending.iter().enumerate() {
            assert_eq!(
                CqlType::Decimal.compare(&decimal(a), &decimal(b)),
                low.cmp(&high),
                "{a} {b}"
            );
        }
    }
    for (a, b) in [
        ("1.0", "1.00"),
        ("1e2", "100"),
        ("0", "0e100"),
        ("-1.5e3", "-1500.0"),
    ] {
        assert_eq!(
            CqlType::Decimal.compare(&decimal(a), &decimal(b)),
            Ordering::Equal,
            "{a} {b}"
        );
    }
}

proptest! {
    #[test]
    fn compare_is_a_total_order_on_any_bytes(
        a in prop::collection::vec(prop::sample::select(vec![0u8, 1, 4, 0x7F, 0x80, 0xFF]), 0..20),
        b in prop::collection::vec(prop::sample::select(vec![0u8, 1, 4, 0x7F, 0x80, 0xFF]), 0..20),
        c in prop::collection::vec(prop::sample::select(vec![0u8, 1, 4, 0x7F, 0x80, 0xFF]), 0..20),
    ) {
        for ty in scalars() {
            prop_assert_eq!(ty.compare(&a, &a), Ordering::Equal);
            prop_assert_eq!(ty.compare(&a, &b), ty.compare(&b, &a).reverse(), "{}", ty);
            if ty.compare(&a, &b).is_le() && ty.compare(&b, &c).is_le() {
                prop_assert!(ty.compare(&a, &c).is_le(), "{}", ty);
            }
        }
    }

    #[test]
    fn compare_agrees_with_numbers(a in any::<i64>(), b in any::<i64>(), shift in 0u32..60) {
        let (a, b) = (a >> shift, b >> shift);
        let varint = |value: i64| encode_varint(&value.into());
        prop_assert_eq!(CqlType::Varint.compare(&varint(a), &varint(b)), a.cmp(&b));
        prop_assert_eq!(CqlType::BigInt.compare(&a.to_be_bytes(), &b.to_be_bytes()), a.cmp(&b));
        let list = |value: i64| encode_list([&value.to_be_bytes()[..]]);
        let lists = CqlType::parse_cql("list<bigint>", "ks", &|_| None).unwrap();
        prop_assert_eq!(lists.compare(&list(a), &list(b)), a.cmp(&b));
        let tuple = |value: i64| encode_tuple([None, Some(&value.to_be_bytes()[..])]);
        let tuples = CqlType::parse_cql("tuple<int, bigint>", "ks", &|_| None).unwrap();
        prop_assert_eq!(tuples.compare(&tuple(a), &tuple(b)), a.cmp(&b));
    }

    #[test]
    fn compare_agrees_with_floats(a in any::<f64>(), b in any::<f64>()) {
        if let Some(order) = a.partial_cmp(&b).filter(|order| order.is_ne()) {
            prop_assert_eq!(CqlType::Double.compare(&a.to_be_bytes(), &b.to_be_bytes()), order);
        }
        let (a, b) = (a as f32, b as f32);
        if let Some(order) = a.partial_cmp(&b).filter(|order| order.is_ne()) {
            prop_assert_eq!(CqlType::Float.compare(&a.to_be_bytes(), &b.to_be_bytes()), order);
        }
    }
}
