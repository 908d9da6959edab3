//! Ilion: a Cassandra-compatible column-family store, in your own process.
//!
//! [`Database::open`] opens a data directory, created if absent; [`Database::execute`] executes CQL; [`Database::prepare`]
//! prepares a statement that is executed often. Results are read page by page during the iteration.
//!
//! ```no_run
//! # fn main() -> Result<(), ilion::Error> {
//! let database = ilion::Database::open("music")?;
//! database.execute(
//!     "CREATE KEYSPACE IF NOT EXISTS music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
//!     (),
//! )?;
//! database.execute("CREATE TABLE IF NOT EXISTS music.songs (id int PRIMARY KEY, title text)", ())?;
//! let insert = database.prepare("INSERT INTO music.songs (id, title) VALUES (?, ?)")?;
//! insert.execute((1, "La Grange"))?;
//! for row in database.execute("SELECT id, title FROM music.songs", ())? {
//!     let row = row?;
//!     println!("{}: {}", row.get::<i32>("id")?, row.get::<String>("title")?);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `database` | [`Database`], [`Statement`] |
//! | `rows` | [`Rows`], [`Row`] |
//! | `arguments` | [`Arguments`], [`ToValue`]: Rust values as bind values |
//! | `from_value` | [`FromValue`]: columns as Rust values |
//! | `error` | [`Error`] |
//! | [`index`] | the interface for indexes of other crates |

mod arguments;
mod database;
mod error;
mod from_value;
mod rows;

pub use arguments::{Arguments, ToValue};
pub use database::{Database, Statement};
pub use error::Error;
pub use from_value::FromValue;
pub use ilion_server::settings::Settings;
pub use ilion_types::{CqlType, Decimal, Duration, Uuid, Value};
pub use rows::{Row, Rows};

/// The interface for classes of indexes, for [`Database::open_with_indexes`]. `examples/custom_index` is a small example.
pub mod index {
    pub use ilion_index::*;
    pub use ilion_rows as rows;
    pub use ilion_schema as schema;
}
