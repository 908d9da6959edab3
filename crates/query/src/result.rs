//! The answer to a statement.

use serde::{Deserialize, Serialize};
use std::sync::Arc;

use ilion_codec::Rope;
use ilion_schema::{SchemaEvent, TableSchema};
use ilion_types::CqlType;

use crate::{Awaited, Shape};

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

impl ColumnSpec {
    /// A column or term of a table, called `name` in messages.
    pub(crate) fn of(table: &TableSchema, name: &str, ty: CqlType) -> Self {
        Self {
            keyspace: Arc::from(table.keyspace.as_str()),
            table: Arc::from(table.name.as_str()),
            name: Arc::from(name),
            ty,
        }
    }
}

/// The result of a statement.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The answer.
    pub outcome: Outcome,
    /// The answer may be sent once this has happened; `None` means at once.
    pub awaited: Option<Awaited>,
    /// Warnings for the client.
    pub warnings: Vec<String>,
    /// The shape that the text shares with texts that differ only in values; `None` for prepared statements, which have it themselves.
    pub shape: Option<Arc<Shape>>,
}

/// The answer to a statement.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The statement was executed; the answer has no rows.
    Void,
    /// Rows.
    Rows(ResultSet),
    /// The client's keyspace changed.
    SetKeyspace(String),
    /// The schema change; empty if nothing changed (`IF NOT EXISTS`), which is answered as `Void`.
    SchemaChange(Vec<SchemaEvent>),
}

/// Rows in the form of the protocol.
#[derive(Clone, Debug)]
pub struct ResultSet {
    /// The columns.
    pub columns: Arc<[ColumnSpec]>,
    /// Digest of the columns, for prepared statements.
    pub metadata_id: Option<[u8; 16]>,
    /// Number of rows.
    pub row_count: u32,
    /// Row after row, per cell `length: i32` (-1 for null) and the bytes.
    pub cells: Rope,
    /// The state from which the next page starts; `None` after the last page.
    pub paging_state: Option<Vec<u8>>,
}

impl Executed {
    /// A result without a log position and warnings.
    pub fn of(outcome: Outcome) -> Self {
        Self {
            outcome,
            awaited: None,
            warnings: Vec::new(),
            shape: None,
        }
    }
}
