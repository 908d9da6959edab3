//! The time that the calls of one statement may take together.

use std::cell::Cell;
use std::time::Duration;

/// A statement may call a function for each of many rows. Short calls do not use this budget, like those of built-in functions;
/// calls that need a thread of their own share it.
#[derive(Debug)]
pub struct CallBudget {
    time: Duration,
    left: Cell<Duration>,
}

impl CallBudget {
    /// A full budget.
    pub fn new(time: Duration) -> Self {
        Self {
            time,
            left: Cell::new(time),
        }
    }

    pub(crate) fn left(&self) -> Duration {
        self.left.get()
    }

    pub(crate) fn spend(&self, time: Duration) {
        self.left.set(self.left.get().saturating_sub(time));
    }

    /// Why no further call may be made.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "the calls of this statement together ran longer than {} ms",
            self.time.as_millis()
        )
    }
}
