//! Keyspaces, tables, columns, user types and their options.
//!
//! The schema is an immutable value: [`Schema`] holds keyspaces, a keyspace holds tables and types, all behind `Arc`.
//! A change makes a new `Schema`; readers keep the one they have.
//!
//! | module | what |
//! | --- | --- |
//! | `table` | [`TableSchema`], its columns and their order |
//! | `keyspace` | [`Schema`], [`Keyspace`], replication |
//! | `options` | table options with Cassandra's defaults |

mod keyspace;
mod options;
mod table;

pub use keyspace::{
    AggregateSchema, FunctionSchema, IndexKind, IndexSchema, Keyspace, Replication, Schema, TriggerSchema,
    ViewSchema,
};
pub use options::{CachingOptions, TableOptions};
pub use table::{
    ClusteringOrder, Column, ColumnId, ColumnKind, DroppedColumn, TableBuilder, TableId, TableKind,
    TableSchema,
};
