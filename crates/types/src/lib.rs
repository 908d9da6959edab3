//! CQL values: what the bytes of a cell mean.
//!
//! | module | what |
//! | --- | --- |
//! | `cql_type` | the tree of a CQL type |
//! | `class` | its class string (Statistics.db, custom types of the protocol) |
//! | `cql_name` | its CQL string (`system_schema`, DESCRIBE) |
//! | `compare` | the order of serialized values |
//! | `validate` | whether bytes are a value of a type |
//! | `elements` | parts of serialized collections, tuples, vectors, without decoding them |
//! | `composite` | composite partition keys |
//! | `partitioner`, `token` | places on the ring |
//! | `varint`, `decimal`, `duration`, `hex` | scalars with rules of their own |
//!
//! When you add a type: `cql_type`, the tables of `class` and `cql_name`, `compare`, `validate`.

mod class;
mod compare;
mod composite;
mod cql_name;
mod cql_type;
mod decimal;
mod duration;
mod elements;
mod error;
pub mod hex;
mod partitioner;
mod token;
mod validate;
mod varint;

pub use class::{composite_class, partition_key_types};
pub use composite::{KEY_LEN_MAX, decode_composite, encode_composite};
pub use cql_name::quote_name;
pub use cql_type::{CqlType, UserType};
pub use decimal::Decimal;
pub use duration::Duration;
pub use elements::{
    Components, Elements, MapEntries, VectorElements, collection_elements, encode_list, encode_map,
    encode_tuple, encode_vector, map_entries, tuple_components, vector_elements,
};
pub use error::Error;
pub use partitioner::Partitioner;
pub use token::{RandomToken, Token};
pub use varint::{decode_varint, encode_varint, encode_varint_i64};

#[cfg(test)]
mod tests;
