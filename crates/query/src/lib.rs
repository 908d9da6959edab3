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

mod error;
mod prepared;
mod processor;
mod request;
mod result;
mod store;

pub use error::{Error, FailureReason, WriteType};
pub use prepared::{Prepared, StatementWeight};
pub use processor::{BatchStatement, QueryProcessor};
pub use request::{BatchKind, ClientState, Consistency, ExecuteOptions, QueryOptions, Value, Values};
pub use result::{ColumnSpec, Executed, Outcome, ResultSet, SchemaEvent, SchemaEventKind, SchemaTarget};
pub use store::{ClusterFacts, LogPosition, Store, StoreError};
