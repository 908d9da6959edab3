//! JSON as Cassandra reads and writes it.
//!
//! `INSERT JSON`: [`Json::parse`] the text, take the members of the object ([`column_name`] says which column each
//! names), and give each to [`CqlType::parse_json`](crate::CqlType::parse_json). `SELECT JSON`:
//! [`CqlType::print_json`](crate::CqlType::print_json), with names by [`print_name`].

mod read;
mod tree;
mod write;

pub use read::column_name;
pub use tree::Json;
pub use write::{print_name, print_string};
