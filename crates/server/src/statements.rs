//! The interface to the query layer: a trait, so that tests can use a double.

use std::sync::Arc;

use ilion_query::{
    BatchKind, BatchStatement, ClientState, Error, ExecuteOptions, Executed, Prepared, QueryProcessor, Shape,
    Values,
};

/// Executes statements, on any thread. See [`QueryProcessor`].
#[expect(
    clippy::missing_errors_doc,
    reason = "an error is the answer to the client; see `ilion_query::Error`"
)]
pub trait Statements: Send + Sync {
    /// Executes the text of a statement.
    fn query(&self, client: &mut ClientState, cql: &str, options: &ExecuteOptions)
    -> Result<Executed, Error>;
    /// Prepares and stores a statement.
    fn prepare(
        &self,
        client: &ClientState,
        cql: &str,
        keyspace: Option<&str>,
    ) -> Result<Arc<Prepared>, Error>;
    /// The shape of a statement's text.
    fn shape_of(&self, client: &ClientState, cql: &str, keyspace: Option<&str>) -> Arc<Shape> {
        Arc::new(Shape::of(cql, keyspace.or(client.keyspace.as_deref())))
    }
    /// The statement prepared under `id`.
    fn prepared(&self, id: &[u8]) -> Option<Arc<Prepared>>;
    /// Executes a prepared statement.
    fn execute(
        &self,
        client: &mut ClientState,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error>;
    /// Executes a protocol batch.
    fn batch(
        &self,
        client: &mut ClientState,
        kind: BatchKind,
        statements: Vec<(BatchStatement, Values)>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error>;
}

impl Statements for QueryProcessor {
    fn query(
        &self,
        client: &mut ClientState,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        self.query(client, cql, options)
    }

    fn prepare(
        &self,
        client: &ClientState,
        cql: &str,
        keyspace: Option<&str>,
    ) -> Result<Arc<Prepared>, Error> {
        self.prepare(client, cql, keyspace)
    }

    fn shape_of(&self, client: &ClientState, cql: &str, keyspace: Option<&str>) -> Arc<Shape> {
        self.shape_of(client, cql, keyspace)
    }

    fn prepared(&self, id: &[u8]) -> Option<Arc<Prepared>> {
        self.prepared(id)
    }

    fn execute(
        &self,
        client: &mut ClientState,
        prepared: &Arc<Prepared>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        self.execute(client, prepared, options)
    }

    fn batch(
        &self,
        client: &mut ClientState,
        kind: BatchKind,
        statements: Vec<(BatchStatement, Values)>,
        options: &ExecuteOptions,
    ) -> Result<Executed, Error> {
        self.batch(client, kind, statements, options)
    }
}
