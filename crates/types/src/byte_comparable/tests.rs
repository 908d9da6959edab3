use proptest::prelude::*;

use super::*;
use crate::{Partitioner, Value, hex};

fn component(name: &str, value: Option<&str>, reversed: bool) -> String {
    let ty = CqlType::parse_cql(name, "ks", &|_| None).unwrap();
    let bytes = value.map(|digits| hex::parse(digits).unwrap());
    let mut out = Vec::new();
    ty.encode_comparable_component(bytes.as_deref(), reversed, &mut out);
    hex::print(&out)
}

#[test]
fn the_vectors_of_the_notes_hold() {
    for (name, value, encoded) in [
        ("bigint", "0000000000000000", "80"),
        ("bigint", "0000000000000001", "81"),
        ("bigint", "ffffffffffffffff", "7f"),
        ("bigint", "000000000000003f", "bf"),
        ("bigint", "0000000000000040", "c040"),
        ("bigint", "ffffffffffffffc0", "40"),
        ("bigint", "ffffffffffffffbf", "3fbf"),
        ("bigint", "0000000000002000", "e02000"),
        ("bigint", "0001000000000000", "ff01000000000000"),
        ("bigint", "0080000000000000", "ff8080000000000000"),
        ("bigint", "7fffffffffffffff", "ffffffffffffffffff"),
        ("bigint", "8000000000000000", "000000000000000000"),
        ("varint", "01000000000000", "ff0001000000000000"),
        ("varint", "010000000000000000", "ff02010000000000000000"),
        ("varint", "8000000000000000", "00fe8000000000000000"),
        (
            "varint",
            "ff000000000000000000000000000000",
            "00f7000000000000000000000000000000",
        ),
        ("blob", "2200", "2200fe"),
        ("blob", "220011", "2200ff1100"),
        ("blob", "22000033", "2200feff3300"),
        ("text", "", "00"),
        ("decimal", "0000000000", "80"),
        ("decimal", "000000010b", "c101818a00"),
        ("decimal", "0000000001", "c1018100"),
        ("decimal", "0000000201", "c08100"),
        ("decimal", "00000000ff", "3fff7f00"),
        ("decimal", "00000001fc23", "3fff1d8a00"),
        ("tuple<int, text>", "0000000400000001", "408000000138"),
        ("tuple<int, text>", "0000000400000001ffffffff", "408000000138"),
        ("tuple<int, text>", "ffffffffffffffff", "38"),
        ("list<int>", "00000000", "38"),
        ("list<text>", "0000000100000000", "400038"),
        ("list<int>", "0000000100000000", "3e38"),
        ("float", "3f800000", "bf800000"),
        ("float", "bf800000", "407fffff"),
        (
            "timeuuid",
            "5fc762a0683211ee840f16802ed7ebc5",
            "11ee68325fc762a0048f9600ae576b45",
        ),
        (
            "uuid",
            "5fc762a0683211ee840f16802ed7ebc5",
            "11ee68325fc762a0840f16802ed7ebc5",
        ),
        (
            "uuid",
            "ee0292b2af084a6d8eaf1fc6f53d20f5",
            "4ee0292b2af08a6d8eaf1fc6f53d20f5",
        ),
    ] {
        assert_eq!(
            component(name, Some(value), false),
            format!("40{encoded}"),
            "{name} {value}"
        );
    }
    assert_eq!(component("int", None, false), "3e");
    assert_eq!(component("int", Some(""), false), "3f");
    assert_eq!(component("int", Some(""), true), "41");
    assert_eq!(component("text", Some(""), true), "40ff");
    assert_eq!(component("int", Some("00000001"), true), "407ffffffe");
}

#[test]
fn a_partition_key_starts_with_its_token() {
    let mut out = Vec::new();
    encode_comparable_key(&Token::Murmur3(-1), &[0, 0, 0, 1], &mut out);
    assert_eq!(hex::print(&out), "407fffffffffffffff4000fefeff010038");
    for partitioner in [
        Partitioner::Murmur3,
        Partitioner::ByteOrdered,
        Partitioner::Random,
    ] {
        let encode = |key: &[u8]| {
            let mut out = Vec::new();
            encode_comparable_key(&partitioner.token(key), key, &mut out);
            out
        };
        let (a, b) = (&b"a\0"[..], &b"a"[..]);
        let order = partitioner.token(a).cmp(&partitioner.token(b)).then(a.cmp(b));
        assert_eq!(encode(a).cmp(&encode(b)), order);
    }
}

/// A value of one of several types, the same type for the same `which`.
fn value(which: usize, n: i64, shift: u32, text: &str) -> (CqlType, Vec<u8>) {
    let n = n >> shift;
    let ty = |name: &str| CqlType::parse_cql(name, "ks", &|_| None).unwrap();
    let text = Value::Text(text.into());
    let (ty, value) = match which {
        0 => (CqlType::Int, Value::Int(n as i32)),
        1 => (CqlType::BigInt, Value::BigInt(n)),
        2 => (
            CqlType::Varint,
            Value::Varint(BigInt::from(n) * n * n * i64::from(shift)),
        ),
        3 => (
            CqlType::Decimal,
            Value::Decimal(Decimal {
                unscaled: n.into(),
                scale: (shift as i32 - 30) / 9,
            }),
        ),
        4 => (CqlType::Text, text),
        5 => (CqlType::TinyInt, Value::TinyInt(n as i8)),
        6 => (CqlType::Double, Value::Double(n as f64 / 7.0)),
        7 => (
            ty("tuple<int, text>"),
            Value::Tuple(vec![Value::Int((n >> 62) as i32), text]),
        ),
        8 => (ty("list<text>"), Value::List(vec![text; (shift % 3) as usize])),
        9 => (ty("tuple<text, bigint>"), Value::Tuple(vec![text, Value::Null])),
        10 => (
            ty("map<text, bigint>"),
            Value::Map(vec![(text, Value::BigInt(n))]),
        ),
        11 => (
            CqlType::Uuid,
            Value::Uuid(uuid::Uuid::from_u128(
                (n as u128).wrapping_mul(0x1_0000_0000_1000_0001),
            )),
        ),
        12 => (CqlType::TimeUuid, Value::TimeUuid(crate::min_time_uuid(n >> 20))),
        13 => (CqlType::Timestamp, Value::Timestamp(n)),
        _ => (ty("vector<text, 2>"), Value::Vector(vec![text.clone(), text])),
    };
    let bytes = value.to_bytes(&ty).unwrap();
    (ty, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn bytes_compare_as_values_do(
        which in 0usize..15,
        a in (any::<i64>(), 0u32..64, "[\\x00\\x01a\u{ff}]{0,4}"),
        b in (any::<i64>(), 0u32..64, "[\\x00\\x01a\u{ff}]{0,4}"),
        reversed in any::<bool>(),
    ) {
        let (ty, left) = value(which, a.0, a.1, &a.2);
        let (_, right) = value(which, b.0, b.1, &b.2);
        let (mut x, mut y) = (Vec::new(), Vec::new());
        ty.encode_comparable_component(Some(&left), reversed, &mut x);
        ty.encode_comparable_component(Some(&right), reversed, &mut y);
        x.push(TERMINATOR_ROW);
        y.push(TERMINATOR_ROW);
        let order = ty.compare(&left, &right);
        prop_assert_eq!(x.cmp(&y), if reversed { order.reverse() } else { order }, "{} {:x?} {:x?}", ty, x, y);
        prop_assert!(x == y || !(x.starts_with(&y) || y.starts_with(&x)), "prefix: {:x?} {:x?}", x, y);
    }
}
