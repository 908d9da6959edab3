//! CQL text to syntax tree and back.
//!
//! The language is CQL 3.4.7, as Cassandra 5.0 accepts it.

pub mod ast;
mod error;

pub use error::{Error, ErrorKind};

use ast::{Identifier, Statement};

/// A statement and the markers in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// The bind markers in the order of the text; `BindMarker::index` counts into this list.
    pub markers: Vec<Marker>,
}

/// A place for a value that comes with the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The name in `:name`; absent for `?`. The same name may be there several times.
    pub name: Option<Identifier>,
}
