//! Limits the memory of all memtables together, and slows writers when flushes are too slow.
//!
//! From two fifths of the limit on the largest memtable is flushed; from seven tenths on
//! each writer pauses, longer the fuller it is; at the limit writers wait until a flush has freed memory.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use ilion_env::cost::{self, Count};
use parking_lot::{Condvar, Mutex};

/// What a writer must do before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Continues at once.
    Free,
    /// Pauses this long first, or until memory is freed.
    Pause(Duration),
    /// Waits until memory is freed.
    Wait,
}

const PAUSE_MAX_MICROS: usize = 10_000;

/// How a write is admitted when memtables use `used` of `limit` bytes. Pure.
pub(crate) fn admission(used: usize, limit: usize) -> Admission {
    let soft = limit / 10 * 7;
    if used < soft {
        return Admission::Free;
    }
    if used >= limit {
        return Admission::Wait;
    }
    let share = (used - soft) as f64 / (limit - soft).max(1) as f64;
    let micros = (share * share * PAUSE_MAX_MICROS as f64) as u64;
    Admission::Pause(Duration::from_micros(micros))
}

/// Counts the bytes of all memtables that are not yet on disk.
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// Set when flushes failed for good: no writer waits for memory any more.
    is_stopped: AtomicBool,
    /// Flushes fail for now: a writer that would wait for memory is refused.
    is_stalled: AtomicBool,
    waiters: Mutex<()>,
    freed: Condvar,
}

impl Budget {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            used: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            is_stalled: AtomicBool::new(false),
            waiters: Mutex::new(()),
            freed: Condvar::new(),
        }
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// True if a memtable should be flushed.
    pub(crate) fn is_flush_due(&self) -> bool {
        self.used() > self.limit / 5 * 2
    }

    /// Slows the caller as the budget requires. Returns false if there is no memory and flushes fail for now.
    pub(crate) fn admit(&self) -> bool {
        match admission(self.used(), self.limit) {
            Admission::Free => {}
            Admission::Pause(duration) => cost::timed(Count::ThrottleNanos, || {
                let mut guard = self.waiters.lock();
                self.freed.wait_for(&mut guard, duration);
            }),
            Admission::Wait => cost::timed(Count::ThrottleNanos, || {
                let mut guard = self.waiters.lock();
                while self.used() >= self.limit && !self.is_stopped() && !self.is_stalled() {
                    self.freed.wait(&mut guard);
                }
            }),
        }
        self.has_room()
    }

    /// False if there is no memory and flushes fail for now.
    pub(crate) fn has_room(&self) -> bool {
        self.used() < self.limit || !self.is_stalled()
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Acquire)
    }

    /// True if flushes fail for now.
    pub(crate) fn is_stalled(&self) -> bool {
        self.is_stalled.load(Ordering::Acquire)
    }

    /// Records that flushes fail for now.
    pub(crate) fn stall(&self) {
        self.is_stalled.store(true, Ordering::Release);
        let _guard = self.waiters.lock();
        self.freed.notify_all();
    }

    /// Records that flushes succeed again.
    pub(crate) fn go_on(&self) {
        self.is_stalled.store(false, Ordering::Release);
    }

    /// Adds bytes by which a memtable grew; negative if it shrank.
    pub(crate) fn grow(&self, bytes: isize) {
        if bytes >= 0 {
            self.used.fetch_add(bytes.unsigned_abs(), Ordering::Relaxed);
        } else {
            self.subtract(bytes.unsigned_abs());
        }
    }

    /// Subtracts a memtable of this size.
    pub(crate) fn free(&self, bytes: usize) {
        self.subtract(bytes);
        let _guard = self.waiters.lock();
        self.freed.notify_all();
    }

    fn subtract(&self, bytes: usize) {
        let lower = |used: usize| Some(used.saturating_sub(bytes));
        // The closure always returns `Some`, so the update cannot fail.
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower);
    }

    /// Records that flushes have stopped for good.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Release);
        let _guard = self.waiters.lock();
        self.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_slowed_smoothly_and_wait_at_the_limit() {
        assert_eq!(admission(0, 1000), Admission::Free);
        assert_eq!(admission(699, 1000), Admission::Free);
        let pause = |used| match admission(used, 1000) {
            Admission::Pause(duration) => duration,
            other => panic!("{other:?}"),
        };
        assert!(pause(700) <= pause(800) && pause(800) < pause(999));
        assert_eq!(admission(1000, 1000), Admission::Wait);
    }

    #[test]
    fn a_writer_does_not_wait_for_flushes_that_fail() {
        let budget = Budget::new(100);
        budget.grow(150);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.admit());
            budget.stall();
            assert!(!waiting.join().unwrap());
        });
        budget.free(100);
        assert!(budget.admit(), "there is room, though flushes fail");
        budget.go_on();
        assert!(!budget.is_stalled());
    }

    #[test]
    fn freed_memory_lets_a_waiting_writer_go_on() {
        let budget = Budget::new(100);
        budget.grow(150);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.admit());
            budget.free(120);
            assert!(waiting.join().unwrap());
        });
        assert_eq!(budget.used(), 30);
        budget.grow(-40);
        assert_eq!(budget.used(), 0);
    }
}
