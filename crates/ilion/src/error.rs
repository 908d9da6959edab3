//! Errors of the library.

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory does not open; the operator must act.
    #[error(transparent)]
    Open(#[from] ilion_server::OpenError),
    /// The statement failed; its variant says who must act.
    #[error(transparent)]
    Statement(#[from] ilion_query::Error),
    /// The engine failed, or the commit log did not become durable: the write may be lost.
    #[error(transparent)]
    Engine(#[from] ilion_engine::Error),
    /// An argument does not fit its bind marker.
    #[error("argument {index} ({name}) is of type {ty}: {problem}")]
    Argument {
        /// Its index, from 0.
        index: usize,
        /// Name of the marker.
        name: String,
        /// Type of the marker.
        ty: String,
        /// Why it does not fit.
        problem: String,
    },
    /// A column of a result does not exist, or has another type than requested.
    #[error("column {name}: {problem}")]
    Column {
        /// Name of the column.
        name: String,
        /// What is wrong.
        problem: String,
    },
}
