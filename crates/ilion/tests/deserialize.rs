//! Rows as types that implement serde's `Deserialize`.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use ilion::{Database, Error};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A database with a table of one row; the directory goes with it.
struct Place {
    _directory: tempfile::TempDir,
    database: Database,
}

impl Place {
    /// The columns besides `id`, and the values of the row as CQL.
    fn with(columns: &[(&str, &str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path()).unwrap();
        let list = |part: fn(&(&str, &str, &str)) -> String| columns.iter().map(part).collect::<String>();
        for statement in [
            "CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
                .to_owned(),
            "USE k".to_owned(),
            "CREATE TYPE place (street text, number int, note text)".to_owned(),
            format!(
                "CREATE TABLE t (id int PRIMARY KEY{})",
                list(|(name, ty, _)| format!(", {name} {ty}"))
            ),
            format!(
                "INSERT INTO t (id{}) VALUES (7{})",
                list(|(name, ..)| format!(", {name}")),
                list(|(.., value)| format!(", {value}"))
            ),
        ] {
            database.execute(&statement, ()).unwrap();
        }
        Self {
            _directory: directory,
            database,
        }
    }

    fn read<T: DeserializeOwned>(&self, columns: &str) -> Result<T, Error> {
        let select = format!("SELECT {columns} FROM t");
        self.database.query_one(&select, ()).unwrap().deserialize()
    }

    /// The only column, read as this type.
    fn column<T: DeserializeOwned>(&self, column: &str) -> Result<T, Error> {
        self.read::<(T,)>(column).map(|(value,)| value)
    }
}

fn message<T>(read: Result<T, Error>) -> String {
    read.err().map(|error| error.to_string()).unwrap()
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Open,
    Shipped,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Street {
    street: String,
    number: Option<u16>,
    #[serde(default)]
    note: String,
}

#[test]
fn a_struct_is_read_by_names() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Order {
        id: u32,
        state: State,
        place: Street,
        missing: Option<i32>,
        #[serde(default)]
        count: i32,
        #[serde(rename = "other")]
        renamed: Vec<String>,
    }
    let place = Place::with(&[
        ("state", "text", "'shipped'"),
        (
            "place",
            "frozen<place>",
            "{street: 'Main', number: 4, note: 'rear'}",
        ),
        ("other", "list<text>", "['a', 'b']"),
        ("unread", "int", "1"),
    ]);
    let order: Order = place.read("*").unwrap();
    let expected = Order {
        id: 7,
        state: State::Shipped,
        place: Street {
            street: "Main".to_owned(),
            number: Some(4),
            note: "rear".to_owned(),
        },
        missing: None,
        count: 0,
        renamed: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(order, expected);
    let rows = place.database.execute("SELECT * FROM t", ()).unwrap();
    let orders: Vec<Order> = rows.deserialize().collect::<Result<_, _>>().unwrap();
    assert_eq!(orders, [expected]);
}

#[test]
fn every_type_has_the_value_of_the_table_in_the_documentation() {
    let place = Place::with(&[
        ("tiny", "tinyint", "-3"),
        ("big", "bigint", "9000000000"),
        ("vast", "varint", "170141183460469231731687303715884105728"),
        ("some", "varint", "12"),
        ("yes", "boolean", "true"),
        ("f", "float", "1.5"),
        ("d", "double", "2.5"),
        ("exact", "decimal", "1.50"),
        ("span", "duration", "1h30m"),
        ("host", "inet", "'127.0.0.1'"),
        ("key", "uuid", "5c1a9a3c-1b1c-4b57-9d5e-2f4a4d5a9b10"),
        ("day", "date", "'2026-11-27'"),
        ("clock", "time", "'13:30:54.234'"),
        ("moment", "timestamp", "'2026-11-27T13:30:54.234Z'"),
        ("bytes", "blob", "0x010203"),
        ("tags", "set<text>", "{'b', 'a'}"),
        ("counts", "map<int, text>", "{2: 'two'}"),
        ("pair", "tuple<int, text>", "(1, 'one')"),
        ("near", "vector<float, 2>", "[0.5, 1]"),
        ("home", "place", "{street: 'Main'}"),
    ]);
    let text = |column: &str| place.column::<String>(column).unwrap();
    assert_eq!(place.column::<i64>("tiny").unwrap(), -3);
    assert_eq!(place.column::<u64>("big").unwrap(), 9_000_000_000);
    assert_eq!(text("vast"), "170141183460469231731687303715884105728");
    assert_eq!(place.column::<i128>("some").unwrap(), 12);
    assert!(place.column::<bool>("yes").unwrap());
    assert_eq!(place.column::<f64>("f").unwrap(), 1.5);
    assert_eq!(place.column::<f64>("d").unwrap(), 2.5);
    assert_eq!(text("exact"), "1.50");
    assert_eq!(text("span"), "1h30m");
    assert_eq!(
        place.column::<IpAddr>("host").unwrap(),
        IpAddr::from([127, 0, 0, 1])
    );
    assert_eq!(text("key"), "5c1a9a3c-1b1c-4b57-9d5e-2f4a4d5a9b10");
    assert_eq!(text("day"), "2026-11-27");
    assert_eq!(text("clock"), "13:30:54.234000000");
    assert_eq!(place.column::<i64>("clock").unwrap(), 48_654_234_000_000);
    assert_eq!(text("moment"), "2026-11-27T13:30:54.234Z");
    assert_eq!(place.column::<i64>("moment").unwrap(), 1_795_786_254_234);
    assert_eq!(place.column::<Vec<u8>>("bytes").unwrap(), [1, 2, 3]);
    let tags = BTreeSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(place.column::<BTreeSet<String>>("tags").unwrap(), tags);
    let counts = HashMap::from([(2, "two".to_owned())]);
    assert_eq!(place.column::<HashMap<i32, String>>("counts").unwrap(), counts);
    assert_eq!(
        place.column::<(i32, String)>("pair").unwrap(),
        (1, "one".to_owned())
    );
    assert_eq!(place.column::<[f32; 2]>("near").unwrap(), [0.5, 1.0]);
    assert_eq!(
        place
            .column::<(String, Option<i32>, Option<String>)>("home")
            .unwrap(),
        ("Main".to_owned(), None, None)
    );
    let fields: BTreeMap<String, serde_json::Value> = place.column("home").unwrap();
    assert_eq!(fields["street"], "Main");
    assert_eq!(fields["number"], serde_json::Value::Null);
}

#[test]
fn null_is_none_and_null_collections_are_also_empty() {
    let place = Place::with(&[
        ("a", "int", "null"),
        ("l", "list<int>", "null"),
        ("m", "map<int, int>", "null"),
    ]);
    assert_eq!(place.column::<Option<i32>>("a").unwrap(), None);
    assert_eq!(place.column::<Vec<i32>>("l").unwrap(), Vec::<i32>::new());
    assert_eq!(place.column::<Option<Vec<i32>>>("l").unwrap(), None);
    assert_eq!(place.column::<BTreeMap<i32, i32>>("m").unwrap(), BTreeMap::new());
    let error = message(place.column::<i32>("a"));
    assert!(error.starts_with("column a: invalid type"), "{error}");
}

#[test]
fn what_does_not_fit_is_named() {
    let place = Place::with(&[
        ("n", "int", "300"),
        ("state", "text", "'lost'"),
        ("pair", "tuple<int, int>", "(1, 2)"),
        ("vast", "varint", "170141183460469231731687303715884105728"),
    ]);
    assert!(message(place.column::<u8>("n")).starts_with("column n: invalid value: integer `300`"));
    assert!(message(place.column::<String>("n")).starts_with("column n: invalid type"));
    let error = message(place.column::<State>("state"));
    assert!(
        error.starts_with("column state: unknown variant `lost`"),
        "{error}"
    );
    let error = message(place.column::<(i32,)>("pair"));
    assert!(error.starts_with("column pair: invalid length 2"), "{error}");
    let error = message(place.column::<i128>("vast"));
    assert!(error.ends_with("has more than 128 bits"), "{error}");

    #[derive(Debug, Deserialize)]
    struct Wanted {
        #[expect(dead_code, reason = "it is never read, since the column is missing")]
        total: i32,
    }
    let missing = place.read::<Wanted>("n");
    assert!(matches!(missing, Err(Error::Row(_))));
    assert_eq!(message(missing), "the row does not fit: missing field `total`");
    let error = message(place.read::<(i32,)>("n, state"));
    assert_eq!(
        error,
        "the row does not fit: it has 2 columns, and 1 were expected"
    );
}
