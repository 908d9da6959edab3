//! [`ThreadFlag`]: a flag of a thread that is set until a scope is dropped.

use std::cell::Cell;
use std::marker::PhantomData;
use std::thread::LocalKey;

/// Keeps a flag of this thread set until it is dropped. Then the flag gets its former value back, so scopes may nest.
#[derive(Debug)]
pub struct ThreadFlag {
    flag: &'static LocalKey<Cell<bool>>,
    before: bool,
    this_thread: PhantomData<*const ()>,
}

impl ThreadFlag {
    pub(crate) fn set(flag: &'static LocalKey<Cell<bool>>) -> Self {
        Self {
            flag,
            before: flag.replace(true),
            this_thread: PhantomData,
        }
    }
}

impl Drop for ThreadFlag {
    fn drop(&mut self) {
        self.flag.set(self.before);
    }
}
