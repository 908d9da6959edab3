//! Errors of the library.

/// Why a call failed.
///
/// ```
/// use ilion::{Error, StatementError};
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// match database.execute("CREATE KEYSPACE system WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ()) {
///     Err(Error::Statement(StatementError::AlreadyExists { keyspace, .. })) => println!("{keyspace} is there"),
///     Err(Error::Statement(StatementError::Overloaded(_))) => println!("try again later"),
///     Err(other) => println!("{other}"),
///     Ok(_) => println!("created"),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The data directory does not open; the operator must act.
    #[error(transparent)]
    Open(#[from] ilion_node::OpenError),
    /// The statement failed; its variant says who must act.
    #[error(transparent)]
    Statement(#[from] ilion_query::Error),
    /// The engine failed, or the commit log did not become durable: the write may be lost.
    #[error(transparent)]
    Engine(#[from] ilion_engine::Error),
    /// The value of a bind marker does not fit.
    #[error("argument {index} ({name}) is of type {ty}: {problem}")]
    Argument {
        /// Index of the marker, from 0.
        index: usize,
        /// Name of the marker.
        name: String,
        /// Type of the marker.
        ty: String,
        /// Why it does not fit.
        problem: String,
    },
    /// A call of an `AsyncDatabase` outside of a runtime of tokio, or while it stops.
    #[cfg(feature = "async")]
    #[error("no runtime of tokio: {0}")]
    Runtime(String),
    /// The result has no row, and one was expected.
    #[error("the result has no row, one was expected")]
    NoRow,
    /// The result has more rows than the one that was expected.
    #[error("the result has more than one row")]
    SeveralRows,
    /// A row as a whole is no value of a type that implements `Deserialize`: a field has no column, for example.
    #[cfg(feature = "serde")]
    #[error("the row does not fit: {0}")]
    Row(String),
    /// A column of a result does not exist, or has another type than requested.
    #[error("column {name}: {problem}")]
    Column {
        /// Name of the column.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
