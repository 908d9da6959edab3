//! How long a SELECT may take.
//!
//! Compat: `read_request_timeout` and `range_request_timeout`, from the start of the statement to its end, including all rows
//! of an aggregate. The error is that of a coordinator whose replica did not answer. A program that embeds the engine can give
//! a statement a shorter timeout.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ilion_env::patience::{self, Patience, PatienceScope};

use crate::Store;
use crate::context::Execution;

/// Ends reads that have reached their timeout, and all long reads when the node stops.
pub(crate) struct ReadPatience {
    pub store: Arc<dyn Store>,
    pub is_stopping: Arc<AtomicBool>,
}

impl Patience for ReadPatience {
    fn ended(&self, ends_nanos: u64) -> Option<&'static str> {
        if self.is_stopping.load(Ordering::Relaxed) {
            return Some("Operation timed out - the node is stopping.");
        }
        (self.store.monotonic_nanos() >= ends_nanos)
            .then_some("Operation timed out - received only 0 responses.")
    }
}

/// Starts the timeout of a SELECT: `read_timeout` if `is_by_key`, else `range_timeout`.
pub(crate) fn begin(execution: &Execution<'_>, is_by_key: bool) -> Option<PatienceScope> {
    let options = execution.query_options;
    let of_settings = match is_by_key {
        true => options.read_timeout,
        false => options.range_timeout,
    };
    let timeout = of_settings.into_iter().chain(execution.options.timeout).min();
    let ends_nanos = timeout.map_or(u64::MAX, |timeout| {
        let nanos = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        execution.store.monotonic_nanos().saturating_add(nanos)
    });
    let patience = execution.patience?.clone();
    Some(patience::begin(patience, ends_nanos))
}
