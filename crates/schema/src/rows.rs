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
//! | `compare` | which rows are missing |

mod cells;
mod changes;
mod compare;
mod decode;
mod decode_table;
mod encode;
mod encode_table;
mod values;

use bytes::Bytes;

pub(crate) use changes::ChangedRows;
pub use changes::RowChange;
pub(crate) use decode::decode_schema;
pub use decode::{LoadedSchema, SchemaFault};
pub(crate) use encode::encode_keyspace;

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

#[cfg(test)]
mod tests;
