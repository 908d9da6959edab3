//! What the calls of one statement may take together.

use std::cell::Cell;
use std::time::Duration;

/// A statement may call a function for each of many rows. Calls that are over at once cost it nothing here, as those of
/// built-in functions do; calls that need a thread of their own share this time.
#[derive(Debug)]
pub struct CallBudget {
    time: Duration,
    left: Cell<Duration>,
}

impl CallBudget {
    /// Nothing is used up.
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

    /// Why no further call is made.
    pub(crate) fn refusal(&self) -> String {
        format!(
            "the calls of this statement together ran longer than {} ms",
            self.time.as_millis()
        )
    }
}
