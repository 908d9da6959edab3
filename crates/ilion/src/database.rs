//! The database and its statements.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, RealEnv};
use ilion_index::IndexClasses;
use ilion_node::{Counted, Node, OpenError, Opening, SchemaListener as _};
use ilion_query::{ClientState, ExecuteOptions, Executed, Outcome, Prepared, Values};
use ilion_settings::Settings;
use parking_lot::Mutex;

use crate::embedded_settings::{embedded_settings, named_settings};
use crate::{Arguments, Error, Row, Rows};

/// Rows in a page.
const PAGE_ROWS: u32 = 5000;

/// An open database. Clones share it; it closes when the last clone, statement and result is dropped. Threads may use it at the
/// same time.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let directory = directory.path();
/// let database = ilion::Database::open(directory)?;
/// database.execute(
///     "CREATE KEYSPACE music WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
///     (),
/// )?;
/// database.execute("CREATE TABLE music.songs (id int PRIMARY KEY, title text)", ())?;
/// database.execute("INSERT INTO music.songs (id, title) VALUES (?, ?)", (1, "Tush"))?;
/// let row = database.query_one("SELECT title FROM music.songs WHERE id = ?", (1,))?;
/// assert_eq!(row.get::<String>("title")?, "Tush");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    node: Node,
    /// Locked only to copy or change it. `USE` changes it for the whole database.
    client: Mutex<ClientState>,
}

/// A prepared statement. It stays valid when its table changes.
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// let tables = database.prepare("SELECT table_name FROM system_schema.tables WHERE keyspace_name = ?")?;
/// for keyspace in ["system", "system_schema"] {
///     println!("{keyspace}: {} tables", tables.execute((keyspace,))?.count());
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Statement {
    pub(crate) database: Database,
    pub(crate) prepared: Arc<Prepared>,
}

/// The statement, which is executed again for each page.
#[derive(Clone)]
enum Source {
    Text(Arc<str>),
    Prepared(Arc<Prepared>),
}

/// How to read the rest of a result.
pub(crate) struct Paged {
    database: Database,
    source: Source,
    /// Include the paging state.
    options: ExecuteOptions,
}

/// The environment of the operating system, with the umask of the settings.
fn real_env(settings: &Settings) -> Arc<dyn Env> {
    let env = RealEnv::new();
    env.set_umask(settings.umask.0);
    env
}

impl Database {
    /// Opens a directory, created if absent, and recovers what was written before. Writes are durable when they return. SELECTs have
    /// no timeout.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path();
    /// let database = ilion::Database::open(directory)?;
    /// database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// assert!(ilion::Database::open(directory).is_err(), "it is in use");
    /// drop(database);
    /// let database = ilion::Database::open(directory)?;
    /// database.execute("USE k", ())?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The directory is in use, damaged or belongs to another cluster, or the operating system refuses.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        Self::open_with(&embedded_settings(directory.into()))
    }

    /// Opens with these settings. Those that only a server uses have no effect: network, log, audit log, spans.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// let settings = ilion::Settings {
    ///     directory: directory.path().join("music"),
    ///     ..ilion::Settings::default()
    /// };
    /// let database = ilion::Database::open_with(&settings)?;
    /// assert_eq!(database.execute("SELECT * FROM system.local", ())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(settings: &Settings) -> Result<Self, Error> {
        Self::open_on(real_env(settings), settings)
    }

    /// Opens with additional classes of indexes, which `CREATE CUSTOM INDEX .. USING` finds by name. A table that has an index of an
    /// unknown class can be read, without the index, but not written.
    ///
    /// ```
    /// use ilion::index::IndexClasses;
    ///
    /// # let directory = tempfile::tempdir()?;
    /// let settings = ilion::Settings {
    ///     directory: directory.path().join("music"),
    ///     ..ilion::Settings::default()
    /// };
    /// // More classes are added by `with`.
    /// let database = ilion::Database::open_with_indexes(&settings, IndexClasses::own())?;
    /// assert_eq!(database.execute("SELECT * FROM system.local", ())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_indexes(settings: &Settings, classes: IndexClasses) -> Result<Self, Error> {
        let opening = Opening {
            index_classes: classes,
            ..Opening::default()
        };
        Ok(Self::over(Node::open_alone(
            real_env(settings),
            settings,
            opening,
        )?))
    }

    /// Opens with settings by name, as a file or a command line has them. Settings that are not named are those of [`Self::open`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let directory = directory.path();
    /// let database = ilion::Database::open_named(directory, [("commitlog_sync", "periodic"), ("key_cache_size", "8MiB")])?;
    /// # drop(database);
    /// let refused = ilion::Database::open_named(directory, [("native_transport_port", "9042")]).err();
    /// assert!(refused.is_some_and(|refused| refused.to_string().contains("native_transport_port")));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`]; or a name is unknown, a value cannot be used, or only a server uses the setting.
    pub fn open_named<'a>(
        directory: impl Into<PathBuf>,
        settings: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        Self::open_with(&named_settings(directory.into(), settings).map_err(OpenError::Settings)?)
    }

    /// Opens with another environment (files, clock and randomness); for tests.
    ///
    /// ```
    /// let env = ilion_env::MemEnv::new(7);
    /// let settings = ilion::Settings {
    ///     directory: "/music".into(),
    ///     ..ilion::Settings::default()
    /// };
    /// let database = ilion::Database::open_on(env.shared(), &settings)?;
    /// assert_eq!(database.execute("SELECT * FROM system.local", ())?.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_on(env: Arc<dyn Env>, settings: &Settings) -> Result<Self, Error> {
        Ok(Self::over(Node::open(env, settings)?))
    }

    fn over(node: Node) -> Self {
        let client = Mutex::default();
        Self {
            inner: Arc::new(Inner { node, client }),
        }
    }

    /// Executes a statement with values for its bind markers. Use [`Self::prepare`] for a statement that is executed often.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (?, ?)", (1, "La Grange"))?;
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (?, ?)", (2, None::<String>))?;
    /// let titles = database.execute("SELECT title FROM k.songs", ())?.read::<(Option<String>,)>();
    /// assert_eq!(titles.collect::<Result<Vec<_>, _>>()?, [(Some("La Grange".to_owned()),), (None,)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The statement failed, or a value does not fit.
    pub fn execute(&self, cql: &str, arguments: impl Arguments) -> Result<Rows, Error> {
        if arguments.count() == 0 {
            return self.execute_with(cql, ExecuteOptions::default());
        }
        self.prepare(cql)?.execute(arguments)
    }

    /// Executes a statement without values, with these options.
    pub(crate) fn execute_with(&self, cql: &str, options: ExecuteOptions) -> Result<Rows, Error> {
        self.run(Source::Text(cql.into()), options)
    }

    /// Executes a statement that returns one row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let count = "SELECT count(*) FROM k.songs";
    /// assert_eq!(database.query_one(count, ())?.get::<i64>(0)?, 0);
    /// let missing = database.query_one("SELECT * FROM k.songs WHERE id = ?", (1,));
    /// assert!(matches!(missing, Err(ilion::Error::NoRow)));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::execute`]; or the result has no row ([`Error::NoRow`]), or more than one ([`Error::SeveralRows`]).
    pub fn query_one(&self, cql: &str, arguments: impl Arguments) -> Result<Row, Error> {
        self.execute(cql, arguments)?.one()
    }

    /// Executes a statement that returns at most one row; `None` without a row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// assert!(database.query_opt("SELECT * FROM k.songs WHERE id = ?", (1,))?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::execute`]; or the result has more than one row ([`Error::SeveralRows`]).
    pub fn query_opt(&self, cql: &str, arguments: impl Arguments) -> Result<Option<Row>, Error> {
        self.execute(cql, arguments)?.opt()
    }

    /// Prepares a statement.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// for (id, title) in [(1, "La Grange"), (2, "Tush")] {
    ///     insert.execute((id, title))?;
    /// }
    /// assert!(database.prepare("INSERT INTO k.albums (id) VALUES (?)").is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The text is no CQL, or does not fit the schema.
    pub fn prepare(&self, cql: &str) -> Result<Statement, Error> {
        let client = self.inner.client.lock().clone();
        let prepared = self.inner.node.processor().prepare(&client, cql, None)?;
        Ok(Statement {
            database: self.clone(),
            prepared,
        })
    }

    /// The keyspace of names without a keyspace, as `USE` has set it.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// assert_eq!(database.keyspace(), None);
    /// database.execute("USE k", ())?;
    /// assert_eq!(database.keyspace().as_deref(), Some("k"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keyspace(&self) -> Option<String> {
        self.client().keyspace
    }

    /// Flushes everything, so that the next start has nothing to replay.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// database.execute("INSERT INTO k.songs (id, title) VALUES (1, 'Tush')", ())?;
    /// database.flush()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.inner.node.engine().drain()?)
    }

    /// The node of this database: engine, query layer, and optionally a server.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// database.node().engine().flush_all()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn node(&self) -> &Node {
        &self.inner.node
    }

    fn run(&self, source: Source, options: ExecuteOptions) -> Result<Rows, Error> {
        let options = ExecuteOptions {
            page_size: options.page_size.or(Some(PAGE_ROWS)),
            ..options
        };
        let executed = self.execute_counted(&source, &options)?;
        self.rows(executed, |paging_state| {
            Some(Paged {
                database: self.clone(),
                source,
                options: ExecuteOptions {
                    paging_state: Some(paging_state.into()),
                    ..options
                },
            })
        })
    }

    /// The rows of an executed statement. `next` makes the [`Paged`] of the next page from a paging state.
    pub(crate) fn rows(
        &self,
        executed: Executed,
        next: impl FnOnce(Vec<u8>) -> Option<Paged>,
    ) -> Result<Rows, Error> {
        match executed.outcome {
            Outcome::Rows(result) => Ok(Rows::new(result, next)),
            Outcome::SchemaChange(changes) => {
                if !changes.is_empty() {
                    self.inner.node.local().schema_changed();
                }
                Ok(Rows::none())
            }
            Outcome::Void | Outcome::SetKeyspace(_) => Ok(Rows::none()),
        }
    }

    /// True if both are handles of the same open database.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// The state that statements share: the keyspace of `USE`.
    pub(crate) fn client(&self) -> ClientState {
        self.inner.client.lock().clone()
    }

    /// Executes the statement, and counts its costs for `system_views.statements`.
    fn execute_counted(&self, source: &Source, options: &ExecuteOptions) -> Result<Executed, Error> {
        let node = &self.inner.node;
        let counted = Counted::begin(node);
        let executed = self.execute_durably(source, options);
        match source {
            Source::Prepared(prepared) => counted.finish(node, prepared.shape(), executed.is_err()),
            Source::Text(cql) => {
                let shape = executed.as_ref().ok().and_then(|executed| executed.shape.clone());
                let by_text = || {
                    let client = self.inner.client.lock().clone();
                    node.processor().shape_of(&client, cql, None)
                };
                counted.finish(node, &shape.unwrap_or_else(by_text), executed.is_err());
            }
        }
        executed
    }

    /// Executes the statement, and waits until writes are durable.
    fn execute_durably(&self, source: &Source, options: &ExecuteOptions) -> Result<Executed, Error> {
        let executed = self.execute_once(source, options)?;
        self.inner.node.wait_durable(&executed)?;
        Ok(executed)
    }

    fn execute_once(&self, source: &Source, options: &ExecuteOptions) -> Result<Executed, Error> {
        let processor = self.inner.node.processor();
        let executed = match source {
            Source::Text(cql) => {
                let mut client = self.inner.client.lock().clone();
                processor.query(&mut client, cql, options)
            }
            Source::Prepared(prepared) => self.execute_prepared(prepared, options),
        }?;
        if let Outcome::SetKeyspace(keyspace) = &executed.outcome {
            self.inner.client.lock().keyspace = Some(keyspace.clone());
        }
        Ok(executed)
    }
}

impl Database {
    /// Executes a prepared statement. If a schema change has invalidated it, prepares it again, as drivers do.
    fn execute_prepared(
        &self,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, ilion_query::Error> {
        let processor = self.inner.node.processor();
        // A prepared statement knows its keyspace, so the shared state of `USE` and its lock are not needed.
        let mut client = ClientState::default();
        match processor.execute(&mut client, prepared, options) {
            Err(ilion_query::Error::Unprepared { .. }) => {
                let again = processor.prepare(&client, prepared.text(), prepared.keyspace())?;
                processor.execute(&mut client, &again, options)
            }
            executed => executed,
        }
    }
}

impl Statement {
    /// Executes the statement with values for its bind markers.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// insert.execute((1, "La Grange"))?;
    /// assert!(insert.execute((1,)).is_err(), "a value is missing");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The statement failed, or a value does not fit.
    pub fn execute(&self, arguments: impl Arguments) -> Result<Rows, Error> {
        self.execute_values(arguments.to_values(&self.prepared.variables)?)
    }

    /// Executes the statement with values that fit its markers.
    pub(crate) fn execute_values(&self, values: Values) -> Result<Rows, Error> {
        self.execute_with(ExecuteOptions {
            values,
            ..ExecuteOptions::default()
        })
    }

    /// Executes the statement with these options, which include the values.
    pub(crate) fn execute_with(&self, options: ExecuteOptions) -> Result<Rows, Error> {
        self.database
            .run(Source::Prepared(self.prepared.clone()), options)
    }

    /// Executes the statement, which returns one row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let count = database.prepare("SELECT count(*) FROM k.songs WHERE id IN (?, ?)")?;
    /// assert_eq!(count.query_one((1, 2))?.get::<i64>(0)?, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::execute`]; or the result has no row ([`Error::NoRow`]), or more than one ([`Error::SeveralRows`]).
    pub fn query_one(&self, arguments: impl Arguments) -> Result<Row, Error> {
        self.execute(arguments)?.one()
    }

    /// Executes the statement, which returns at most one row; `None` without a row.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let song = database.prepare("SELECT * FROM k.songs WHERE id = ?")?;
    /// assert!(song.query_opt((1,))?.is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::execute`]; or the result has more than one row ([`Error::SeveralRows`]).
    pub fn query_opt(&self, arguments: impl Arguments) -> Result<Option<Row>, Error> {
        self.execute(arguments)?.opt()
    }

    /// Executes the statement with values that are serialized as in the native protocol.
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.songs (id int PRIMARY KEY, title text)", ())?;
    /// let insert = database.prepare("INSERT INTO k.songs (id, title) VALUES (?, ?)")?;
    /// insert.execute_serialized(&[&7_i32.to_be_bytes(), b"Tush"])?;
    /// let row = database.query_one("SELECT title FROM k.songs WHERE id = 7", ())?;
    /// assert_eq!(row.get::<String>("title")?, "Tush");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The statement failed, or the bytes are not a value of the marker's type.
    pub fn execute_serialized(&self, values: &[&[u8]]) -> Result<Rows, Error> {
        let bytes = |value: &&[u8]| ilion_query::Value::Bytes(value.to_vec().into());
        self.execute_values(Values::Positional(values.iter().map(bytes).collect()))
    }
}

impl Paged {
    /// Reads the next page.
    pub fn read(self) -> Result<Rows, Error> {
        self.database.run(self.source, self.options)
    }

    /// The paging state, with which the caller reads the next page itself.
    pub fn into_paging_state(self) -> Vec<u8> {
        self.options.paging_state.map(Into::into).unwrap_or_default()
    }
}
