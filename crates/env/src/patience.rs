//! The deadline of a thread's work for a request.
//!
//! The executor of a statement sets a deadline with [`begin`]. The layers below call [`spend`] with units of work: about one
//! for a row, more for a chunk of a file. Every few thousand units, [`Patience::ended`] is called. A thread without a
//! deadline, such as those of flushes and compactions, is never stopped.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

/// Units of work between two checks of the deadline.
const UNITS_BETWEEN: u32 = 4096;

/// Checks a deadline, and whether the process is shutting down.
pub trait Patience: Send + Sync {
    /// The reason to stop now, if the deadline `ends_nanos` has passed or the process is shutting down.
    fn ended(&self, ends_nanos: u64) -> Option<&'static str>;
}

/// The work of this thread has to stop, for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended(pub &'static str);

struct Limit {
    patience: Arc<dyn Patience>,
    ends_nanos: u64,
}

thread_local! {
    static LEFT: Cell<u32> = const { Cell::new(u32::MAX) };
    static LIMIT: RefCell<Option<Limit>> = const { RefCell::new(None) };
}

/// Sets this thread's deadline until the scope is dropped. Scopes do not nest: an inner one replaces the outer one.
pub fn begin(patience: Arc<dyn Patience>, ends_nanos: u64) -> PatienceScope {
    LIMIT.set(Some(Limit { patience, ends_nanos }));
    LEFT.set(UNITS_BETWEEN);
    PatienceScope {
        this_thread: PhantomData,
    }
}

/// Removes the deadline of its thread when it is dropped; see [`begin`].
#[derive(Debug)]
pub struct PatienceScope {
    this_thread: PhantomData<*const ()>,
}

impl Drop for PatienceScope {
    fn drop(&mut self) {
        LIMIT.set(None);
        LEFT.set(u32::MAX);
    }
}

/// The deadline of this thread; `None` if it has none.
pub fn ends_nanos() -> Option<u64> {
    let ends = LIMIT.with_borrow(|limit| limit.as_ref().map(|limit| limit.ends_nanos));
    ends.filter(|ends| *ends != u64::MAX)
}

/// Counts units of work.
///
/// # Errors
/// The deadline has passed.
#[inline]
pub fn spend(units: u32) -> Result<(), Ended> {
    match LEFT.get().checked_sub(units) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => check(),
    }
}

#[cold]
fn check() -> Result<(), Ended> {
    let ended = LIMIT.with_borrow(|limit| {
        LEFT.set(if limit.is_some() { UNITS_BETWEEN } else { u32::MAX });
        limit
            .as_ref()
            .and_then(|limit| limit.patience.ended(limit.ends_nanos))
    });
    match ended {
        Some(reason) => {
            // A caller that ignores the error gets it again with its next unit.
            LEFT.set(0);
            Err(Ended(reason))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Until(u64);

    impl Patience for Until {
        fn ended(&self, ends_nanos: u64) -> Option<&'static str> {
            (ends_nanos < self.0).then_some("too late")
        }
    }

    #[test]
    fn work_ends_when_its_time_is_over_and_not_before() {
        let spend_much = || (0..3 * UNITS_BETWEEN).try_for_each(|_| spend(1));
        spend_much().unwrap();
        let scope = begin(Arc::new(Until(10)), 10);
        spend_much().unwrap();
        drop(scope);
        let scope = begin(Arc::new(Until(11)), 10);
        assert_eq!(ends_nanos(), Some(10));
        assert_eq!(spend(UNITS_BETWEEN), Ok(()));
        assert_eq!(spend(1), Err(Ended("too late")));
        assert_eq!(spend(1), Err(Ended("too late")));
        drop(scope);
        assert_eq!(ends_nanos(), None);
        spend_much().unwrap();
        spend(u32::MAX).unwrap();
        spend(u32::MAX).unwrap();
    }
}
