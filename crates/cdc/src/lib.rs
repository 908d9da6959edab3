//! Change data capture: from records of the commit log to changes of tables, and to the envelope that consumers read.
//!
//! The log hands out captured records ([`ilion_commitlog::Changes`]). [`changes_of`] decodes one and returns its changes of one
//! table, in an order in which each may be applied by itself; [`print_json`] prints a change in Debezium's envelope for
//! Cassandra, and [`print_key`] its partition key. [`AvroTable`] encodes the same as Avro.
//!
//! | module | what lives there |
//! | --- | --- |
//! | `change` | [`Change`]: one row, deletion or truncation; from a record to its changes |
//! | `avro` | the envelope as Avro, its schemas, object container files |
//! | `json` | the envelope as JSON |
//! | `place` | [`Place`]: where a consumer begins to read, as text |
//!
//! Not here: which segments are kept and read (`ilion_commitlog`), and who may read them (`ilion_server`).

mod avro;
mod change;
mod json;
mod place;

pub use avro::{AvroFile, AvroTable};
pub use change::{Change, Changed, Error, SharedPosition, changes_of};
pub use json::{print_json, print_key};
pub use place::Place;
