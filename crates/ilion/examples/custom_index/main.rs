//! A database with an index class that the application provides: `cargo run --example custom_index -- [DIRECTORY]`.

mod short_texts;

use std::sync::Arc;

use ilion::index::IndexClasses;
use ilion::{Database, Error, Settings};

use short_texts::ShortTexts;

fn main() -> Result<(), Error> {
    let directory = std::env::args().nth(1);
    let settings = Settings {
        directory: directory.unwrap_or_else(|| "ilion-example".to_owned()).into(),
        ..Settings::default()
    };
    let classes = IndexClasses::own().with(Arc::new(ShortTexts));
    let database = Database::open_with_indexes(&settings, classes)?;
    for statement in [
        "CREATE KEYSPACE IF NOT EXISTS people WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE IF NOT EXISTS people.members (id int PRIMARY KEY, name text)",
        "CREATE CUSTOM INDEX IF NOT EXISTS by_name ON people.members (name)
           USING 'com.example.ShortTexts' WITH OPTIONS = {'bytes_max': '20'}",
    ] {
        database.execute(statement, ())?;
    }
    let insert = database.prepare("INSERT INTO people.members (id, name) VALUES (?, ?)")?;
    insert.execute((1, "Ada"))?;
    if let Err(error) = insert.execute((2, "a name that is longer than it may be")) {
        println!("refused: {error}");
    }
    for row in database.execute("SELECT id FROM people.members WHERE name = ?", ("Ada",))? {
        println!("{}", row?.get::<i32>("id")?);
    }
    Ok(())
}
