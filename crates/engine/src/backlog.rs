//! Measures how far compactions are behind, and slows writers accordingly, so that reads stay short.
//!
//! The *debt* of a table is the number of SSTables that a read may have to touch only because compactions are behind
//! (`Strategy::debt`). As it grows, compactions may read faster than their limit; from [`SLOWED_FROM`] on, writers of the table
//! pause, longer the higher it is; at [`DEBT_MAX`] they wait for a compaction to end. So writes are no faster than
//! compactions. A read touches at most `DEBT_MAX` SSTables more than the strategy leaves at rest, and those that the
//! memtables of that moment become.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ilion_env::cost::{self, Count};
use parking_lot::{Condvar, Mutex};

/// From this debt on writers are slowed, and the rate of compactions is not limited.
pub(crate) const SLOWED_FROM: usize = 16;
/// From this debt on writers wait for a compaction to end.
pub(crate) const DEBT_MAX: usize = 32;
const PAUSE_MAX_MICROS: f64 = 20_000.0;
/// The longest wait of one write.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// What a writer must do before it writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Toll {
    /// Continues at once.
    Free,
    /// Pauses this long first.
    Pause(Duration),
    /// Waits until a compaction has ended.
    Wait,
}

/// The toll of a write to a table. The debt that the table had when it was opened (`given`) does not count. Pure.
pub(crate) fn toll(debt: usize, given: usize) -> Toll {
    let debt = debt.saturating_sub(given);
    if debt < SLOWED_FROM {
        return Toll::Free;
    }
    if debt >= DEBT_MAX {
        return Toll::Wait;
    }
    let share = (debt - SLOWED_FROM + 1) as f64 / (DEBT_MAX - SLOWED_FROM) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most PAUSE_MAX_MICROS"
    )]
    let micros = (share * share * PAUSE_MAX_MICROS) as u64;
    Toll::Pause(Duration::from_micros(micros))
}

/// The debt of a table.
#[derive(Default)]
pub(crate) struct Debt {
    now: AtomicUsize,
    /// The debt that the table had when it was opened, or the lowest debt since.
    given: AtomicUsize,
}

impl Debt {
    /// Sets the debt of a table that was opened.
    pub(crate) fn found(&self, debt: usize) {
        self.now.store(debt, Ordering::Relaxed);
        self.given.store(debt, Ordering::Relaxed);
    }

    /// Sets the debt after a flush or a compaction.
    pub(crate) fn note(&self, debt: usize) {
        self.now.store(debt, Ordering::Relaxed);
        self.given.fetch_min(debt, Ordering::Relaxed);
    }

    pub(crate) fn now(&self) -> usize {
        self.now.load(Ordering::Relaxed)
    }

    pub(crate) fn toll(&self) -> Toll {
        toll(self.now(), self.given.load(Ordering::Relaxed))
    }
}

/// Writers to tables whose compactions are behind wait here.
#[derive(Default)]
pub(crate) struct Backlog {
    /// The highest debt of any table. A write checks the debts of its own tables only if this one is high.
    worst: AtomicUsize,
    waiting: Mutex<()>,
    paid: Condvar,
}

impl Backlog {
    pub(crate) fn is_behind(&self) -> bool {
        self.worst.load(Ordering::Relaxed) >= SLOWED_FROM
    }

    /// Sets the highest debt, and wakes waiting writers.
    pub(crate) fn note(&self, worst: usize) {
        self.worst.store(worst, Ordering::Relaxed);
        let _guard = self.waiting.lock();
        self.paid.notify_all();
    }

    /// Slows the caller as the debt requires.
    pub(crate) fn pay(&self, debt: &Debt) {
        let pause = match debt.toll() {
            Toll::Free => return,
            Toll::Pause(pause) => pause,
            Toll::Wait => WAIT_MAX,
        };
        cost::timed(Count::ThrottleNanos, || {
            let mut guard = self.waiting.lock();
            if debt.toll() != Toll::Free {
                self.paid.wait_for(&mut guard, pause);
            }
        });
    }
}

#[cfg(test)]
mod model;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_slowed_smoothly_and_wait_at_the_limit() {
        assert_eq!(toll(SLOWED_FROM - 1, 0), Toll::Free);
        let pause = |debt| match toll(debt, 0) {
            Toll::Pause(pause) => pause,
            other => panic!("{other:?}"),
        };
        assert!(pause(SLOWED_FROM) < Duration::from_millis(1));
        assert!(pause(SLOWED_FROM + 4) < pause(DEBT_MAX - 1));
        assert_eq!(toll(DEBT_MAX, 0), Toll::Wait);
    }

    #[test]
    fn what_a_table_was_opened_with_is_not_held_against_its_writers() {
        let debt = Debt::default();
        debt.found(500);
        assert_eq!(debt.toll(), Toll::Free);
        debt.note(500 + DEBT_MAX);
        assert_eq!(debt.toll(), Toll::Wait);
        debt.note(10);
        debt.note(10 + SLOWED_FROM);
        assert!(matches!(debt.toll(), Toll::Pause(_)));
    }
}
