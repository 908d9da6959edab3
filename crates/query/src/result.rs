//! What a statement answers.

use std::sync::Arc;

use ilion_codec::Rope;
use ilion_types::CqlType;

use crate::{LogPosition, Shape};

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// Keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// Name of the column, alias or expression.
    pub name: Arc<str>,
    /// Its type.
    pub ty: CqlType,
}

/// A statement was carried out.
#[derive(Clone, Debug)]
pub struct Executed {
    /// What it answers.
    pub outcome: Outcome,
    /// The answer may be sent when the commit log is durable up to here.
    pub durable_at: Option<LogPosition>,
    /// Sentences for the client.
    pub warnings: Vec<String>,
    /// What a text has in common with those of other values; `None` of prepared statements, which know it themselves.
    pub shape: Option<Arc<Shape>>,
}

/// What a statement answers.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Done.
    Void,
    /// Rows.
    Rows(ResultSet),
    /// The client's keyspace is now this one.
    SetKeyspace(String),
    /// The schema was changed. Empty if nothing changed (`IF NOT EXISTS`): then it is answered as `Void`.
    SchemaChange(Vec<SchemaEvent>),
}

/// Rows in the form of the protocol.
#[derive(Clone, Debug)]
pub struct ResultSet {
    /// The columns.
    pub columns: Arc<[ColumnSpec]>,
    /// Digest of the columns; only for prepared statements.
    pub metadata_id: Option<[u8; 16]>,
    /// Number of rows.
    pub row_count: u32,
    /// Row after row, per cell `length: i32` (-1 for null) and the bytes.
    pub cells: Rope,
    /// There is more; ask with this.
    pub paging_state: Option<Vec<u8>>,
}

/// One change of the schema, as drivers are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaEvent {
    /// What happened.
    pub change: SchemaEventKind,
    /// To what kind of thing.
    pub target: SchemaTarget,
    /// In which keyspace (or to which).
    pub keyspace: String,
    /// Name of the table, type, function or aggregate; empty for a keyspace.
    pub name: String,
    /// Argument types of a function or aggregate.
    pub argument_types: Vec<String>,
}

/// What happened to a schema object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaEventKind {
    /// `CREATED`
    Created,
    /// `UPDATED`
    Updated,
    /// `DROPPED`
    Dropped,
}

/// Kinds of schema objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SchemaTarget {
    /// `KEYSPACE`
    Keyspace,
    /// `TABLE`; views and indexes are told as their tables.
    Table,
    /// `TYPE`
    Type,
    /// `FUNCTION`
    Function,
    /// `AGGREGATE`
    Aggregate,
}

impl Executed {
    /// Without a log position and warnings.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            durable_at: None,
            warnings: Vec::new(),
            shape: None,
        }
    }
}
