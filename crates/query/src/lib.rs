//! CQL execution: text to plan, plan and values to mutations or rows.
//!
//! [`QueryProcessor`] is the door. A text is parsed (`ilion_cql`), planned against the schema, and kept as [`Prepared`];
//! executing binds values, makes mutations for [`Store::apply`] or reads through [`Store::read_partition`], and answers
//! in the form of the protocol ([`ResultSet`]).
//!
//! | module | what |
//! | --- | --- |
//! | `processor` | [`QueryProcessor`]: the public calls |
//! | `request`, `result`, `error` | what comes in, what goes out |
//! | `prepared`, `statement_cache` | [`Prepared`]; those that are known, in memory and in `system.prepared_statements` |
//! | `invalidation` | which prepared statements a change of the schema makes invalid |
//! | `internal` | statements of our own |
//! | `store`, `engine_store` | [`Store`]: what is needed of the engine; [`EngineStore`]: the engine |
//! | `context` | what planning and executing are given |
//! | `planned`, `plan` | a text that was planned; a statement ready to be executed |
//! | `bind` | values in the order of the markers |
//! | `consistency` | which levels a statement may be executed with |
//! | `protect` | tables that no client may write to |
//! | `read_patience` | how long a SELECT may take |
//! | `type_name` | names of types to types |
//! | `partitions` | the mutations of a statement by partition |
//! | `ddl` | schema statements |
//! | `guardrails` | what the operator limits or switches off |
//! | `describe` | DESCRIBE |
//! | `explain` | EXPLAIN: how a SELECT is carried out, and what it cost |
//! | `shape` | [`Shape`]: what statements have in common that differ in values only |
//! | `batch`, `merge` | batches and their mutations as one write |
//! | `term` | expressions for one value; native functions |
//! | `restrictions` | WHERE |
//! | `select` | SELECT |
//! | `aggregate` | native aggregates over values |
//! | `write` | INSERT, UPDATE, DELETE |
//! | `views` | materialized views |

mod aggregate;
mod batch;
mod batch_sizes;
mod bind;
mod consistency;
mod context;
mod ddl;
mod describe;
mod engine_store;
mod error;
mod explain;
mod guardrails;
mod internal;
mod invalidation;
mod merge;
mod partitions;
mod plan;
mod planned;
mod prepared;
mod processor;
mod protect;
mod read_patience;
mod request;
mod restrictions;
mod result;
mod select;
mod shape;
mod statement_cache;
mod store;
mod term;
mod type_name;
mod views;
mod write;

pub use batch_sizes::{BatchSizes, Sizes};
pub use engine_store::EngineStore;
pub use error::{Error, FailureReason, WriteType};
pub use guardrails::{DiskUsage, Flag, Fullness, Guardrails, Threshold, ValueLists};
pub use prepared::{Prepared, StatementWeight};
pub use processor::{BatchStatement, QueryProcessor};
pub use request::{BatchKind, ClientState, Consistency, ExecuteOptions, QueryOptions, Value, Values};
pub use result::{ColumnSpec, Executed, Outcome, ResultSet, SchemaEvent, SchemaEventKind, SchemaTarget};
pub use shape::Shape;
pub use store::{ClusterFacts, LogPosition, PartitionGuard, Store, StoreError};
