//! Guardrail of writes to a disk that is nearly full.
//!
//! Compat: `replica_disk_usage` of Cassandra's guardrails. A watcher records how full the disk is; every write of a client checks
//! it. Every client gets the refusal, but only one client per half hour gets the warning.

use super::disk_usage::Fullness;
use super::violated;
use crate::Error;
use crate::context::Execution;

/// Refuses a write if the disk is full, and warns if it is nearly full.
///
/// # Errors
/// The disk is full.
pub(crate) fn check_disk(execution: &Execution<'_>) -> Result<(), Error> {
    let usage = &execution.query_options.disk_usage;
    let said = |what: &str| violated("replica_disk_usage", what);
    match usage.fullness() {
        Fullness::Spacious => Ok(()),
        Fullness::Stuffed => {
            if usage.is_warning_due(execution.now_secs) {
                execution.warn(said("Replica disk usage exceeds warning threshold"));
            }
            Ok(())
        }
        Fullness::Full => Err(Error::Invalid(said(
            "Write request failed because disk usage exceeds failure threshold",
        ))),
    }
}
