//! What a thread hands over to others before it waits.
//!
//! A request thread takes several requests at once and executes them one after another. If one of them waits for another node, the later
//! requests would wait with it, and so would the finished answers, which are sent together at the end. So code that is about to wait for
//! something that may take long calls [`before_wait`]. It calls the [`HandsOver`] of the thread, which puts the later requests back into
//! the queue and sends the answers. In other threads it does neither.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::parking;

/// The rest of a thread's work.
pub trait HandsOver {
    /// Gives it away. Returns true if there was some.
    fn hand_over(&self) -> bool;
}

thread_local! {
    static REST: RefCell<Option<Rc<dyn HandsOver>>> = const { RefCell::new(None) };
}

/// Keeps what a thread hands over until it is dropped.
#[must_use]
pub struct Scope(PhantomData<*const ()>);

impl Drop for Scope {
    fn drop(&mut self) {
        REST.take();
    }
}

/// Sets what this thread hands over, until the scope is dropped.
pub fn set(rest: Rc<dyn HandsOver>) -> Scope {
    REST.set(Some(rest));
    Scope(PhantomData)
}

/// To be called before this thread waits for something that may take long, without locks that others need. Returns true if something was
/// handed over. That takes time, so what the caller waits for may have happened.
///
/// The request that waits is not parked any more ([`parking`]): it would wait again.
pub fn before_wait() -> bool {
    parking::stay();
    let rest = REST.with_borrow(Clone::clone);
    rest.is_some_and(|rest| rest.hand_over())
}

/// True if [`before_wait`] may have something to hand over.
pub(crate) fn is_set() -> bool {
    REST.with_borrow(Option::is_some)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    struct Tasks(Cell<u32>);

    impl HandsOver for Tasks {
        fn hand_over(&self) -> bool {
            self.0.replace(0) > 0
        }
    }

    #[test]
    fn the_rest_is_handed_over_once() {
        assert!(!before_wait(), "this thread has none");
        let tasks = Rc::new(Tasks(Cell::new(3)));
        let scope = set(tasks.clone());
        assert!(before_wait());
        assert_eq!(tasks.0.get(), 0);
        assert!(!before_wait());
        tasks.0.set(1);
        drop(scope);
        assert!(!before_wait());
    }
}
