//! Limits the processor time of failed logins: [`FailureShare`].
//!
//! Checking a wrong password costs as much as checking a right one, but a right one is hashed only once (see `RightPasswords`). So only
//! failed checks are limited: to a sixteenth of the processors in the long run. A burst of one second is free, so that a few mistyped
//! passwords do not wait. A running check counts as failed until its outcome is known.
//!
//! Pure: times are given by the caller, as nanoseconds of a clock that never steps back.

use std::time::Duration;

/// Failed logins may take one part in this many of the processors' time.
const PARTS: u64 = 16;
/// Processor time that failed logins may take at once, after a time without failures.
const BURST_NANOS: u64 = 1_000_000_000;

/// The processor time of failed logins that has not been paid off by waiting.
#[derive(Debug)]
pub struct FailureShare {
    processors: u64,
    debt_nanos: u64,
    counted_at_nanos: u64,
    /// The cost of the last check: the estimate for running ones.
    last_cost_nanos: u64,
}

/// A check that runs.
#[must_use]
#[derive(Debug)]
pub struct RunningCheck {
    guessed_nanos: u64,
}

impl FailureShare {
    /// A share of this many processors, without failures.
    pub fn new(processors: usize) -> Self {
        Self {
            processors: (processors as u64).max(1),
            debt_nanos: 0,
            counted_at_nanos: 0,
            last_cost_nanos: 0,
        }
    }

    /// How long the next check has to wait.
    pub fn wait(&mut self, now_nanos: u64) -> Duration {
        self.make_up(now_nanos);
        let excess = self.debt_nanos.saturating_sub(BURST_NANOS);
        Duration::from_nanos(excess.saturating_mul(PARTS) / self.processors)
    }

    /// Begins a check.
    pub fn begin(&mut self) -> RunningCheck {
        self.debt_nanos = self.debt_nanos.saturating_add(self.last_cost_nanos);
        RunningCheck {
            guessed_nanos: self.last_cost_nanos,
        }
    }

    /// Ends a check; `cost_nanos` is its processor time. Only a failed one counts.
    pub fn finish(&mut self, check: RunningCheck, cost_nanos: u64, has_failed: bool) {
        self.debt_nanos = self.debt_nanos.saturating_sub(check.guessed_nanos);
        if has_failed {
            self.debt_nanos = self.debt_nanos.saturating_add(cost_nanos);
            self.last_cost_nanos = cost_nanos;
        }
    }

    fn make_up(&mut self, now_nanos: u64) {
        let passed = now_nanos.saturating_sub(self.counted_at_nanos);
        let made_up = passed.saturating_mul(self.processors) / PARTS;
        self.debt_nanos = self.debt_nanos.saturating_sub(made_up);
        self.counted_at_nanos = now_nanos;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;
    const HASH: u64 = 50 * MILLI;

    /// Checks one login after the other for so long, and returns how many.
    fn checks_in(share: &mut FailureShare, from: u64, until: u64, has_failed: bool) -> u64 {
        let (mut now, mut count) = (from, 0);
        while now < until {
            match share.wait(now) {
                Duration::ZERO => {
                    let check = share.begin();
                    now += HASH;
                    share.finish(check, HASH, has_failed);
                    count += 1;
                }
                wait => now += u64::try_from(wait.as_nanos()).unwrap(),
            }
        }
        count
    }

    #[test]
    fn failed_logins_take_their_share_after_the_first_second() {
        let mut share = FailureShare::new(2);
        let second = 1_000 * MILLI;
        // A second at once is 20 checks; the share of two processors is 2.5 checks a second.
        let first = checks_in(&mut share, 0, 2 * second, true);
        assert!((20..=26).contains(&first), "{first}");
        let later = checks_in(&mut share, 2 * second, 102 * second, true);
        assert!((245..=255).contains(&later), "{later}");
        // After a pause without failures, a second is free again.
        let after = checks_in(&mut share, 202 * second, 204 * second, true);
        assert!((20..=26).contains(&after), "{after}");
    }

    #[test]
    fn right_logins_wait_for_nothing() {
        let mut share = FailureShare::new(2);
        assert_eq!(checks_in(&mut share, 0, 1_000 * HASH, false), 1_000);
    }

    #[test]
    fn checks_that_run_at_the_same_time_are_counted_before_they_end() {
        let mut share = FailureShare::new(2);
        let check = share.begin();
        share.finish(check, HASH, true);
        let running: Vec<RunningCheck> =
            std::iter::from_fn(|| share.wait(0).is_zero().then(|| share.begin()))
                .take(100)
                .collect();
        assert_eq!(running.len(), 20);
        for check in running {
            share.finish(check, HASH, false);
        }
        assert_eq!(share.wait(0), Duration::ZERO);
    }
}
