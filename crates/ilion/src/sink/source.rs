//! What the sink reads, and how it tells the operator what happens meanwhile.

use std::io::Write as _;

/// A table, and whose changes of it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name under which the node keeps how far the sink is.
    pub consumer: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
}

/// Tells the operator something while the sink goes on.
pub fn tell(text: &str) {
    // The sink does not end because no one reads.
    let _ = writeln!(std::io::stderr(), "ilion: {text}");
}
