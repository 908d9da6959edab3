//! CQL execution: text to plan, plan and values to mutations or rows.
//!
//! [`QueryProcessor`] is the entry point. A text is parsed (`ilion_cql`), planned against the schema, and kept as [`Prepared`].
//! Executing it binds values, makes mutations for [`Store::apply`] or reads through [`Store::read_partition`], and answers in
//! the form of the protocol ([`ResultSet`]).
//!
//! | module | what |
//! | --- | --- |
//! | `processor` | [`QueryProcessor`]: the public calls |
//! | `request`, `result`, `error` | inputs and outputs |
//! | `prepared`, `statement_cache` | [`Prepared`]; the known prepared statements, in memory and in `system.prepared_statements` |
//! | `invalidation` | which prepared statements a schema change invalidates |
//! | `internal` | Ilion's own statements |
//! | `access` | logins and permissions; statements about roles |
//! | `store`, `engine_store` | [`Store`]: the interface to the storage below; [`EngineStore`]: the engine |
//! | `store_error` | [`StoreError`]: why the storage refused |
//! | `awaited` | [`Awaited`]: what the answer to a write waits for |
//! | `log_position` | [`LogPosition`]: a position up to which the log must be durable |
//! | `store_methods` | [`store_methods!`]: forwards the methods of a store to another store |
//! | `context` | the inputs of planning and executing |
//! | `planned`, `plan` | a text that was planned; a statement ready to be executed |
//! | `bind` | values in the order of the markers |
//! | `command` | [`Command`]: a statement that reads before it writes, as a record of a shared log |
//! | `commanding` | commands made of statements |
//! | `overtaken` | planning a statement again if the schema has changed before its turn came |
//! | `function_calls` | the calls of user-defined functions by one statement |
//! | `consistency` | the levels that a statement may be executed with |
//! | `protect` | tables that no client may write to |
//! | `read_patience` | how long a SELECT may take |
//! | `type_name` | names of types to types |
//! | `partitions` | the mutations of a statement by partition |
//! | `ddl` | schema statements |
//! | `guardrails` | the operator's limits and switches |
//! | `describe` | DESCRIBE |
//! | `explain` | EXPLAIN: how a SELECT is executed, and what it costs |
//! | `shape` | [`Shape`]: statements grouped by everything except their values |
//! | `batch`, `merge` | batches and their mutations as one write |
//! | `term` | expressions for one value; native functions |
//! | `restrictions` | WHERE |
//! | `select` | SELECT |
//! | `aggregate` | native aggregates over values |
//! | `write` | INSERT, UPDATE, DELETE |
//! | `views` | materialized views |
//! | `masking` | dynamic data masking |

mod access;
mod aggregate;
mod awaited;
mod batch;
mod batch_sizes;
mod bind;
mod command;
mod commanding;
mod consistency;
mod consistency_level;
mod context;
mod ddl;
mod describe;
mod engine_store;
mod error;
mod explain;
mod function_calls;
mod guardrails;
mod internal;
mod invalidation;
mod log_position;
mod masking;
mod merge;
mod overtaken;
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
mod store_error;
mod store_methods;
mod term;
mod type_name;
mod views;
mod weight;
mod write;

pub use access::{
    AccessControl, AccessOptions, Authenticator, Authorizer, CidrAuthorizer, CidrCounts, FirstSuperuser,
    Identity, KeptAccess, Login, NetworkAuthorizer, Operation, SetupError,
};
pub use awaited::{Acknowledged, AcknowledgedCallback, Awaited, ClusterWrite};
pub use batch_sizes::{BatchSizes, Sizes};
pub use command::{BeginCommand, Command, CommandDone, CommandLevel, Commands, Decided, Form, Reason};
pub use consistency_level::Consistency;
pub use engine_store::EngineStore;
pub use error::{Error, FailureReason, WriteType};
pub use function_calls::{FunctionCall, FunctionResults};
pub use guardrails::{DiskUsage, Flag, Fullness, Guardrails, Threshold, ValueLists};
pub use log_position::LogPosition;
pub use prepared::Prepared;
pub use processor::{BatchStatement, QueryProcessor};
pub use request::{ClientState, ExecuteOptions, QueryOptions, Value, Values};
pub use result::{ColumnSpec, Executed, Outcome, ResultSet};
pub use shape::Shape;
pub use store::{ClusterFacts, ClusterSource, PartitionGuard, Store, Wanted};
pub use store_error::StoreError;
#[doc(hidden)]
pub use store_methods::types as store_types;
pub use term::functions::FUNCTION_NAMES;
pub use weight::StatementWeight;

/// The kinds of batches.
pub use ilion_cql::ast::BatchKind;
