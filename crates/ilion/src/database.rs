//! The database and its statements.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::{Env, RealEnv};
use ilion_index::IndexClasses;
use ilion_query::{ClientState, ExecuteOptions, Executed, Outcome, Prepared, Values};
use ilion_server::settings::Settings;
use ilion_server::{Counted, Node, SchemaListener as _};
use parking_lot::Mutex;

use crate::{Arguments, Error, Rows};

/// Rows that are read at a time.
const PAGE_ROWS: u32 = 5000;

/// An open database. Clones share it; it closes when the last clone, statement and result is gone.
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    node: Node,
    /// Held while it is copied out or in. `USE` sets it for the whole database.
    client: Mutex<ClientState>,
}

/// A prepared statement.
#[derive(Clone)]
pub struct Statement {
    database: Database,
    prepared: Arc<Prepared>,
}

/// What is executed again for each page.
#[derive(Clone)]
enum Source {
    Text(Arc<str>),
    Prepared(Arc<Prepared>),
}

/// A result whose rest was not read yet.
pub(crate) struct Paged {
    database: Database,
    source: Source,
    values: Values,
    paging_state: Vec<u8>,
}

/// The operating system, with permissions as the settings say.
fn real_env(settings: &Settings) -> Arc<dyn Env> {
    let env = RealEnv::new();
    env.set_umask(settings.umask.0);
    env
}

impl Database {
    /// Opens a directory, created if absent, and recovers what was written before. Writes are durable when they return, and a
    /// SELECT may take as long as it does: no client waits for it at the other end of a socket.
    ///
    /// # Errors
    /// The directory is in use, damaged or somebody else's, or the operating system refuses.
    pub fn open(directory: impl Into<PathBuf>) -> Result<Self, Error> {
        let settings = Settings {
            directory: directory.into(),
            read_request_timeout: Duration::ZERO,
            range_request_timeout: Duration::ZERO,
            ..Settings::default()
        };
        Self::open_with(&settings)
    }

    /// Opens as the settings say; those of the network have no effect.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(settings: &Settings) -> Result<Self, Error> {
        Self::open_on(real_env(settings), settings)
    }

    /// Opens with more classes of indexes than Ilion brings: `CREATE CUSTOM INDEX .. USING` finds them by their names. A table with an
    /// index of a class that is not given is read without it, and not written.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with_indexes(settings: &Settings, classes: IndexClasses) -> Result<Self, Error> {
        Ok(Self::over(Node::open_with_indexes(
            real_env(settings),
            settings,
            classes,
        )?))
    }

    /// Opens over other files, clock and randomness; for tests.
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

    /// Executes a statement with values for its bind markers. A text that comes often is better prepared.
    ///
    /// # Errors
    /// It was not carried out, or a value does not fit.
    pub fn execute(&self, cql: &str, arguments: impl Arguments) -> Result<Rows, Error> {
        if arguments.count() == 0 {
            return self.run(Source::Text(cql.into()), Values::None, None);
        }
        self.prepare(cql)?.execute(arguments)
    }

    /// Keeps a statement to execute it often.
    ///
    /// # Errors
    /// It is not CQL, or not possible with this schema.
    pub fn prepare(&self, cql: &str) -> Result<Statement, Error> {
        let client = self.inner.client.lock().clone();
        let prepared = self.inner.node.processor().prepare(&client, cql, None)?;
        Ok(Statement {
            database: self.clone(),
            prepared,
        })
    }

    /// Brings everything to disk, so that the next start has nothing to recover.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn flush(&self) -> Result<(), Error> {
        Ok(self.inner.node.engine().drain()?)
    }

    /// The node below: engine, query layer, and a server if one is wanted.
    pub fn node(&self) -> &Node {
        &self.inner.node
    }

    fn run(&self, source: Source, values: Values, paging_state: Option<Vec<u8>>) -> Result<Rows, Error> {
        let options = ExecuteOptions {
            values,
            page_size: Some(PAGE_ROWS),
            paging_state: paging_state.map(Into::into),
            ..ExecuteOptions::default()
        };
        let executed = self.execute_counted(&source, &options)?;
        match executed.outcome {
            Outcome::Rows(result) => Ok(Rows::new(result, |paging_state| Paged {
                database: self.clone(),
                source,
                values: options.values,
                paging_state,
            })),
            Outcome::SchemaChange(changes) => {
                if !changes.is_empty() {
                    self.inner.node.local().schema_changed();
                }
                Ok(Rows::none())
            }
            Outcome::Void | Outcome::SetKeyspace(_) => Ok(Rows::none()),
        }
    }

    /// What it costs is told by `system_views.statements`.
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

    /// Returns when what was written is durable.
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
    /// Executes a prepared statement; one that the schema made invalid is prepared again, as drivers do.
    fn execute_prepared(
        &self,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, ilion_query::Error> {
        let processor = self.inner.node.processor();
        // It knows its keyspace: no lock that all threads would want.
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
    /// Executes it with values for its bind markers.
    ///
    /// # Errors
    /// It was not carried out, or a value does not fit.
    pub fn execute(&self, arguments: impl Arguments) -> Result<Rows, Error> {
        let values = arguments.to_values(&self.prepared.variables)?;
        let source = Source::Prepared(self.prepared.clone());
        self.database.run(source, values, None)
    }

    /// Executes it with values that are serialized already, as the native protocol has them.
    ///
    /// # Errors
    /// It was not carried out, or bytes are no value of their marker's type.
    pub fn execute_serialized(&self, values: &[&[u8]]) -> Result<Rows, Error> {
        let bytes = |value: &&[u8]| ilion_query::Value::Bytes(value.to_vec().into());
        let values = Values::Positional(values.iter().map(bytes).collect());
        let source = Source::Prepared(self.prepared.clone());
        self.database.run(source, values, None)
    }
}

impl Paged {
    /// The next page, and what comes after it.
    pub fn read(self) -> Result<Rows, Error> {
        self.database
            .run(self.source, self.values, Some(self.paging_state))
    }
}
