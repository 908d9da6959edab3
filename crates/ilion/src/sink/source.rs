//! What the sink reads, and messages to the operator while it runs.

use std::io::Write as _;

/// A table, and the consumer that reads its changes.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name under which the node keeps the sink's position.
    pub consumer: String,
    /// Keyspace of the table.
    pub keyspace: String,
    /// The table.
    pub table: String,
}

/// Prints a message to stderr while the sink goes on.
pub fn tell(text: &str) {
    // An error is ignored: the sink goes on although stderr may be closed.
    let _ = writeln!(std::io::stderr(), "ilion: {text}");
}
