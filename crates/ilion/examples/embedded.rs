//! Ilion inside another program: `cargo run --example embedded -- [DIRECTORY]`.

use ilion::{Database, Error};

fn main() -> Result<(), Error> {
    let directory = std::env::args()
        .nth(1)
        .unwrap_or_else(|| "ilion-example".to_owned());
    let database = Database::open(&directory)?;
    database.execute(
        "CREATE KEYSPACE IF NOT EXISTS music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        (),
    )?;
    database.execute("USE music", ())?;
    database.execute(
        "CREATE TABLE IF NOT EXISTS songs (artist text, year int, title text, PRIMARY KEY (artist, year, title))",
        (),
    )?;

    let insert = database.prepare("INSERT INTO songs (artist, year, title) VALUES (?, ?, ?)")?;
    for (year, title) in [(1973, "La Grange"), (1975, "Tush"), (1983, "Sharp Dressed Man")] {
        insert.execute(("ZZ Top", year, title))?;
    }

    let since = database.execute(
        "SELECT year, title FROM songs WHERE artist = ? AND year >= ?",
        ("ZZ Top", 1975),
    )?;
    for row in since {
        let row = row?;
        println!("{} {}", row.get::<i32>("year")?, row.get::<String>("title")?);
    }
    Ok(())
}
