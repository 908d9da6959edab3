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
//! | `prepared` | [`Prepared`] |
//! | `store` | [`Store`]: what is needed of the engine |
//! | `context` | what planning and executing are given |
//! | `plan` | a statement ready to be executed |
//! | `term` | expressions for one value; native functions |
//! | `restrictions` | WHERE |
//! | `select` | SELECT |
//! | `write` | INSERT, UPDATE, DELETE |

#![allow(dead_code, reason = "the parts are being joined")]

mod context;
mod error;
mod plan;
mod prepared;
mod processor;
mod request;
mod restrictions;
mod result;
mod select;
mod store;
mod term;
mod write;

pub use error::{Error, FailureReason, WriteType};
pub use prepared::{Prepared, StatementWeight};
pub use processor::{BatchStatement, QueryProcessor};
pub use request::{BatchKind, ClientState, Consistency, ExecuteOptions, QueryOptions, Value, Values};
pub use result::{ColumnSpec, Executed, Outcome, ResultSet, SchemaEvent, SchemaEventKind, SchemaTarget};
pub use store::{ClusterFacts, LogPosition, PartitionGuard, Store, StoreError};
