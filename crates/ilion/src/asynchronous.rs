//! The database for programs with tokio.
//!
//! The engine is threads and blocking calls, so each call here runs on a thread that tokio keeps for blocking work
//! (`spawn_blocking`). The task waits without blocking its own thread.

use std::panic::resume_unwind;
use std::path::PathBuf;

use tokio::runtime::Handle;
use tokio::task::{JoinError, JoinHandle};

use crate::{Arguments, Batch, Database, Error, FromRow, Row, Rows, Settings, Statement};

/// An open database for tasks of tokio. Clones share it; [`From`] makes one of a [`Database`].
///
/// Each call takes a thread of the runtime for blocking work until it is done; `max_blocking_threads` of the runtime says how many run at
/// a time, others wait. A future that is dropped does not end its call: the statement is executed, or was. Outside of a runtime calls
/// fail with [`Error::Runtime`]. Dropping the last clone, statement and result waits until the database is closed; [`Self::close`] does so
/// without blocking the task.
///
/// ```
/// use ilion::AsyncDatabase;
///
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().to_owned();
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let database = AsyncDatabase::open(directory).await?;
/// let keyspace = "CREATE KEYSPACE music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
/// database.execute(keyspace, ()).await?;
/// database.execute("CREATE TABLE music.songs (id int PRIMARY KEY, title text)", ()).await?;
/// let insert = database.prepare("INSERT INTO music.songs (id, title) VALUES (?, ?)").await?;
/// tokio::try_join!(insert.execute((1, "La Grange")), insert.execute((2, "Tush")))?;
/// let mut songs = database.execute("SELECT id, title FROM music.songs", ()).await?;
/// while let Some(song) = songs.next().await {
///     let (id, title): (i32, String) = song?.read()?;
///     println!("{id} {title}");
/// }
/// # drop(insert);
/// database.close().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AsyncDatabase {
    database: Database,
}

/// A prepared statement of an [`AsyncDatabase`].
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().to_owned();
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let database = ilion::AsyncDatabase::open(directory).await?;
/// let tables = database.prepare("SELECT count(*) FROM system_schema.tables WHERE keyspace_name = ?").await?;
/// let (system, schema) = tokio::try_join!(tables.query_one(("system",)), tables.query_one(("system_schema",)))?;
/// assert!(system.get::<i64>(0)? > 0 && schema.get::<i64>(0)? > 0);
/// # drop(tables);
/// database.close().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct AsyncStatement {
    statement: Statement,
}

/// The rows of a result. Like [`Rows`], but the next page is read without blocking the task.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path().to_owned();
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// # runtime.block_on(async {
/// let database = ilion::AsyncDatabase::open(directory).await?;
/// let rows = database.execute("SELECT keyspace_name FROM system_schema.keyspaces", ()).await?;
/// let names: Vec<(String,)> = rows.read_all().await?;
/// assert!(names.contains(&("system".to_owned(),)));
/// database.close().await
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct AsyncRows {
    rows: Rows,
    /// The next page, which is being read. Kept here, so that no page is lost if [`Self::next`] is cancelled.
    reading: Option<JoinHandle<Result<Rows, Error>>>,
}

/// Starts a call on a thread for blocking work.
fn start<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<JoinHandle<Result<T, Error>>, Error> {
    let runtime = Handle::try_current().map_err(|error| Error::Runtime(error.to_string()))?;
    Ok(runtime.spawn_blocking(call))
}

/// Returns the result of a call, or resumes its panic in this task.
fn finished<T>(joined: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    joined.unwrap_or_else(|error| match error.try_into_panic() {
        Ok(panic) => resume_unwind(panic),
        Err(error) => Err(Error::Runtime(error.to_string())),
    })
}

async fn run<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    finished(start(call)?.await)
}

impl From<Database> for AsyncDatabase {
    fn from(database: Database) -> Self {
        Self { database }
    }
}

impl AsyncDatabase {
    /// As [`Database::open`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let database = ilion::AsyncDatabase::open(directory).await?;
    /// database.execute("USE system", ()).await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`].
    pub async fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let directory = directory.into();
        run(|| Database::open(directory)).await.map(Self::from)
    }

    /// As [`Database::open_with`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let settings = ilion::Settings { directory, ..ilion::Settings::default() };
    /// let database = ilion::AsyncDatabase::open_with(&settings).await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::open`].
    pub async fn open_with(settings: &Settings) -> Result<Self, Error> {
        let settings = settings.clone();
        run(move || Database::open_with(&settings)).await.map(Self::from)
    }

    /// The database, for its own methods. These may block the task; [`Database::batch`] does not, and [`Batch::add_cql`] hardly does.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// assert_eq!(database.database().keyspace(), None);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn database(&self) -> &Database {
        &self.database
    }

    /// As [`Database::execute`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (?, ?)", (1, "Tush")).await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::execute`].
    pub async fn execute(&self, cql: &str, arguments: impl Arguments) -> Result<AsyncRows, Error> {
        if arguments.count() > 0 {
            return self.prepare(cql).await?.execute(arguments).await;
        }
        let (database, cql) = (self.database.clone(), cql.to_owned());
        run(move || database.execute(&cql, ())).await.map(AsyncRows::of)
    }

    /// As [`Database::query_one`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// let row = database.query_one("SELECT key FROM system.local", ()).await?;
    /// assert_eq!(row.get::<String>(0)?, "local");
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::query_one`].
    pub async fn query_one(&self, cql: &str, arguments: impl Arguments) -> Result<Row, Error> {
        self.prepare(cql).await?.query_one(arguments).await
    }

    /// As [`Database::query_opt`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// assert!(database.query_opt("SELECT * FROM k.songs WHERE id = ?", (1,)).await?.is_none());
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::query_opt`].
    pub async fn query_opt(&self, cql: &str, arguments: impl Arguments) -> Result<Option<Row>, Error> {
        self.prepare(cql).await?.query_opt(arguments).await
    }

    /// As [`Database::prepare`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)").await?;
    /// insert.execute((1, "Tush")).await?;
    /// # drop(insert);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::prepare`].
    pub async fn prepare(&self, cql: &str) -> Result<AsyncStatement, Error> {
        let (database, cql) = (self.database.clone(), cql.to_owned());
        let statement = run(move || database.prepare(&cql)).await?;
        Ok(AsyncStatement { statement })
    }

    /// As [`Batch::execute`]. [`Database::batch`] makes the batch.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let mut batch = database.database().batch(ilion::BatchKind::Logged);
    /// batch.add_cql("INSERT INTO k.songs (id, title) VALUES (1, 'Tush')", ())?;
    /// batch.add_cql("DELETE FROM k.songs WHERE id = 2", ())?;
    /// database.execute_batch(batch).await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Batch::execute`].
    pub async fn execute_batch(&self, batch: Batch) -> Result<AsyncRows, Error> {
        run(move || batch.execute()).await.map(AsyncRows::of)
    }

    /// As [`Database::flush`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (1, 'Tush')", ()).await?;
    /// database.flush().await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::flush`].
    pub async fn flush(&self) -> Result<(), Error> {
        let database = self.database.clone();
        run(move || database.flush()).await
    }

    /// Drops the database on a thread that may block. If this was the last clone, statement and result, it closes the database.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// let again = directory.clone();
    /// let database = ilion::AsyncDatabase::open(directory).await?;
    /// database.close().await?;
    /// // The directory is not in use any more.
    /// let database = ilion::AsyncDatabase::open(again).await?;
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// There is no runtime.
    pub async fn close(self) -> Result<(), Error> {
        run(move || {
            drop(self);
            Ok(())
        })
        .await
    }
}

impl AsyncStatement {
    /// The statement, for [`Batch::add`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)").await?;
    /// let mut batch = database.database().batch(ilion::BatchKind::Logged);
    /// batch.add(insert.statement(), (1, "Tush"))?;
    /// database.execute_batch(batch).await?;
    /// # drop(insert);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn statement(&self) -> &Statement {
        &self.statement
    }

    /// As [`Statement::execute`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)").await?;
    /// tokio::try_join!(insert.execute((1, "La Grange")), insert.execute((2, "Tush")))?;
    /// # drop(insert);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Statement::execute`].
    pub async fn execute(&self, arguments: impl Arguments) -> Result<AsyncRows, Error> {
        self.run(arguments, Ok).await.map(AsyncRows::of)
    }

    /// As [`Statement::query_one`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let count = database.prepare("SELECT count(*) FROM k.songs WHERE id IN (?, ?)").await?;
    /// assert_eq!(count.query_one((1, 2)).await?.get::<i64>(0)?, 0);
    /// # drop(count);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Statement::query_one`].
    pub async fn query_one(&self, arguments: impl Arguments) -> Result<Row, Error> {
        self.run(arguments, Rows::one).await
    }

    /// As [`Statement::query_opt`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()).await?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ()).await?;
    /// let song = database.prepare("SELECT * FROM k.songs WHERE id = ?").await?;
    /// assert!(song.query_opt((1,)).await?.is_none());
    /// # drop(song);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Statement::query_opt`].
    pub async fn query_opt(&self, arguments: impl Arguments) -> Result<Option<Row>, Error> {
        self.run(arguments, Rows::opt).await
    }

    /// Executes the statement, and has `read` convert the result on the same blocking thread.
    async fn run<T: Send + 'static>(
        &self,
        arguments: impl Arguments,
        read: fn(Rows) -> Result<T, Error>,
    ) -> Result<T, Error> {
        // The blocking call needs owned data: arguments may borrow, serialized values do not.
        let values = arguments.to_values(&self.statement.prepared.variables)?;
        let statement = self.statement.clone();
        run(move || read(statement.execute_values(values)?)).await
    }
}

impl AsyncRows {
    fn of(rows: Rows) -> Self {
        Self { rows, reading: None }
    }

    /// Names of the columns.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// let rows = database.execute("SELECT key, cluster_name FROM system.local", ()).await?;
    /// assert_eq!(rows.column_names().collect::<Vec<_>>(), ["key", "cluster_name"]);
    /// # drop(rows);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn column_names(&self) -> impl Iterator<Item = &str> {
        self.rows.column_names()
    }

    /// The next row; `None` after the last one. The future may be dropped before it is ready: no row is lost.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// let mut rows = database.execute("SELECT key FROM system.local", ()).await?;
    /// while let Some(row) = rows.next().await {
    ///     assert_eq!(row?.get::<String>("key")?, "local");
    /// }
    /// # drop(rows);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn next(&mut self) -> Option<Result<Row, Error>> {
        loop {
            if let Some(row) = self.rows.next_of_page() {
                return Some(Ok(row));
            }
            if self.reading.is_none() {
                let page = self.rows.take_next_page()?;
                match start(move || page.read()) {
                    Ok(reading) => self.reading = Some(reading),
                    Err(error) => return Some(Err(error)),
                }
            }
            let read = finished(self.reading.as_mut()?.await);
            self.reading = None;
            match read {
                Ok(rows) => self.rows = rows,
                Err(error) => return Some(Err(error)),
            }
        }
    }

    /// All remaining rows, as values of a Rust type.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path().to_owned();
    /// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    /// # runtime.block_on(async {
    /// # let database = ilion::AsyncDatabase::open(directory).await?;
    /// let rows = database.execute("SELECT key FROM system.local", ()).await?;
    /// assert_eq!(rows.read_all::<(String,)>().await?, [("local".to_owned(),)]);
    /// # database.close().await
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A row does not fit, or a page cannot be read.
    pub async fn read_all<T: FromRow>(mut self) -> Result<Vec<T>, Error> {
        let mut all = Vec::new();
        while let Some(row) = self.next().await {
            all.push(row?.read()?);
        }
        Ok(all)
    }
}
