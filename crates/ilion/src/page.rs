//! Serialized values, and results page by page: for bindings to other languages, and for programs that learn the columns at run time.

use std::sync::Arc;
use std::time::Duration;

use ilion_query::{ColumnSpec, ExecuteOptions, Value, Values};

use crate::database::Paged;
use crate::rows::Cells;
use crate::{Batch, Database, Error, Rows, Statement};

/// How a page is read. The defaults are those of [`Database::execute`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// use std::time::Duration;
///
/// let options = ilion::PageOptions { rows: Some(2), timeout: Some(Duration::from_secs(1)), ..Default::default() };
/// let page = database.execute_page("SELECT * FROM system_schema.columns", options)?;
/// assert_eq!(page.row_count(), 2);
/// assert!(page.paging_state().is_some(), "there are more rows");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct PageOptions {
    /// Rows in a page; `None` is 5000, 0 is all rows.
    pub rows: Option<u32>,
    /// Longest time for a SELECT of more than one row; writes have no timeout. `None` takes the one of the settings.
    pub timeout: Option<Duration>,
    /// The [`Page::paging_state`] of the page before.
    pub paging_state: Option<Vec<u8>>,
}

/// Some rows of a result, and how to read the next ones.
///
/// ```
/// use ilion::{Bound, PageOptions};
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let tables = database.prepare("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?")?;
/// let mut options = PageOptions { rows: Some(10), ..PageOptions::default() };
/// loop {
///     let page = tables.execute_page(vec![Bound::Bytes("system".into())], options.clone())?;
///     assert_eq!(&*page.columns()[0].name, "table_name");
///     for mut cells in page.rows() {
///         println!("{:?}", cells.next());
///     }
///     options.paging_state = page.paging_state().map(<[u8]>::to_vec);
///     if options.paging_state.is_none() {
///         break;
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Page {
    columns: Arc<[ColumnSpec]>,
    cells: Arc<Vec<u8>>,
    row_count: u32,
    paging_state: Option<Vec<u8>>,
}

impl PageOptions {
    fn with(self, values: Values) -> ExecuteOptions {
        ExecuteOptions {
            values,
            page_size: self.rows,
            paging_state: self.paging_state.map(Into::into),
            timeout: self.timeout,
            ..ExecuteOptions::default()
        }
    }
}

impl Page {
    /// Requires: no row of `rows` was read.
    fn of(rows: Rows) -> Self {
        Self {
            columns: rows.columns,
            cells: rows.page,
            row_count: rows.rows_left,
            paging_state: rows.next.map(Paged::into_paging_state),
        }
    }

    /// The columns; empty if the statement has no result.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let page = database.execute_page("SELECT key, cluster_name FROM system.local", ilion::PageOptions::default())?;
    /// assert_eq!(&*page.columns()[0].name, "key");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// Number of rows.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let page = database.execute_page("SELECT key, cluster_name FROM system.local", ilion::PageOptions::default())?;
    /// assert_eq!(page.row_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn row_count(&self) -> u32 {
        self.row_count
    }

    /// Where the next page begins, for [`PageOptions`]; `None` after the last page. A page may be empty although another one follows.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let page = database.execute_page("SELECT key, cluster_name FROM system.local", ilion::PageOptions::default())?;
    /// assert_eq!(page.paging_state(), None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paging_state(&self) -> Option<&[u8]> {
        self.paging_state.as_deref()
    }

    /// The rows. Each iterates over its cells, serialized as in the native protocol; `None` is null.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let page = database.execute_page("SELECT key, cluster_name FROM system.local", ilion::PageOptions::default())?;
    /// let mut rows = page.rows();
    /// let mut cells = rows.next().ok_or("no row")?;
    /// assert_eq!(cells.next(), Some(Some(b"local".as_slice())));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn rows(&self) -> impl Iterator<Item = impl ExactSizeIterator<Item = Option<&[u8]>>> {
        let mut rest = self.cells.as_slice();
        (0..self.row_count).map(move |_| {
            let cells = Cells::of(rest, self.columns.len());
            rest = cells.clone().skip_all();
            cells
        })
    }
}

impl Database {
    /// Executes a statement without values, and reads a page of its result.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// let options = ilion::PageOptions { rows: Some(1), ..Default::default() };
    /// let page = database.execute_page("SELECT keyspace_name FROM system_schema.keyspaces", options)?;
    /// assert_eq!(page.row_count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::execute`]; or the paging state is not of this statement.
    pub fn execute_page(&self, cql: &str, options: PageOptions) -> Result<Page, Error> {
        self.execute_with(cql, options.with(Values::None)).map(Page::of)
    }
}

impl Statement {
    /// Names and types of the bind markers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// let types: Vec<String> = insert.markers().iter().map(|marker| marker.ty.to_string()).collect();
    /// assert_eq!(types, ["int", "text"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn markers(&self) -> &[ColumnSpec] {
        &self.prepared.variables
    }

    /// Executes the statement with a value for each marker, and reads a page of its result.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let song = database.prepare("SELECT title FROM k.songs WHERE id = ?")?;
    /// let id = ilion::Bound::Bytes(7_i32.to_be_bytes().to_vec().into());
    /// let page = song.execute_page(vec![id], ilion::PageOptions::default())?;
    /// assert_eq!(page.row_count(), 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Statement::execute`]; or the paging state is not of this statement.
    pub fn execute_page(&self, values: Vec<Value>, options: PageOptions) -> Result<Page, Error> {
        self.execute_with(options.with(Values::Positional(values)))
            .map(Page::of)
    }
}

impl Batch {
    /// Executes the batch. Its result fits one page.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let mut batch = database.batch(ilion::BatchKind::Logged);
    /// batch.add_cql("INSERT INTO k.songs (id, title) VALUES (7, 'Tush') IF NOT EXISTS", ())?;
    /// let page = batch.execute_page()?;
    /// assert_eq!(&*page.columns()[0].name, "[applied]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::execute`].
    pub fn execute_page(&self) -> Result<Page, Error> {
        self.execute().map(Page::of)
    }
}
