//! Values from a real Cassandra's tables print as its own `sstabledump` prints them.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use num_bigint::BigInt;

use crate::json::Json;
use crate::{CqlType, Decimal, Duration, UserType, Value};

fn fixture(case: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/fixtures/cassandra-5.0")
        .join(case);
    if !path.exists() {
        println!("skipped: no fixtures at {}", path.display());
        return None;
    }
    Some(path)
}

fn read(folder: &Path, name: &str) -> String {
    if let Ok(text) = std::fs::read_to_string(folder.join(name)) {
        return text;
    }
    let file = std::fs::File::open(folder.join(format!("{name}.gz"))).unwrap();
    let mut text = String::new();
    flate2::read::GzDecoder::new(file)
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn member<'a>(json: &'a Json, name: &str) -> &'a Json {
    let Json::Object(members) = json else {
        panic!("no object")
    };
    &members.iter().find(|(known, _)| known == name).unwrap().1
}

fn array(json: &Json) -> &[Json] {
    let Json::Array(values) = json else {
        panic!("no array: {json:?}")
    };
    values
}

fn text(json: &Json) -> &str {
    match json {
        Json::String(text) | Json::Number(text) => text,
        _ => panic!("no scalar: {json:?}"),
    }
}

/// Parses the fixtures' own notation (see their README), where `parse_json` does not.
fn value(ty: &CqlType, json: &Json) -> Value {
    let number = |json: &Json| text(json).parse::<i64>().unwrap();
    let plain = |text: &str| Value::decode(ty, &ty.parse_plain(text).unwrap()).unwrap();
    match (ty, json) {
        (_, Json::Null) => Value::Null,
        (CqlType::Udt { definition, .. }, _) => Value::Udt(
            definition
                .fields
                .iter()
                .map(|(name, ty)| value(ty, member(json, name)))
                .collect(),
        ),
        (_, Json::Object(_)) => Value::Empty,
        (CqlType::Decimal, _) => {
            let (unscaled, exponent) = text(json).split_once('E').unwrap();
            let scale = -exponent.parse::<i32>().unwrap();
            Value::Decimal(Decimal {
                unscaled: unscaled.parse::<BigInt>().unwrap(),
                scale,
            })
        }
        (CqlType::Boolean, Json::Boolean(value)) => Value::Boolean(*value),
        (CqlType::Date, _) => Value::Date(u32::try_from(number(json) + (1 << 31)).unwrap()),
        (CqlType::Duration, _) => {
            let parts: Vec<i64> = array(json).iter().map(number).collect();
            let bits32 = |value: i64| i32::try_from(value).unwrap();
            Value::Duration(Duration::new(bits32(parts[0]), bits32(parts[1]), parts[2]).unwrap())
        }
        (CqlType::Float, _) => Value::Float(match text(json) {
            "NaN" => f32::NAN,
            "Infinity" => f32::INFINITY,
            "-Infinity" => f32::NEG_INFINITY,
            number => number.parse::<f64>().unwrap() as f32,
        }),
        (CqlType::Double, Json::String(text)) => plain(text),
        (CqlType::List { element, .. }, _) => Value::List(all(element, json)),
        (CqlType::Set { element, .. }, _) => Value::Set(all(element, json)),
        (CqlType::Vector { element, .. }, _) => Value::Vector(all(element, json)),
        (CqlType::Tuple(types), _) => Value::Tuple(
            types
                .iter()
                .zip(array(json))
                .map(|(ty, json)| value(ty, json))
                .collect(),
        ),
        (
            CqlType::Map {
                key, value: element, ..
            },
            _,
        ) => Value::Map(
            array(json)
                .iter()
                .map(|pair| (value(key, &array(pair)[0]), value(element, &array(pair)[1])))
                .collect(),
        ),
        (CqlType::Blob, _) => plain(text(json)),
        (CqlType::Text | CqlType::Ascii, _) => Value::Text(text(json).to_owned()),
        _ => plain(text(json)),
    }
}

fn all(element: &CqlType, json: &Json) -> Vec<Value> {
    array(json).iter().map(|json| value(element, json)).collect()
}

/// The user types of the case `collections_udt`.
fn user_type(name: &str) -> Option<std::sync::Arc<UserType>> {
    let fields: &[(&str, &str)] = match name {
        "address" => &[("street", "text"), ("zip", "int"), ("tags", "frozen<set<text>>")],
        "person" => &[("name", "text"), ("home", "frozen<address>"), ("born", "date")],
        _ => return None,
    };
    let parse = |text: &str| CqlType::parse_cql(text, "fx", &user_type).unwrap();
    let fields = fields
        .iter()
        .map(|(name, ty)| ((*name).to_owned(), parse(ty)))
        .collect();
    Some(
        UserType {
            keyspace: "fx".into(),
            name: name.into(),
            fields,
        }
        .into(),
    )
}

/// Checks every cell that is a whole value; returns their number.
fn check(case: &str, key: &str) -> usize {
    let Some(folder) = fixture(case) else { return 0 };
    let dump = read(&folder, "expected.jsonl");
    let select = Json::parse(&read(&folder, "select.json")).unwrap();
    let columns: Vec<(String, CqlType)> = array(member(&select, "columns"))
        .iter()
        .map(|column| {
            let ty = CqlType::parse_cql(text(&array(column)[1]), "fx", &user_type).unwrap();
            (text(&array(column)[0]).to_owned(), ty)
        })
        .collect();
    let key_index = columns.iter().position(|(name, _)| name == key).unwrap();
    let mut checked = 0;
    for row in array(member(&select, "rows")) {
        let start = format!("\"partition\":{{\"key\":[\"{}\"]", text(&array(row)[key_index]));
        let line = dump.lines().find(|line| line.contains(&start)).unwrap();
        for ((name, ty), json) in columns.iter().zip(array(row)) {
            if name == key || ty.is_multi_cell() || *json == Json::Null {
                continue;
            }
            let bytes = value(ty, json).to_bytes(ty).unwrap();
            let printed = format!(
                "{{\"name\":\"{name}\",\"value\":{}}}",
                ty.print_json(&bytes).unwrap()
            );
            if matches!(ty, CqlType::Float | CqlType::Double) && !printed.contains("null") {
                assert!(same_number(line, &printed), "{printed} is not in {line}");
            } else {
                assert!(line.contains(&printed), "{printed} is not in {line}");
            }
            checked += 1;
        }
    }
    checked
}

/// Java before 19 sometimes prints more digits than necessary, so numbers are compared by value.
fn same_number(line: &str, printed: &str) -> bool {
    let (prefix, number) = printed.rsplit_once(':').unwrap();
    let Some(at) = line.find(&format!("{prefix}:")) else {
        return false;
    };
    let rest = &line[at + prefix.len() + 1..];
    let theirs = &rest[..rest.find('}').unwrap()];
    let ours = number.trim_end_matches('}');
    ours == theirs || ours.parse::<f32>() == theirs.parse::<f32>()
}

#[test]
fn scalars_of_a_real_table_print_as_sstabledump_does() {
    let checked = check("all_scalars-nb", "id");
    assert!(checked == 0 || checked > 300, "{checked}");
}

#[test]
fn compound_values_of_a_real_table_print_as_sstabledump_does() {
    let checked = check("collections_udt-nb", "id");
    assert!(checked == 0 || checked > 50, "{checked}");
}
