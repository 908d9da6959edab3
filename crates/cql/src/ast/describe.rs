//! `DESCRIBE`

use super::{Identifier, QualifiedName};

/// `DESCRIBE` or `DESC`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Describe {
    /// The object to describe.
    pub target: DescribeTarget,
    /// `WITH INTERNALS`: also ids and dropped columns.
    pub with_internals: bool,
}

/// The objects of `DESCRIBE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescribeTarget {
    /// `CLUSTER`
    Cluster,
    /// `SCHEMA`: all except the system keyspaces
    Schema,
    /// `FULL SCHEMA`: with the system keyspaces
    FullSchema,
    /// `KEYSPACES`: their names
    Keyspaces,
    /// `KEYSPACE k` with its content; `None` means the session's keyspace
    Keyspace(Option<Identifier>),
    /// `ONLY KEYSPACE k`, without its content; `None` means the session's keyspace
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
    /// A keyspace, table, view or index, whichever has this name
    Any(QualifiedName),
}
