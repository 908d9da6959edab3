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
//! that embeds the library does without: `ilion = { version = "0.1", default-features = false, features = ["derive"] }`. With the feature
//! `async` there is an interface for tasks of tokio, and with `serde` rows are read as types that implement `Deserialize`.
//!
//! | module | what |
//! | --- | --- |
//! | `database` | [`Database`], [`Statement`] |
//! | `embedded_settings` | the settings of a database without a server |
//! | `asynchronous` | `AsyncDatabase`: the same for tasks of tokio (feature `async`) |
//! | `batch` | [`Batch`] |
//! | `rows` | [`Rows`], [`Row`] |
//! | `page` | [`Page`]: serialized values and pages, for bindings to other languages |
//! | `column` | [`Column`]: names and indexes of columns |
//! | `arguments` | [`Arguments`]: all bind values of a statement |
//! | `to_value` | [`ToValue`]: Rust values as bind values |
//! | `from_value` | [`FromValue`]: columns as Rust values |
//! | `from_row` | [`FromRow`]: rows as Rust values |
//! | `deserialize` | rows as types with serde's `Deserialize` (feature `serde`) |
//! | `tuples` | a macro for what tuples of each length need |
//! | `calendar` | [`Date`], [`Time`] |
//! | `error` | [`Error`] |
//! | `reexports` | types of other crates |
//! | [`index`] | the interface for indexes of other crates |

#![deny(missing_docs)]

mod arguments;
#[cfg(feature = "async")]
mod asynchronous;
mod batch;
mod calendar;
mod column;
mod database;
#[cfg(feature = "serde")]
mod deserialize;
mod embedded_settings;
mod error;
mod from_row;
mod from_value;
mod page;
mod reexports;
mod rows;
mod to_value;
mod tuples;

pub use arguments::Arguments;
#[cfg(feature = "async")]
pub use asynchronous::{AsyncDatabase, AsyncRows, AsyncStatement};
pub use batch::Batch;
pub use calendar::{Date, Time};
pub use column::Column;
pub use database::{Database, Statement};
pub use error::Error;
pub use from_row::FromRow;
pub use from_value::FromValue;
pub use page::{Page, PageOptions};
pub use reexports::{
    BatchKind, BigInt, Bound, ColumnSpec, Consistency, CqlType, Decimal, Duration, EngineError,
    FailureReason, LocalError, OpenError, Settings, Sign, StatementError, UserType, Uuid, Value, WriteType,
};
pub use rows::{Row, Rows};
pub use to_value::ToValue;

/// Implements [`trait@FromRow`] for a struct.
///
/// A field is read from the column of its name, or of the name in `#[ilion(rename = "..")]`. Other columns of the row are not looked
/// at. `#[ilion(skip)]` leaves a field at its `Default`. The fields of a tuple struct are read by position, and there is one for each
/// column. Names of columns are compared as they are stored: without quotes CQL stores them in lower case.
///
/// ```
/// use ilion::FromRow;
///
/// #[derive(Debug, PartialEq, FromRow)]
/// struct Song {
///     id: i32,
///     #[ilion(rename = "title")]
///     name: Option<String>,
///     #[ilion(skip)]
///     times_played: u32,
/// }
///
/// #[derive(FromRow)]
/// struct Pair(i32, String);
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
/// # database.execute("INSERT INTO k.songs (id, title) VALUES (7, 'Tush')", ())?;
/// let song: Song = database.query_one("SELECT * FROM k.songs WHERE id = ?", (7,))?.read()?;
/// assert_eq!(song, Song { id: 7, name: Some("Tush".to_owned()), times_played: 0 });
/// for pair in database.execute("SELECT id, title FROM k.songs", ())?.read::<Pair>() {
///     let Pair(id, title) = pair?;
///     println!("{id} {title}");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// A field whose type no column has does not compile:
///
/// ```compile_fail
/// #[derive(ilion::FromRow)]
/// struct Song {
///     id: std::process::Command,
/// }
/// ```
#[cfg(feature = "derive")]
pub use ilion_derive::FromRow;

/// Implements [`Arguments`] for a struct: its fields are the bind values of a statement.
///
/// A field is bound to the markers of its name, or of the name in `#[ilion(rename = "..")]`. A marker `:low` is named `low`; a marker
/// `?` is named after its column, so two of them for one column get the same value. Each marker needs a field, and each field a
/// marker, unless it is `#[ilion(skip)]`. The fields of a tuple struct are bound by position.
///
/// ```
/// use ilion::ToValues;
///
/// #[derive(ToValues)]
/// struct Song<'a> {
///     title: &'a str,
///     id: i32,
///     #[ilion(skip)]
///     is_new: bool,
/// }
///
/// #[derive(ToValues)]
/// struct Between {
///     low: i32,
///     high: i32,
/// }
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
/// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
/// insert.execute(Song { title: "Tush", id: 7, is_new: true })?;
/// let between = "SELECT id FROM k.songs WHERE id >= :low AND id <= :high ALLOW FILTERING";
/// assert_eq!(database.query_one(between, Between { low: 1, high: 9 })?.get::<i32>(0)?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "derive")]
pub use ilion_derive::ToValues;

/// What derived implementations call. Not for others: it may change with any version.
#[doc(hidden)]
pub mod derived {
    pub use crate::arguments::{by_name, by_position};
    pub use ilion_query::{ColumnSpec, Values};
}

/// The interface for classes of indexes, for [`Database::open_with_indexes`]. `examples/custom_index` is a small example.
pub mod index {
    pub use ilion_index::*;
    pub use ilion_rows as rows;
    pub use ilion_schema as schema;
}
