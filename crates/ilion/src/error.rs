//! What can go wrong.

/// Why a call did not succeed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The data directory does not open; the operator must act.
    #[error(transparent)]
    Open(#[from] ilion_server::OpenError),
    /// The statement was not carried out; see its kind for who must act.
    #[error(transparent)]
    Statement(#[from] ilion_query::Error),
    /// The engine failed, or the commit log did not become durable: the write may be lost.
    #[error(transparent)]
    Engine(#[from] ilion_engine::Error),
    /// An argument does not fit its bind marker.
    #[error("argument {index} ({name}) is of type {ty}: {problem}")]
    Argument {
        /// Which, from 0.
        index: usize,
        /// Name of the marker.
        name: String,
        /// Its type.
        ty: String,
        /// Why not.
        problem: String,
    },
    /// A column of a result is not there, or not what was asked for.
    #[error("column {name}: {problem}")]
    Column {
        /// Which.
        name: String,
        /// Why not.
        problem: String,
    },
}
