//! Answers a write when its records are applied, and turns errors of the log into those of clients.

use std::sync::Arc;

use ilion_commitlog::AppendError;
use ilion_query::StoreError;

use crate::pending::PendingWrite;
use crate::progress::NotHere;
use crate::shared::Shared;

/// Settles the record of a write that is in a log, once this node has applied it, if it is a replica.
pub(crate) fn settle_when_applied(shared: &Shared, write: &Arc<PendingWrite>, log: u32, offset: u64) {
    let of_callback = write.clone();
    // If it is not applied here, other replicas apply it, since it is in the log.
    let callback = move |_: Result<(), NotHere>| of_callback.settle(Ok(()));
    if let Some(callback) = shared.progress.on_applied(log, offset, Box::new(callback)) {
        callback(Ok(()));
    }
}

/// The error for a writer whose record is not acknowledged.
pub(crate) fn of_append(error: AppendError) -> StoreError {
    match error {
        AppendError::Refused(reason) => {
            tracing::warn!(%reason, "the log takes no record");
            StoreError::Unavailable {
                required: 1,
                alive: 0,
            }
        }
        AppendError::Unknown(reason) => {
            tracing::debug!(%reason, "the log has not acknowledged a record");
            unknown()
        }
    }
}

/// The error for a client whose write has an unknown outcome.
pub(crate) fn unknown() -> StoreError {
    StoreError::WriteTimeout {
        received: 0,
        block_for: 1,
    }
}
