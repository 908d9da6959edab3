//! CQL values: what the bytes of a cell mean.
//!
//! | module | what |
//! | --- | --- |
//! | `cql_type` | the tree of a CQL type |

mod cql_type;

pub use cql_type::{CqlType, UserType};
