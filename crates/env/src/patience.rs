//! When what a thread does for a request has to end.
//!
//! Whoever executes a statement says so with [`begin`]; the layers below [`spend`] units for what they do (about one for a row, more
//! for a chunk of a file). Every [`UNITS_BETWEEN`] units the [`Patience`] is asked. A thread that nobody is patient with spends for free,
//! as those of flushes and compactions do.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::sync::Arc;

/// So much is done between two looks at the clock.
pub const UNITS_BETWEEN: u32 = 4096;

/// Knows the time, and whether the process goes on.
pub trait Patience: Send + Sync {
    /// Why work that may last until then has to end now, if it does.
    fn ended(&self, ends_nanos: u64) -> Option<&'static str>;
}

/// The work of this thread has to end, since.
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

/// From now on what this thread does has to end by then, until the value is dropped. Only one at a time: another one within it takes
/// its place.
pub fn begin(patience: Arc<dyn Patience>, ends_nanos: u64) -> PatienceScope {
    LIMIT.set(Some(Limit { patience, ends_nanos }));
    LEFT.set(UNITS_BETWEEN);
    PatienceScope {
        this_thread: PhantomData,
    }
}

/// See [`begin`].
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

/// Counts what was done.
///
/// # Errors
/// It has to end.
#[inline]
pub fn spend(units: u32) -> Result<(), Ended> {
    match LEFT.get().checked_sub(units) {
        Some(left) => {
            LEFT.set(left);
            Ok(())
        }
        None => ask(),
    }
}

#[cold]
fn ask() -> Result<(), Ended> {
    let ended = LIMIT.with_borrow(|limit| {
        LEFT.set(if limit.is_some() { UNITS_BETWEEN } else { u32::MAX });
        limit
            .as_ref()
            .and_then(|limit| limit.patience.ended(limit.ends_nanos))
    });
    match ended {
        Some(reason) => {
            // Whoever goes on all the same is told again.
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
        assert_eq!(spend(UNITS_BETWEEN), Ok(()));
        assert_eq!(spend(1), Err(Ended("too late")));
        assert_eq!(spend(1), Err(Ended("too late")));
        drop(scope);
        spend_much().unwrap();
        spend(u32::MAX).unwrap();
        spend(u32::MAX).unwrap();
    }
}
