//! The schema as rows of `system_schema`, in both directions, independent of how rows are stored.
//!
//! A [`SchemaRow`] is one row: its table, its keyspace (the partition key of every table), its clustering and its cells,
//! serialized by their column types. The engine writes and reads them like other rows, so that Cassandra finds its schema in
//! the same files.
//!
//! | module | what |
//! | --- | --- |
//! | `encode` | keyspaces, types, functions, indexes, ... to rows |
//! | `encode_table` | tables and views to rows |
//! | `decode` | rows to keyspaces |
//! | `decode_table` | rows to tables and their options |
//! | `values` | serializing the values of cells |
//! | `cells` | decoding the cells of one row |
//! | `changes` | the rows to write for a schema change |

mod cells;
mod changes;
mod decode;
mod decode_table;
mod encode;
mod encode_table;
mod values;

use std::collections::BTreeMap;

use bytes::Bytes;

pub(crate) use changes::ChangedRows;
pub use changes::RowChange;
pub use decode::SchemaFault;
pub(crate) use decode::decode_schema;
pub use encode::encode_keyspace;

/// Tables of `system_schema` with definitions, in the order of writing.
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
    /// The clustering, serialized: text, except the argument types of functions (`frozen<list<text>>`).
    pub clustering: Vec<Bytes>,
    /// The regular columns, serialized; `None` is null. No regular column of `system_schema` is stored as several cells.
    pub cells: Vec<(&'static str, Option<Bytes>)>,
}

impl SchemaRow {
    /// True if both are the same row with the same values. A missing cell equals a null cell.
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

#[cfg(test)]
mod tests;
