//! CQL values: the meaning of a cell's bytes.
//!
//! | module | what |
//! | --- | --- |
//! | `cql_type` | the tree of a CQL type |
//! | `class` | its class string (Statistics.db, custom types of the protocol) |
//! | `cql_name` | its CQL string (`system_schema`, DESCRIBE) |
//! | `custom` | the classes without a CQL name that Ilion knows |
//! | `limits` | how deep and how large a type may be |
//! | `nesting` | types inside types: references, and which types may be nested |
//! | `compare` | the order of serialized values |
//! | `validate` | whether bytes are a value of a type |
//! | `elements` | parts of serialized collections, tuples, vectors, without decoding them |
//! | `composite` | composite partition keys |
//! | `byte_comparable` | values and keys as bytes in their order, for tries |
//! | `partitioner`, `token` | partitioners and tokens |
//! | `key_order` | the order of partition keys by their values |
//! | `value` | decoded values |
//! | `print` | values as plain text and as CQL literals |
//! | `literal`, `tuple_text` | CQL constants to values |
//! | `json` | `SELECT JSON`, `INSERT JSON`, `toJson`, `fromJson` |
//! | `varint`, `decimal`, `duration`, `calendar`, `time_zone`, `float_text`, `time_uuid`, `hex` | scalars with their own rules |
//!
//! When you add a type, also change: `cql_type`, the tables of `class` and `cql_name`, `compare`, `validate`, `value`, `print`,
//! `literal`, `json`.

mod byte_comparable;
mod calendar;
mod class;
mod compare;
mod composite;
mod cql_name;
mod cql_type;
mod custom;
mod decimal;
mod duration;
mod duration_text;
mod elements;
mod error;
mod float_text;
pub mod hex;
pub mod json;
mod key_order;
mod limits;
mod literal;
mod nesting;
mod partitioner;
mod print;
mod time_uuid;
mod time_zone;
mod token;
mod tuple_text;
mod validate;
mod value;
mod varint;

pub use byte_comparable::{
    STATIC_CLUSTERING, TERMINATOR_AFTER, TERMINATOR_BEFORE, TERMINATOR_ROW, encode_comparable_key,
};
pub use calendar::{
    EPOCH_DAY, NANOS_PER_DAY, civil_from_days, days_from_civil, print_date, print_time, print_timestamp,
};
pub use class::{composite_class, partition_key_types};
pub use composite::{KEY_LEN_MAX, decode_composite, encode_composite};
pub use cql_name::{quote_name, quote_type_name};
pub use cql_type::{CqlType, UserType};
pub use decimal::Decimal;
pub use duration::Duration;
pub use elements::{
    Components, Elements, MapEntries, VectorElements, collection_elements, encode_list, encode_map,
    encode_tuple, encode_vector, map_entries, tuple_components, vector_elements,
};
pub use error::Error;
pub use key_order::KeyOrder;
pub use limits::{TYPE_CLASS_LEN_MAX, TYPE_DEPTH_MAX};
pub use literal::ConstantKind;
pub use partitioner::Partitioner;
pub use time_uuid::{
    max_time_uuid, min_time_uuid, ticks_of_unix_micros, time_uuid_from_ticks, time_uuid_ticks,
    time_uuid_unix_millis,
};
pub use token::{RandomToken, Token};
pub use uuid::Uuid;
pub use value::Value;
pub use varint::{decode_varint, encode_varint, encode_varint_i64};

#[cfg(test)]
mod tests;
