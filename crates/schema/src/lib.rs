//! Keyspaces, tables, columns, user types and their options.
//!
//! The schema is an immutable value: [`Schema`] contains keyspaces, and these contain tables and types, all behind `Arc`. A
//! change makes a new `Schema`; readers keep the one that they have.
//!
//! | module | what |
//! | --- | --- |
//! | `table` | [`TableSchema`], its columns and their order |
//! | `mask` | [`ColumnMask`]: the function that masks the values of a column |
//! | `column_ids` | column ids of a schema that is read again |
//! | `keyspace` | [`Schema`], [`Keyspace`], replication |
//! | `objects` | indexes, views, functions, aggregates, triggers |
//! | `options` | table options with Cassandra's defaults; parsing them from properties |
//! | `replication` | replication options of a keyspace |
//! | `properties` | the properties after `WITH`, uninterpreted |
//! | `change` | [`SchemaChange`] and [`Schema::apply`]: the next schema, or an error |
//! | `diff`, `event` | the differences between two schemas; the event for clients |
//! | `describe` | DESCRIBE: the CQL that creates an object |
//! | `rows` | the schema as rows of `system_schema`, both ways |
//! | `system` | the server's own keyspaces |
//! | `release` | [`Release`]: the oldest Cassandra that must be able to read the files |
//! | `version`, `digests` | the digest that identifies a schema |
//! | `names`, `compatible`, `index_target` | rules for names, for columns that are added again, for index targets |

mod change;
mod column_ids;
mod compatible;
pub mod describe;
mod diff;
mod digests;
mod error;
mod event;
mod index_target;
mod keyspace;
mod mask;
mod names;
mod objects;
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
pub use keyspace::{Keyspace, Replication, Schema};
pub use mask::{ColumnMask, MaskArgument};
pub use names::{AUTH_KEYSPACE, LOCAL_KEYSPACES, is_system_keyspace};
pub use objects::{AggregateSchema, FunctionSchema, IndexKind, IndexSchema, TriggerSchema, ViewSchema};
pub use options::compression::CHUNK_LENGTH_KIB_MAX;
pub use options::{CachingOptions, TableOptions};
pub use properties::{Properties, PropertyValue};
pub use release::Release;
pub use rows::{LoadedSchema, RowChange, SchemaFault, SchemaRow};
pub use system::schema_column_named;
pub use table::{
    ClusteringOrder, Column, ColumnId, ColumnKind, DroppedColumn, TableBuilder, TableId, TableKind,
    TableSchema, whole_milli,
};
