//! `DESCRIBE`

use super::{Identifier, QualifiedName};

/// `DESCRIBE` or `DESC`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    /// What is described.
    pub target: DescribeTarget,
    /// `WITH INTERNALS`: also ids and dropped columns.
    pub with_internals: bool,
}

/// What `DESCRIBE` describes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribeTarget {
    /// `CLUSTER`
    Cluster,
    /// `SCHEMA`: all but the system keyspaces
    Schema,
    /// `FULL SCHEMA`: the system keyspaces too
    FullSchema,
    /// `KEYSPACES`: their names
    Keyspaces,
    /// `KEYSPACE k`, with all that is in it; the session's if absent
    Keyspace(Option<Identifier>),
    /// `ONLY KEYSPACE k`, without what is in it
    OnlyKeyspace(Option<Identifier>),
    /// `TABLES`: their names
    Tables,
    /// `TABLE t`
    Table(QualifiedName),
    /// `INDEX i`
    Index(QualifiedName),
    /// `MATERIALIZED VIEW v`
    View(QualifiedName),
    /// `TYPES`: their names
    Types,
    /// `TYPE t`
    Type(QualifiedName),
    /// `FUNCTIONS`: their names
    Functions,
    /// `FUNCTION f`
    Function(QualifiedName),
    /// `AGGREGATES`: their names
    Aggregates,
    /// `AGGREGATE a`
    Aggregate(QualifiedName),
    /// A name of a keyspace, table, view or index, whichever there is
    Any(QualifiedName),
}
