//! Whether a client waits for what a thread does.

use std::cell::Cell;
use std::marker::PhantomData;

thread_local! {
    static CLIENT_WAITS: Cell<bool> = const { Cell::new(false) };
}

/// A client waits for this thread until the scope is dropped. What can be done by others, such as removing files, is left to them.
pub fn client_waits() -> ClientWaits {
    ClientWaits {
        before: CLIENT_WAITS.replace(true),
        this_thread: PhantomData,
    }
}

/// True if a client waits for this thread.
pub fn does_client_wait() -> bool {
    CLIENT_WAITS.get()
}

/// See [`client_waits`].
#[derive(Debug)]
pub struct ClientWaits {
    before: bool,
    this_thread: PhantomData<*const ()>,
}

impl Drop for ClientWaits {
    fn drop(&mut self) {
        CLIENT_WAITS.set(self.before);
    }
}
