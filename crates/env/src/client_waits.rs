//! Whether a client waits for the work of a thread.

use std::cell::Cell;

use crate::thread_flag::ThreadFlag;

thread_local! {
    static CLIENT_WAITS: Cell<bool> = const { Cell::new(false) };
}

/// A client waits for this thread until the scope is dropped. Work that other threads can do, such as removing files, is left to them.
pub fn client_waits() -> ThreadFlag {
    ThreadFlag::set(&CLIENT_WAITS)
}

/// True if a client waits for this thread.
pub fn does_client_wait() -> bool {
    CLIENT_WAITS.get()
}
