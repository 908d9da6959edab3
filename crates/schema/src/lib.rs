//! Keyspaces, tables, columns, user types and their options.
//!
//! The schema is an immutable value: [`Schema`] holds keyspaces, a keyspace holds tables and types, all behind `Arc`.
//! A change makes a new `Schema`; readers keep the one they have.
//!
//! | module | what |
//! | --- | --- |
//! | `table` | [`TableSchema`], its columns and their order |
//! | `column_ids` | ids of columns over a schema that is read anew |
//! | `keyspace` | [`Schema`], [`Keyspace`], replication |
//! | `options` | table options with Cassandra's defaults; from a statement's properties |
//! | `replication` | replication options of a keyspace |
//! | `properties` | what stands after `WITH`, before it means anything |
//! | `change` | [`SchemaChange`] and [`Schema::apply`]: the next schema, or why not |
//! | `diff`, `event` | what differs between two schemas; what a client is told |
//! | `describe` | DESCRIBE: objects as the CQL that makes them |
//! | `rows` | the schema as rows of `system_schema`, both ways |
//! | `system` | the keyspaces that the server brings along |
//! | `release` | [`Release`]: which Cassandra must be able to read what is written |
//! | `version` | the digest that tells schemas apart |
//! | `names`, `compatible`, `index_target` | rules of names, of re-added columns, of index targets |

mod change;
mod column_ids;
mod compatible;
pub mod describe;
mod diff;
mod error;
mod event;
mod index_target;
mod keyspace;
mod names;
mod options;
mod properties;
mod release;
mod replication;
pub mod rows;
mod system;
mod table;
mod version;

pub use change::{
    Applied, CopyTable, CreateAggregate, CreateFunction, CreateIndex, CreateTable, CreateView, DropFunction,
    DropObject, IndexPart, IndexTarget, NewColumn, SchemaChange, TableAlteration, TypeAlteration,
};
pub use compatible::is_serialization_compatible;
pub use diff::{ChangeKind, Diff, Transition, diff};
pub use error::Error;
pub use event::{EventTarget, SchemaEvent};
pub use keyspace::{
    AggregateSchema, FunctionSchema, IndexKind, IndexSchema, Keyspace, Replication, Schema, TriggerSchema,
    ViewSchema,
};
pub use names::{
    CUSTOM_INDEX_NAME_LEN_MAX, INDEX_NAME_LEN_MAX, KEYSPACE_NAME_LEN_MAX, LOCAL_KEYSPACES,
    REPLICATED_KEYSPACES, TABLE_NAME_LEN_MAX, is_system_keyspace,
};
pub use options::compression::CHUNK_LENGTH_KIB_MAX;
pub use options::{CachingOptions, TableOptions};
pub use properties::{Properties, PropertyValue};
pub use release::Release;
pub use rows::{RowChange, SchemaFault, SchemaRow, encode_keyspace, row_changes};
pub use system::system_keyspaces;
pub use table::{
    ClusteringOrder, Column, ColumnId, ColumnKind, DroppedColumn, TableBuilder, TableId, TableKind,
    TableSchema,
};
