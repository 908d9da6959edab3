//! DESCRIBE: the CQL that creates each object, byte for byte as Cassandra 5.0 prints it.
//!
//! | module | what |
//! | --- | --- |
//! | `table` | tables: columns, key, dropped columns |
//! | `options` | the options after `WITH` |
//! | `objects` | keyspaces, types, indexes, views, functions, aggregates |
//! | `elements` | all objects of a keyspace or table, in the order of the answer |

mod elements;
mod objects;
mod options;
mod table;

use std::collections::BTreeMap;

pub use elements::{
    Element, ElementKind, describe_keyspace_elements, describe_table_elements, describe_view_elements,
    name_order, sorted_types,
};
pub use objects::{
    describe_aggregate, describe_function, describe_index, describe_keyspace, describe_type, describe_view,
};
pub use table::describe_table;

/// Whether statements contain the details that only a restore needs: ids and dropped columns (`WITH INTERNALS`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Internals {
    /// Without them, for readers.
    Hidden,
    /// With them, for a restore.
    Shown,
}

/// A text between single quotes.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// `{'a': 'b', 'c': 'd'}`
fn map_literal(map: &BTreeMap<String, String>) -> String {
    let entries: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{}: {}", quoted(key), quoted(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

/// `keyspace.name`, quoted where needed.
fn qualified(keyspace: &str, name: &str) -> String {
    format!(
        "{}.{}",
        ilion_types::quote_name(keyspace),
        ilion_types::quote_name(name)
    )
}

#[cfg(test)]
mod tests;
