//! The time that the calls of one statement may take together.

use std::cell::Cell;
use std::time::Duration;

/// The time that the long calls of one statement may take together: a statement may call a function for each of many rows. Calls that
/// need a thread of their own share this budget. Short calls do not use it, like calls of built-in functions.
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

    /// The message for a call after the budget is used up.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "the calls of this statement together ran longer than {} ms",
            self.time.as_millis()
        )
    }
}
