//! Structs of the program as rows and as bind values.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use ilion::{BatchKind, Database, Error, FromRow, FromValue, StatementError, ToValue, ToValues};

/// A database with a table of songs; the directory goes with it.
fn songs() -> (tempfile::TempDir, Database) {
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path()).unwrap();
    for statement in [
        "CREATE KEYSPACE music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "USE music",
        "CREATE TABLE songs (id int PRIMARY KEY, title text, \"Type\" text, tags set<text>)",
    ] {
        database.execute(statement, ()).unwrap();
    }
    (directory, database)
}

#[derive(Clone, Debug, Default, PartialEq, FromRow, ToValues)]
struct Song {
    title: Option<String>,
    id: i32,
    #[ilion(rename = "Type")]
    r#type: String,
    tags: Vec<String>,
    #[ilion(skip)]
    is_favourite: bool,
}

const INSERT: &str = "INSERT INTO songs (id, title, \"Type\", tags) VALUES (?, ?, ?, ?)";

fn tush() -> Song {
    Song {
        title: Some("Tush".to_owned()),
        id: 2,
        r#type: "single".to_owned(),
        tags: vec!["rock".to_owned()],
        is_favourite: true,
    }
}

#[test]
fn a_struct_is_written_and_read_by_the_names_of_its_fields() {
    let (_directory, database) = songs();
    let insert = database.prepare(INSERT).unwrap();
    insert.execute(tush()).unwrap();
    let mut batch = database.batch(BatchKind::Logged);
    let untitled = Song {
        id: 3,
        ..Song::default()
    };
    batch.add(&insert, &untitled).unwrap();
    batch.execute().unwrap();
    // The order of the columns is not that of the fields, and the row has one column more.
    let mut read: Vec<Song> = database
        .execute(
            "SELECT tags, id, \"Type\", title, writetime(title) FROM songs",
            (),
        )
        .unwrap()
        .read()
        .collect::<Result<_, _>>()
        .unwrap();
    read.sort_by_key(|song| song.id);
    let stored = Song {
        is_favourite: false,
        ..tush()
    };
    assert_eq!(read, [stored, untitled]);
}

#[test]
fn a_missing_column_and_a_null_are_told_with_their_names() {
    let (_directory, database) = songs();
    database
        .execute("INSERT INTO songs (id, title) VALUES (1, 'x')", ())
        .unwrap();
    let read = |statement: &str| {
        let row = database.query_one(statement, ()).unwrap();
        row.read::<Song>().unwrap_err().to_string()
    };
    assert_eq!(
        read("SELECT id, title, \"Type\" AS type, tags FROM songs"),
        "column Type: the result has no such column"
    );
    let null = read("SELECT * FROM songs");
    assert!(null.starts_with("column Type: Null is no "), "{null}");
}

#[test]
fn fields_and_markers_must_fit() {
    let (_directory, database) = songs();
    let missing = database.execute("INSERT INTO songs (id, title) VALUES (?, ?)", tush());
    let Err(Error::Statement(StatementError::Invalid(told))) = missing else {
        panic!("{:?}", missing.err());
    };
    assert_eq!(
        told,
        "no bind marker of the statement is named Type: rename the field, or skip it"
    );

    #[derive(ToValues)]
    struct Key {
        id: i64,
    }
    let update = database
        .prepare("UPDATE songs SET title = ? WHERE id = ?")
        .unwrap();
    let Err(Error::Argument {
        index, name, problem, ..
    }) = update.execute(Key { id: 1 })
    else {
        panic!("a marker without a field is refused");
    };
    assert_eq!((index, &*name, &*problem), (0, "title", "no field has this name"));
    let large = database.query_opt("SELECT id FROM songs WHERE id = ?", Key { id: 1 << 40 });
    let told = large.unwrap_err().to_string();
    assert!(told.starts_with("argument 0 (id) is of type int: "), "{told}");
}

#[test]
fn one_field_is_bound_to_all_markers_of_its_name() {
    #[derive(ToValues)]
    struct Song<'a> {
        id: i32,
        #[ilion(rename = "text")]
        title: &'a str,
    }
    let (_directory, database) = songs();
    let insert = "INSERT INTO songs (id, title, \"Type\") VALUES (:id, :text, :text)";
    database.execute(insert, Song { id: 1, title: "x" }).unwrap();
    let row = database
        .query_one("SELECT title, \"Type\" FROM songs", ())
        .unwrap();
    assert_eq!(
        row.read::<(String, String)>().unwrap(),
        ("x".to_owned(), "x".to_owned())
    );
}

#[test]
fn tuple_structs_go_by_position_and_may_be_generic() {
    #[derive(Debug, PartialEq, FromRow, ToValues)]
    struct Pair<A, B>(A, B)
    where
        A: Copy;

    fn round_trip<B: FromValue + ToValue>(database: &Database, title: B) -> Result<Pair<i32, B>, Error> {
        database.execute("INSERT INTO songs (id, title) VALUES (?, ?)", Pair(1, title))?;
        database.query_one("SELECT id, title FROM songs", ())?.read()
    }
    let (_directory, database) = songs();
    assert_eq!(
        round_trip(&database, "x".to_owned()).unwrap(),
        Pair(1, "x".to_owned())
    );
    assert_eq!(round_trip(&database, None::<String>).unwrap(), Pair(1, None));
    let row = database.query_one("SELECT * FROM songs", ()).unwrap();
    let told = row.read::<Pair<i32, String>>().unwrap_err().to_string();
    assert!(told.contains("the row has more than 2 columns"), "{told}");
}
