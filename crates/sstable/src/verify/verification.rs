//! The result of a check.

use super::findings::Findings;

/// Called with the number of bytes done, of [`work_bytes`](crate::verify::work_bytes).
pub type OnProgress<'p> = &'p mut dyn FnMut(u64);

/// The result of a check.
#[derive(Debug, Default)]
pub struct Verification {
    /// The damage found. Empty if the SSTable is consistent.
    pub findings: Findings,
    /// What could not be checked, and why.
    pub unchecked: Vec<String>,
    /// Number of partitions read.
    pub partitions: u64,
    /// Number of rows and markers read, including static rows.
    pub unfiltereds: u64,
}
