//! Decides which failures of the collector are logged: the first at once, then one line a minute while failures go on.

use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(60);

#[derive(Default)]
pub(crate) struct Troubles {
    said: Option<Instant>,
    /// Failures since the last line.
    failures: u64,
    is_failing: bool,
}

impl Troubles {
    /// Notes a failure; returns the number of failures to log, if it is time for a line.
    pub(crate) fn failed(&mut self, now: Instant) -> Option<u64> {
        self.failures += 1;
        self.is_failing = true;
        if self.said.is_some_and(|said| now.duration_since(said) < INTERVAL) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.failures))
    }

    /// Notes a success; returns true if it follows a failure that was logged.
    pub(crate) fn succeeded(&mut self) -> bool {
        // The minute goes on: a collector that fails now and then causes no more lines than one that is down.
        std::mem::take(&mut self.is_failing) && self.failures == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_has_one_line() {
        let mut troubles = Troubles::default();
        let start = Instant::now();
        let at = |secs| start + Duration::from_secs(secs);
        assert_eq!(troubles.failed(at(0)), Some(1));
        assert_eq!(troubles.failed(at(10)), None);
        assert_eq!(troubles.failed(at(59)), None);
        assert_eq!(troubles.failed(at(60)), Some(3));
        assert!(troubles.succeeded());
        assert!(!troubles.succeeded());
        assert_eq!(troubles.failed(at(61)), None);
        assert!(!troubles.succeeded());
    }
}
