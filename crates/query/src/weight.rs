//! What a statement may cost: time when it is executed, memory while it is prepared.

/// What executing a statement may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementWeight {
    /// Reads or writes one row, or writes without reading: may run on the calling thread.
    Point,
    /// May take long: needs a thread of its own.
    Heavy,
}

/// Memory of a short statement with its plan and its columns.
const STATEMENT_BYTES: u64 = 2048;
/// Memory of a term, beside its text.
const TERM_BYTES: u64 = 128;

/// Approximate memory of a prepared statement: the text, the literals in its plan, and the terms, which are counted by commas.
pub(crate) fn weight_of(text: &str) -> u64 {
    let commas = text.bytes().filter(|byte| *byte == b',').count() as u64;
    STATEMENT_BYTES + 2 * text.len() as u64 + TERM_BYTES * commas
}
