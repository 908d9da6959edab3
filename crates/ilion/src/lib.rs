//! Ilion: a Cassandra-compatible column-family store, in your own process.
//!
//! [`Database::open`] opens a data directory, created if absent; [`Database::execute`] executes CQL; [`Database::prepare`]
//! prepares a statement that is executed often. Results are read page by page during the iteration.
//!
//! ```
//! # let directory = tempfile::tempdir()?;
//! # let directory = directory.path().join("music");
//! let database = ilion::Database::open(directory)?;
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
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The feature `program`, which is on by default, is for the program `ilion`: server, shell, backups, clusters on Kafka, tools. A program
//! that embeds the library does without: `ilion = { version = "0.1", default-features = false }`.
//!
//! | module | what |
//! | --- | --- |
//! | `database` | [`Database`], [`Statement`] |
//! | `batch` | [`Batch`] |
//! | `rows` | [`Rows`], [`Row`] |
//! | `column` | [`Column`]: names and indexes of columns |
//! | `arguments` | [`Arguments`]: all bind values of a statement |
//! | `to_value` | [`ToValue`]: Rust values as bind values |
//! | `from_value` | [`FromValue`]: columns as Rust values |
//! | `from_row` | [`FromRow`]: rows as Rust values |
//! | `tuples` | a macro for what tuples of each length need |
//! | `calendar` | [`Date`], [`Time`] |
//! | `error` | [`Error`] |
//! | [`index`] | the interface for indexes of other crates |

#![deny(missing_docs)]

mod arguments;
mod batch;
mod calendar;
mod column;
mod database;
mod error;
mod from_row;
mod from_value;
mod rows;
mod to_value;
mod tuples;

pub use arguments::Arguments;
pub use batch::Batch;
pub use calendar::{Date, Time};
pub use column::Column;
pub use database::{Database, Statement};
pub use error::Error;
pub use from_row::FromRow;
pub use from_value::FromValue;
pub use ilion_engine::Error as EngineError;
pub use ilion_node::{LocalError, OpenError};
pub use ilion_query::{BatchKind, Consistency, Error as StatementError, FailureReason, WriteType};
pub use ilion_settings::Settings;
pub use ilion_types::{CqlType, Decimal, Duration, UserType, Uuid, Value};
pub use num_bigint::BigInt;
pub use rows::{Row, Rows};
pub use to_value::ToValue;

/// The interface for classes of indexes, for [`Database::open_with_indexes`]. `examples/custom_index` is a small example.
pub mod index {
    pub use ilion_index::*;
    pub use ilion_rows as rows;
    pub use ilion_schema as schema;
}
