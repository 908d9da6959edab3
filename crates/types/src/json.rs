//! JSON as Cassandra reads and writes it.
//!
//! `INSERT JSON`: [`Json::parse`] the text, find the column of each member of the object with [`column_name`], and pass each
//! value to [`CqlType::parse_json`](crate::CqlType::parse_json). `SELECT JSON`:
//! [`CqlType::print_json`](crate::CqlType::print_json), with names from [`print_name`].

mod read;
mod tree;
mod write;

pub use read::column_name;
pub use tree::Json;
pub use write::{print_name, print_string};
