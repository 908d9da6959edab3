//! Rust values of all types: bound and read again.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::Debug;
use std::net::{IpAddr, Ipv4Addr};
use std::time::{Duration as StdDuration, SystemTime};

use ilion::{
    BigInt, Database, Date, Decimal, Duration, Error, FromValue, StatementError, Time, ToValue, Uuid, Value,
};

use crate::database::fresh;

/// Binds a value to a column of this type, reads it again and compares.
fn round<T: ToValue + FromValue + PartialEq + Debug>(database: &Database, ty: &str, value: T) {
    database.execute("DROP TABLE IF EXISTS v", ()).unwrap();
    database
        .execute(&format!("CREATE TABLE v (k int PRIMARY KEY, v {ty})"), ())
        .unwrap();
    database
        .execute("INSERT INTO v (k, v) VALUES (1, ?)", (&value,))
        .unwrap();
    let row = database.query_one("SELECT v FROM v WHERE k = 1", ()).unwrap();
    assert_eq!(row.get::<T>(0).unwrap(), value, "{ty}");
    database
        .execute("INSERT INTO v (k, v) VALUES (1, ?)", (None::<&T>,))
        .unwrap();
    let row = database.query_one("SELECT v FROM v WHERE k = 1", ()).unwrap();
    assert_eq!(row.get::<Option<T>>("v").unwrap(), None, "null as {ty}");
}

#[test]
fn values_of_all_simple_types_come_back() {
    let (_env, database) = fresh();
    let d = &database;
    round(d, "ascii", "plain".to_owned());
    round(d, "text", "Z\u{fc}rich".to_owned());
    round(d, "blob", vec![0_u8, 255]);
    round(d, "boolean", true);
    round(d, "tinyint", i8::MIN);
    round(d, "smallint", i16::MIN);
    round(d, "int", i32::MAX);
    round(d, "bigint", i64::MIN);
    round(d, "varint", BigInt::from(u64::MAX) * 3);
    round(
        d,
        "decimal",
        "-12345678901234567890.50".parse::<Decimal>().unwrap(),
    );
    round(d, "float", 0.5_f32);
    round(d, "double", -1.5e300_f64);
    round(d, "date", Date::new(1969, 12, 31).unwrap());
    round(d, "date", Date::from_days(i32::MIN));
    round(d, "time", Time::new(23, 59, 59, 999_999_999).unwrap());
    round(
        d,
        "timestamp",
        SystemTime::UNIX_EPOCH + StdDuration::from_millis(1_795_000_000_123),
    );
    round(
        d,
        "timestamp",
        SystemTime::UNIX_EPOCH - StdDuration::from_millis(1),
    );
    round(d, "timestamp", 7_i64);
    round(d, "uuid", Uuid::from_u128(7));
    round(
        d,
        "timeuuid",
        "50554d6e-29bb-11e5-b345-feff819cdc9f".parse::<Uuid>().unwrap(),
    );
    round(d, "inet", IpAddr::V4(Ipv4Addr::LOCALHOST));
    round(d, "duration", Duration::new(14, 3, 4_000_000_005).unwrap());
}

#[test]
fn values_of_collections_tuples_and_user_types_come_back() {
    let (_env, database) = fresh();
    let d = &database;
    d.execute("CREATE TYPE address (street text, zip int)", ())
        .unwrap();
    round(d, "list<int>", vec![3, 1, 3]);
    round(d, "list<tinyint>", vec![3_i8, -1]);
    round(d, "frozen<list<text>>", vec!["a".to_owned(), String::new()]);
    round(d, "set<text>", BTreeSet::from(["b".to_owned(), "a".to_owned()]));
    round(d, "set<int>", HashSet::<i32>::from([3, 1]));
    round(
        d,
        "map<text, int>",
        BTreeMap::from([("two".to_owned(), 2), ("one".to_owned(), 1)]),
    );
    round(
        d,
        "map<int, frozen<list<blob>>>",
        HashMap::<_, _>::from([(1, vec![vec![1_u8], vec![]])]),
    );
    round(
        d,
        "tuple<int, text, double>",
        (1, Some("a".to_owned()), None::<f64>),
    );
    round(d, "list<frozen<tuple<int, date>>>", vec![(1, Date::from_days(3))]);
    round(d, "vector<float, 3>", vec![0.5_f32, -1.0, 2.0]);
    round(d, "address", ("Main Street".to_owned(), Some(12_345)));
    let fields = [("street", Value::Text("Main".to_owned())), ("zip", Value::Int(7))];
    round(
        d,
        "address",
        BTreeMap::from(fields.map(|(name, value)| (name.to_owned(), value))),
    );
    round(d, "frozen<address>", ("Main".to_owned(), None::<i32>));
}

#[test]
fn an_empty_collection_is_read_as_one() {
    let (_env, database) = fresh();
    let create = "CREATE TABLE t (k int PRIMARY KEY, l list<int>, s set<int>, m map<int, int>, t tuple<int>)";
    database.execute(create, ()).unwrap();
    let insert = "INSERT INTO t (k, l, s, m) VALUES (1, ?, ?, ?)";
    let empty = (
        Vec::<i32>::new(),
        BTreeSet::<i32>::new(),
        BTreeMap::<i32, i32>::new(),
    );
    database.execute(insert, empty).unwrap();
    let row = database.query_one("SELECT l, s, m, t FROM t", ()).unwrap();
    assert!(row.get::<Vec<i32>>("l").unwrap().is_empty());
    assert!(row.get::<HashSet<i32>>("s").unwrap().is_empty());
    assert!(row.get::<HashMap<i32, i32>>("m").unwrap().is_empty());
    assert!(row.get::<(i32,)>("t").is_err(), "a tuple can be null");
}

#[test]
fn a_smaller_integer_is_read_as_a_larger_one_and_not_the_other_way_round() {
    let (_env, database) = fresh();
    database
        .execute(
            "CREATE TABLE t (k int PRIMARY KEY, s smallint, b bigint, f float)",
            (),
        )
        .unwrap();
    database
        .execute("INSERT INTO t (k, s, b, f) VALUES (1, 2, 3, 0.5)", ())
        .unwrap();
    let row = database.query_one("SELECT k, s, b, f FROM t", ()).unwrap();
    assert_eq!(row.read::<(i64, i32, i64, f64)>().unwrap(), (1, 2, 3, 0.5));
    assert_eq!(
        row.get::<i32>("b").unwrap_err().to_string(),
        "column b: BigInt(3) is no i32"
    );
}

#[test]
fn values_that_do_not_fit_inside_a_collection_are_named() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TYPE address (street text, zip int)", ())
        .unwrap();
    let create = "CREATE TABLE t (k int PRIMARY KEY, l list<tinyint>, v vector<float, 2>, a address, p tuple<int, int>)";
    database.execute(create, ()).unwrap();
    let refused = |column: &str, value: &dyn ToValue| {
        let insert = format!("INSERT INTO t (k, {column}) VALUES (1, ?)");
        let error = database.execute(&insert, (value,)).err().unwrap().to_string();
        error.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        refused("l", &vec![1, 300]),
        "element 1: 300 is out of range of tinyint"
    );
    assert_eq!(
        refused("v", &[1.0_f32; 3]),
        "vector<float, 2> has 2 elements, 3 were given"
    );
    assert_eq!(
        refused("p", &(1,)),
        "frozen<tuple<int, int>> has 2 components, 1 were given"
    );
    assert_eq!(
        refused("a", &BTreeMap::from([("city", "x")])),
        "address has no field city"
    );
    assert_eq!(refused("a", &vec![1]), "a list is not a value of type address");
    let nested = BTreeMap::from([("zip", 1_i64 << 40)]);
    assert!(
        refused("a", &nested).starts_with("field zip: "),
        "{}",
        refused("a", &nested)
    );
}

#[test]
fn columns_are_found_by_name_and_by_index() {
    let (_env, database) = fresh();
    let row = database
        .query_one("SELECT key, cluster_name AS name FROM system.local", ())
        .unwrap();
    assert_eq!(row.get::<String>(1).unwrap(), "Ilion");
    assert_eq!(row.get::<String>(&"name".to_owned()).unwrap(), "Ilion");
    assert_eq!(row.column_names().collect::<Vec<_>>(), ["key", "name"]);
    assert_eq!(row.column_type(0).unwrap().to_string(), "text");
    assert!(row.column_type("cluster_name").is_none());
    let missing = |error: Error| error.to_string();
    assert_eq!(
        missing(row.get::<String>(2).unwrap_err()),
        "column 2: the result has no such column"
    );
    assert_eq!(
        missing(row.read::<(String,)>().unwrap_err()),
        "column name: the row has more than 1 columns"
    );
}

#[test]
fn one_row_is_read_and_other_numbers_of_rows_are_errors_that_match() {
    let (_env, database) = fresh();
    database
        .execute("CREATE TABLE t (k int, c int, PRIMARY KEY (k, c))", ())
        .unwrap();
    let select = database.prepare("SELECT c FROM t WHERE k = ?").unwrap();
    for row in [(1, 1), (2, 1), (2, 2)] {
        database
            .execute("INSERT INTO t (k, c) VALUES (?, ?)", row)
            .unwrap();
    }
    assert!(select.query_opt((0,)).unwrap().is_none());
    assert!(matches!(select.query_one((0,)), Err(Error::NoRow)));
    assert_eq!(select.query_one((1,)).unwrap().get::<i32>(0).unwrap(), 1);
    assert!(matches!(select.query_opt((2,)), Err(Error::SeveralRows)));
    let mut read: Vec<(i32,)> = select
        .execute((2,))
        .unwrap()
        .read()
        .collect::<Result<_, _>>()
        .unwrap();
    read.sort_unstable();
    assert_eq!(read, [(1,), (2,)]);
    assert!(matches!(
        database.query_one("SELECT", ()),
        Err(Error::Statement(StatementError::Syntax(_)))
    ));
    assert!(matches!(
        database.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()),
        Err(Error::Statement(StatementError::AlreadyExists { keyspace, .. })) if keyspace == "ks"
    ));
}
