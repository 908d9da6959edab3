//! The door to this crate: [`QueryProcessor`].

use std::sync::Arc;

use crate::{BatchKind, ClientState, Error, ExecuteOptions, Executed, Prepared, QueryOptions, Store, Values};

/// A member of a protocol batch.
#[derive(Clone, Debug)]
pub enum BatchStatement {
    /// Text of a statement.
    Text(String),
    /// A prepared statement.
    Prepared(Arc<Prepared>),
}

/// Parses, prepares and executes statements.
pub struct QueryProcessor {
    store: Arc<dyn Store>,
    options: QueryOptions,
}

impl QueryProcessor {
    /// A processor over a store.
    pub fn new(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        Self { store, options }
    }

    /// Executes the text of a statement.
    ///
    /// # Errors
    /// As the code says; see [`Error`].
    pub fn query(
        &self,
        _client: &mut ClientState,
        _cql: &str,
        _options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        Err(self.not_built("query"))
    }

    /// Prepares a statement and remembers it. `keyspace` is for unqualified names, instead of the client's.
    ///
    /// # Errors
    /// The statement cannot be planned.
    pub fn prepare(
        &self,
        _client: &ClientState,
        _cql: &str,
        _keyspace: Option<&str>,
    ) -> Result<Arc<Prepared>, Error> {
        Err(self.not_built("prepare"))
    }

    /// The statement prepared under `id`.
    pub fn prepared(&self, _id: &[u8]) -> Option<Arc<Prepared>> {
        None
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// As the code says; see [`Error`].
    pub fn execute(
        &self,
        _client: &mut ClientState,
        _prepared: &Arc<Prepared>,
        _options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        Err(self.not_built("execute"))
    }

    /// Executes a protocol batch: all of it or nothing.
    ///
    /// # Errors
    /// As the code says; see [`Error`].
    pub fn batch(
        &self,
        _client: &mut ClientState,
        _kind: BatchKind,
        _statements: Vec<(BatchStatement, Values)>,
        _options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        Err(self.not_built("batch"))
    }

    fn not_built(&self, what: &str) -> Error {
        let epoch = self.store.schema().epoch;
        let prepared_max = self.options.prepared_count_max;
        Error::ServerError(format!(
            "{what} is not built yet (schema {epoch}, {prepared_max} statements)"
        ))
    }
}
