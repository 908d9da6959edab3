//! Estimates of the cost of a statement: the time of an execution, and the memory while it is prepared.

/// Whether an execution of a statement may take long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementWeight {
    /// Reads or writes one row, or writes without reading: may run on the calling thread.
    Point,
    /// May take long: needs a thread of its own.
    Heavy,
}

/// Bytes of memory of a short statement with its plan and its columns.
const STATEMENT_BYTES: u64 = 2048;
/// Bytes of memory of a term, without its text.
const TERM_BYTES: u64 = 128;

/// Approximate bytes of memory of a prepared statement: the text, the literals in its plan, and the terms, which are counted by
/// commas.
pub(crate) fn weight_of(text: &str) -> u64 {
    let commas = text.bytes().filter(|byte| *byte == b',').count() as u64;
    STATEMENT_BYTES + 2 * text.len() as u64 + TERM_BYTES * commas
}
