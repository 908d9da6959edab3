//! Limits the requests per second of all clients together.
//!
//! Requests take turns at even intervals. Unused turns of up to 10 ms may be used later. So the only state is the time of the next turn.
//! Compat: `native_transport_max_requests_per_second`, `NonBlockingRateLimiter`.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

const SECOND_NANOS: u64 = 1_000_000_000;
const BURST_NANOS: u64 = 10_000_000;

pub(crate) struct RequestRate {
    pub per_sec: NonZeroU32,
    /// Time of the next turn, in nanoseconds of the monotonic clock.
    next_nanos: AtomicU64,
}

impl RequestRate {
    pub fn new(per_sec: NonZeroU32) -> Self {
        Self {
            per_sec,
            next_nanos: AtomicU64::new(0),
        }
    }

    /// Takes the next turn if its time has come, else returns false.
    pub fn try_take(&self, now_nanos: u64) -> bool {
        let take = |next: u64| (next <= now_nanos).then(|| self.after(next, now_nanos));
        self.next_nanos.try_update(Relaxed, Relaxed, take).is_ok()
    }

    /// Takes the next turn; returns how long to wait for it.
    pub fn take(&self, now_nanos: u64) -> Duration {
        let next = self
            .next_nanos
            .update(Relaxed, Relaxed, |next| self.after(next, now_nanos));
        Duration::from_nanos(next.saturating_sub(now_nanos))
    }

    /// The time of the turn after the one at `next_nanos`.
    fn after(&self, next_nanos: u64, now_nanos: u64) -> u64 {
        let earliest = now_nanos.saturating_sub(BURST_NANOS);
        let distance = SECOND_NANOS / u64::from(self.per_sec.get());
        next_nanos.max(earliest).saturating_add(distance.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 5 * SECOND_NANOS;

    fn rate(per_sec: u32) -> RequestRate {
        RequestRate::new(NonZeroU32::new(per_sec).unwrap())
    }

    #[test]
    fn as_many_pass_in_a_second_as_are_allowed_and_a_small_burst() {
        for per_sec in [1, 7, 1000, 100_000, 1_000_000] {
            let rate = rate(per_sec);
            let step = 500;
            let passed = (START..START + SECOND_NANOS)
                .step_by(step)
                .filter(|now| rate.try_take(*now))
                .count();
            let allowed = per_sec as usize;
            assert!(
                (allowed..=allowed + allowed / 100 + 1).contains(&passed),
                "{passed} of {allowed}"
            );
        }
    }

    #[test]
    fn who_waits_gets_turns_in_order() {
        let rate = rate(10);
        assert!(rate.take(START).is_zero());
        let waits: Vec<u128> = (0..3).map(|_| rate.take(START).as_millis()).collect();
        assert_eq!(waits, [90, 190, 290]);
        assert!(!rate.try_take(START + SECOND_NANOS / 3));
        assert!(rate.try_take(START + SECOND_NANOS));
    }
}
