//! The schema as rows of `system_schema`, both ways, without knowing how rows are stored.
//!
//! A [`SchemaRow`] is one row: its table, its keyspace (the partition key of every table), its clustering and its cells,
//! all serialized as their columns' types have it. The engine writes them through the ordinary write path and reads
//! them back at start, so that Cassandra finds its schema in the same files.
//!
//! | module | what |
//! | --- | --- |
//! | `encode` | keyspaces, types, functions, indexes, ... to rows |
//! | `encode_table` | tables and views to rows |
//! | `decode` | rows to keyspaces |
//! | `decode_table` | rows to tables and their options |
//! | `cells` | reading the cells of one row |
//! | `changes` | what to write when the schema changes |

mod cells;
mod changes;
mod decode;
mod decode_table;
mod encode;
mod encode_table;

use std::collections::BTreeMap;

use bytes::Bytes;

pub(crate) use changes::ChangedRows;
pub use changes::{RowChange, row_changes};
pub use decode::SchemaFault;
pub(crate) use decode::decode_schema;
pub use encode::encode_keyspace;

/// Tables of `system_schema` that hold definitions, in the order in which they are written.
pub const SCHEMA_TABLES: [&str; 11] = [
    "keyspaces",
    "tables",
    "columns",
    "column_masks",
    "dropped_columns",
    "triggers",
    "views",
    "types",
    "functions",
    "aggregates",
    "indexes",
];

/// One row of a table of `system_schema`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRow {
    /// The table, one of [`SCHEMA_TABLES`].
    pub table: &'static str,
    /// The partition key.
    pub keyspace: String,
    /// The clustering, serialized; all of it is text but the argument types of functions (`frozen<list<text>>`).
    pub clustering: Vec<Bytes>,
    /// The regular columns, serialized; nothing is a null. None of these columns has many cells.
    pub cells: Vec<(&'static str, Option<Bytes>)>,
}

impl SchemaRow {
    /// True if both are the same row with the same values, whichever columns the one or the other has nothing in.
    pub fn says_the_same(&self, other: &SchemaRow) -> bool {
        let values = |row: &SchemaRow| -> BTreeMap<&'static str, Bytes> {
            let cells = row.cells.iter();
            cells
                .filter_map(|(name, value)| Some((*name, value.clone()?)))
                .collect()
        };
        (self.table, &self.keyspace, &self.clustering) == (other.table, &other.keyspace, &other.clustering)
            && values(self) == values(other)
    }
}

/// The table's name as [`SchemaRow`] holds it; `None` if it holds no definitions.
pub fn schema_table_named(name: &str) -> Option<&'static str> {
    SCHEMA_TABLES.into_iter().find(|known| *known == name)
}

/// A column's name as [`SchemaRow`] holds it; `None` if the table has no such column.
pub fn schema_column_named(table: &str, column: &str) -> Option<&'static str> {
    crate::system::schema_column_named(table, column)
}

#[cfg(test)]
mod tests;
