//! Rows as Rust values.

use crate::tuples::for_tuples;
use crate::{Error, FromValue, Row, Rows};

/// A Rust type that a row can be read as: a tuple of up to 12 values, one for each column in the order of the columns; or a type of
/// your own, by `#[derive(FromRow)]` or as here.
///
/// ```
/// use ilion::{Error, FromRow, Row};
///
/// struct Song {
///     id: i32,
///     title: Option<String>,
/// }
///
/// impl FromRow for Song {
///     fn from_row(row: &Row) -> Result<Self, Error> {
///         Ok(Self { id: row.get("id")?, title: row.get("title")? })
///     }
/// }
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
/// # database.execute("INSERT INTO k.songs (id, title) VALUES (7, 'Tush')", ())?;
/// let song: Song = database.query_one("SELECT id, title FROM k.songs", ())?.read()?;
/// assert_eq!((song.id, song.title.as_deref()), (7, Some("Tush")));
/// let pair: (i32, String) = database.query_one("SELECT id, title FROM k.songs", ())?.read()?;
/// assert_eq!(pair, (7, "Tush".to_owned()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromRow: Sized {
    /// Converts a row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// use ilion::FromRow;
    ///
    /// let row = database.query_one("SELECT key, cluster_name FROM system.local", ())?;
    /// let (key, _): (String, String) = FromRow::from_row(&row)?;
    /// assert_eq!(key, "local");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A column does not exist, or has another type.
    fn from_row(row: &Row) -> Result<Self, Error>;
}

impl Rows {
    /// The rows as values of a Rust type.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let tables = database.execute("SELECT keyspace_name, table_name FROM system_schema.tables", ())?;
    /// let tables: Vec<(String, String)> = tables.read().collect::<Result<_, _>>()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read<T: FromRow>(self) -> impl Iterator<Item = Result<T, Error>> {
        self.map(|row| T::from_row(&row?))
    }
}

impl Row {
    /// Reads the whole row as a Rust value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let row = database.query_one("SELECT key, cluster_name FROM system.local", ())?;
    /// let (key, _): (String, String) = row.read()?;
    /// assert_eq!(key, "local");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A column is missing, or has another type.
    pub fn read<T: FromRow>(&self) -> Result<T, Error> {
        T::from_row(self)
    }
}

macro_rules! tuple_from_row {
    ($($name:ident $index:tt),+) => {
        impl<$($name: FromValue),+> FromRow for ($($name,)+) {
            fn from_row(row: &Row) -> Result<Self, Error> {
                const COUNT: usize = [$($index),+].len();
                if let Some(unread) = row.column_names().nth(COUNT) {
                    return Err(Error::Column {
                        name: unread.to_owned(),
                        problem: format!("the row has more than {COUNT} columns"),
                    });
                }
                Ok(($(row.get::<$name>($index)?,)+))
            }
        }
    };
}

for_tuples!(tuple_from_row);
