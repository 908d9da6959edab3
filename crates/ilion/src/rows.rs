//! Results, read page by page.

use std::sync::Arc;

use ilion_query::{ColumnSpec, ResultSet};
use ilion_types::{CqlType, Value};

use crate::database::Paged;
use crate::{Column, Error, FromValue};

/// The rows of a result, as an iterator. Pages of some thousand rows are read during the iteration, so a result may be larger than
/// memory. A statement without a result has no rows.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// for row in database.execute("SELECT keyspace_name FROM system_schema.keyspaces", ())? {
///     println!("{}", row?.get::<String>("keyspace_name")?);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rows {
    pub(crate) columns: Arc<[ColumnSpec]>,
    pub(crate) page: Arc<Vec<u8>>,
    /// Offset of the next row in the page.
    at: usize,
    pub(crate) rows_left: u32,
    /// How to read the next page; `None` if this is the last one.
    pub(crate) next: Option<Paged>,
}

/// A row of a result.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let row = database.query_one("SELECT cluster_name, tokens FROM system.local", ())?;
/// let name: String = row.get("cluster_name")?;
/// let tokens: Vec<String> = row.get(1)?;
/// assert_eq!(row.column_names().collect::<Vec<_>>(), ["cluster_name", "tokens"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Row {
    columns: Arc<[ColumnSpec]>,
    /// The page, which all of its rows share.
    page: Arc<Vec<u8>>,
    at: usize,
}

/// Iterates over encoded cells: each is a length and its bytes; a negative length is null.
#[derive(Clone, Debug)]
pub(crate) struct Cells<'a> {
    rest: &'a [u8],
    count: usize,
}

impl Rows {
    pub(crate) fn none() -> Self {
        Self {
            columns: Arc::new([]),
            page: Arc::default(),
            at: 0,
            rows_left: 0,
            next: None,
        }
    }

    pub(crate) fn new(result: ResultSet, next: impl FnOnce(Vec<u8>) -> Option<Paged>) -> Self {
        Self {
            columns: result.columns,
            page: Arc::new(result.cells.into_vec()),
            at: 0,
            rows_left: result.row_count,
            next: result.paging_state.and_then(next),
        }
    }

    /// Names of the columns.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let rows = database.execute("SELECT key, cluster_name FROM system.local", ())?;
    /// assert_eq!(rows.column_names().collect::<Vec<_>>(), ["key", "cluster_name"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// The only row of the result.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let local = database.execute("SELECT key FROM system.local", ())?.one()?;
    /// assert_eq!(local.get::<String>("key")?, "local");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no row, or more than one, or the next page cannot be read.
    pub fn one(self) -> Result<Row, Error> {
        self.opt()?.ok_or(Error::NoRow)
    }

    /// The only row of the result; `None` if the result has no row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// assert!(database.execute("SELECT * FROM k.songs", ())?.opt()?.is_none());
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (1, 'Tush')", ())?;
    /// assert!(database.execute("SELECT * FROM k.songs", ())?.opt()?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is more than one row, or the next page cannot be read.
    pub fn opt(mut self) -> Result<Option<Row>, Error> {
        let first = self.next().transpose()?;
        match self.next().transpose()? {
            Some(_) => Err(Error::SeveralRows),
            None => Ok(first),
        }
    }

    /// The next row of the page in memory.
    pub(crate) fn next_of_page(&mut self) -> Option<Row> {
        self.rows_left = self.rows_left.checked_sub(1)?;
        let row = Row {
            columns: self.columns.clone(),
            page: self.page.clone(),
            at: self.at,
        };
        self.at = self.page.len() - row.cells_at().skip_all().len();
        Some(row)
    }
}

#[cfg(feature = "async")]
impl Rows {
    /// Takes the next page, for a caller that reads it on another thread.
    pub(crate) fn take_next_page(&mut self) -> Option<Paged> {
        self.next.take()
    }
}

impl Iterator for Rows {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(row) = self.next_of_page() {
                return Some(Ok(row));
            }
            // A page may be empty although more pages follow.
            match self.next.take()?.read() {
                Ok(rows) => *self = rows,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl<'a> Cells<'a> {
    /// The next `count` cells.
    pub(crate) fn of(rest: &'a [u8], count: usize) -> Self {
        Self { rest, count }
    }

    /// The bytes after these cells.
    pub(crate) fn skip_all(mut self) -> &'a [u8] {
        self.by_ref().for_each(drop);
        self.rest
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        self.count = self.count.checked_sub(1)?;
        let Some((length, rest)) = self.rest.split_first_chunk::<4>() else {
            return Some(None);
        };
        self.rest = rest;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            return Some(None);
        };
        let (cell, rest) = self.rest.split_at(length.min(self.rest.len()));
        self.rest = rest;
        Some(Some(cell))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.count, Some(self.count))
    }
}

impl ExactSizeIterator for Cells<'_> {}

impl Row {
    /// Reads a column as a Rust value.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// database.execute("INSERT INTO k.songs (id) VALUES (7)", ())?;
    /// let row = database.query_one("SELECT id, title FROM k.songs", ())?;
    /// assert_eq!(row.get::<i32>("id")?, 7);
    /// assert_eq!(row.get::<Option<String>>(1)?, None);
    /// assert!(row.get::<String>("title").is_err(), "it is null");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no such column, or its value has another type (including null if `T` is no `Option` and no collection).
    pub fn get<T: FromValue>(&self, column: impl Column) -> Result<T, Error> {
        let index = self.find(&column).ok_or_else(|| Error::Column {
            name: column.to_string(),
            problem: "the result has no such column".to_owned(),
        })?;
        let found = &self.columns[index];
        T::from_value(&found.ty, self.value_at(index)?).map_err(|value| Error::Column {
            name: found.name.to_string(),
            problem: format!("{value:?} is no {}", std::any::type_name::<T>()),
        })
    }

    /// Names of the columns.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let row = database.query_one("SELECT key, cluster_name FROM system.local", ())?;
    /// assert_eq!(row.column_names().collect::<Vec<_>>(), ["key", "cluster_name"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// The type of a column; `None` if there is no such column.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let row = database.query_one("SELECT tokens FROM system.local", ())?;
    /// assert_eq!(row.column_type("tokens").map(ToString::to_string).as_deref(), Some("set<text>"));
    /// assert!(row.column_type("songs").is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_type(&self, column: impl Column) -> Option<&CqlType> {
        self.find(&column).map(|index| &self.columns[index].ty)
    }

    fn find(&self, column: &dyn Column) -> Option<usize> {
        column.position_in(&mut self.column_names())
    }

    /// The serialized cells, as in the native protocol; `None` is null.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// database.execute("INSERT INTO k.songs (id) VALUES (7)", ())?;
    /// let row = database.query_one("SELECT id, title FROM k.songs", ())?;
    /// assert_eq!(row.cells().collect::<Vec<_>>(), [Some(&[0, 0, 0, 7][..]), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Option<&[u8]>> {
        self.cells_at()
    }

    fn cells_at(&self) -> Cells<'_> {
        Cells::of(&self.page[self.at..], self.columns.len())
    }

    /// The values of all columns, in order.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// use ilion::Value;
    ///
    /// database.execute("INSERT INTO k.songs (id) VALUES (7)", ())?;
    /// let row = database.query_one("SELECT id, title FROM k.songs", ())?;
    /// assert_eq!(row.values()?, [Value::Int(7), Value::Null]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A cell is no value of its type: the data is damaged.
    pub fn values(&self) -> Result<Vec<Value>, Error> {
        (0..self.columns.len())
            .map(|index| self.value_at(index))
            .collect()
    }

    /// The type and the value of a column that exists.
    #[cfg(feature = "serde")]
    pub(crate) fn typed(&self, index: usize) -> Result<(&CqlType, Value), Error> {
        Ok((&self.columns[index].ty, self.value_at(index)?))
    }

    fn value_at(&self, index: usize) -> Result<Value, Error> {
        let column = &self.columns[index];
        let Some(bytes) = self.cells_at().nth(index).flatten() else {
            return Ok(Value::Null);
        };
        Value::decode(&column.ty, bytes).map_err(|error| Error::Column {
            name: column.name.to_string(),
            problem: error.to_string(),
        })
    }
}
