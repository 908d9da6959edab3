//! Encoded values decode to the same values, for random values of every type.

use proptest::prelude::*;

use crate::json::Json;
use crate::{CqlType, Decimal, Duration, Value, min_time_uuid};

fn ty(name: &str) -> CqlType {
    CqlType::parse_cql(name, "ks", &|_| None).unwrap()
}

fn scalar() -> impl Strategy<Value = (CqlType, Value)> {
    let number = any::<i64>().prop_flat_map(|n| (0u32..64).prop_map(move |shift| n >> shift));
    (number, any::<f64>(), "\\PC{0,8}", 0usize..19).prop_map(|(n, f, text, which)| {
        let days = u32::try_from(n & 0xFFFF_FFFF).unwrap_or_default();
        match which {
            0 => (CqlType::Text, Value::Text(text)),
            1 => (CqlType::Blob, Value::Blob(text.into_bytes())),
            2 => (CqlType::Boolean, Value::Boolean(n & 1 == 0)),
            3 => (CqlType::TinyInt, Value::TinyInt(n as i8)),
            4 => (CqlType::SmallInt, Value::SmallInt(n as i16)),
            5 => (CqlType::Int, Value::Int(n as i32)),
            6 => (CqlType::BigInt, Value::BigInt(n)),
            7 => (
                CqlType::Varint,
                Value::Varint(num_bigint::BigInt::from(n) * n * 3),
            ),
            8 => (
                CqlType::Decimal,
                Value::Decimal(Decimal {
                    unscaled: n.into(),
                    scale: (n >> 7) as i32,
                }),
            ),
            9 => (CqlType::Float, Value::Float(f as f32)),
            10 => (CqlType::Double, Value::Double(f)),
            11 => (CqlType::Date, Value::Date(days)),
            12 => (CqlType::Time, Value::Time(n.rem_euclid(86_400_000_000_000))),
            13 => (CqlType::Timestamp, Value::Timestamp(n)),
            14 => (CqlType::Uuid, Value::Uuid(uuid::Uuid::from_u128(n as u128))),
            15 => (CqlType::TimeUuid, Value::TimeUuid(min_time_uuid(n >> 16))),
            16 => (CqlType::Inet, Value::Inet(std::net::Ipv4Addr::from(days).into())),
            17 => (
                CqlType::Inet,
                Value::Inet(std::net::Ipv6Addr::from((n as u128) << 64 | 1).into()),
            ),
            _ => {
                let sign = if n < 0 { -1 } else { 1 };
                let part = i32::try_from(days >> 1).unwrap_or_default() * sign;
                (
                    CqlType::Duration,
                    Value::Duration(Duration::new(part, part / 7, n).unwrap_or_default()),
                )
            }
        }
    })
}

proptest! {
    #[test]
    fn a_scalar_survives_bytes_text_and_json((ty, value) in scalar()) {
        let bytes = value.to_bytes(&ty).unwrap();
        prop_assert!(ty.validate(&bytes).is_ok());
        prop_assert_eq!(Value::decode(&ty, &bytes).unwrap(), value.clone());
        let json = ty.print_json(&bytes).unwrap();
        let parsed = Json::parse(&json).unwrap();
        let no_time = bytes == [0, 0, 0] && ty == CqlType::Duration;
        if parsed != Json::Null && !no_time {
            prop_assert_eq!(ty.parse_json(&parsed).unwrap().unwrap(), bytes.clone(), "{}", json);
        }
        let plain = ty.print_plain(&bytes).unwrap();
        if !no_time {
            prop_assert_eq!(ty.parse_plain(&plain).unwrap(), bytes, "{}", plain);
        }
    }

    #[test]
    fn a_collection_survives_bytes_and_json(ints in prop::collection::vec(any::<i32>(), 0..6), text in "\\PC{0,8}") {
        let numbers: Vec<Value> = ints.iter().map(|n| Value::Int(*n)).collect();
        let pair = |n: &Value| Value::Tuple(vec![Value::Null, n.clone(), Value::Text(text.clone())]);
        let cases = [
            ("list<int>", Value::List(numbers.clone())),
            ("set<int>", Value::Set(numbers.clone())),
            ("map<int, text>", Value::Map(numbers.iter().map(|n| (n.clone(), Value::Text(text.clone()))).collect())),
            ("map<text, list<int>>", Value::Map(vec![(Value::Text(text.clone()), Value::List(numbers.clone()))])),
            ("map<frozen<list<int>>, int>", Value::Map(vec![(Value::List(numbers.clone()), Value::Int(1))])),
            ("list<tuple<int, int, text>>", Value::List(numbers.iter().map(pair).collect())),
            ("vector<text, 2>", Value::Vector(vec![Value::Text(text.clone()); 2])),
            ("vector<int, 3>", Value::Vector(vec![Value::Int(7); 3])),
            ("vector<vector<int, 2>, 2>", Value::Vector(vec![Value::Vector(vec![Value::Int(7); 2]); 2])),
        ];
        for (name, value) in cases {
            let ty = ty(name);
            let bytes = value.to_bytes(&ty).unwrap();
            prop_assert!(ty.validate(&bytes).is_ok());
            let back = Value::decode(&ty, &bytes).unwrap();
            prop_assert_eq!(back.to_bytes(&ty).unwrap(), bytes.clone());
            let json = Json::parse(&ty.print_json(&bytes).unwrap()).unwrap();
            prop_assert_eq!(ty.parse_json(&json).unwrap().unwrap(), bytes.clone());
            prop_assert_eq!(ty.parse_printed(&ty.print_plain(&bytes).unwrap()).unwrap(), bytes.clone());
            prop_assert!(ty.compare(&bytes, &bytes).is_eq());
        }
    }

    #[test]
    fn hostile_bytes_are_refused_without_panic(
        bytes in prop::collection::vec(prop::sample::select(vec![0u8, 1, 2, 4, 0x7F, 0x80, 0xFF]), 0..24),
    ) {
        for name in ["int", "text", "decimal", "varint", "duration", "inet", "timeuuid", "date", "time", "timestamp",
                     "boolean", "float", "list<text>", "map<int, list<int>>", "tuple<int, text>", "vector<text, 2>",
                     "vector<float, 2>", "set<decimal>"] {
            let ty = ty(name);
            let decoded = Value::decode(&ty, &bytes);
            prop_assert_eq!(decoded.is_ok(), ty.validate(&bytes).is_ok());
            prop_assert_eq!(decoded.is_ok(), ty.print_json(&bytes).is_ok());
            prop_assert_eq!(decoded.is_ok(), ty.print_literal(&bytes).is_ok());
        }
    }

    #[test]
    fn no_text_makes_the_parsers_panic(text in "[-+PT0-9YMDWHSnsuoe.: Z/x]{0,24}") {
        for name in ["int", "bigint", "varint", "decimal", "double", "duration", "inet", "timeuuid", "date", "time",
                     "timestamp", "boolean", "blob"] {
            let ty = ty(name);
            if let Ok(bytes) = ty.parse_plain(&text) {
                prop_assert!(ty.validate(&bytes).is_ok() || bytes.is_empty());
            }
        }
        let _ = Json::parse(&text);
    }
}
