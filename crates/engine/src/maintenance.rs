//! Who changes the files of a table, and when.
//!
//! A flush has its turn from freezing a memtable to the SSTable in the view, which takes as long as the memtable is large; the
//! end of a compaction need not wait for that. Whoever empties a table, drops it, or brings files waits for both, and a flush
//! that takes its time can see that somebody waits.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// The locks of a table's files, in the order in which they are taken.
#[derive(Default)]
pub(crate) struct Maintenance {
    /// Held by one flush at a time, also while it writes.
    flushing: Mutex<()>,
    /// Held while a transaction is committed and the view is changed.
    files: Mutex<()>,
    /// How many wait for a flush to end.
    waiting: AtomicUsize,
}

/// Nothing happens to the table's files but what the holder does.
pub(crate) struct Alone<'a> {
    _files: MutexGuard<'a, ()>,
    _flushing: MutexGuard<'a, ()>,
}

impl Maintenance {
    /// The turn of a flush.
    pub(crate) fn flush(&self) -> MutexGuard<'_, ()> {
        self.flushing.try_lock().unwrap_or_else(|| {
            self.waiting.fetch_add(1, Ordering::Relaxed);
            let turn = self.flushing.lock();
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            turn
        })
    }

    /// To put SSTables into the view or take them out. A flush has its turn first.
    pub(crate) fn files(&self) -> MutexGuard<'_, ()> {
        self.files.lock()
    }

    /// Both.
    pub(crate) fn alone(&self) -> Alone<'_> {
        let flushing = self.flush();
        Alone {
            _files: self.files(),
            _flushing: flushing,
        }
    }

    /// Somebody waits for the flush that has its turn.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compaction_ends_during_a_flush_and_a_truncation_waits() {
        let maintenance = Maintenance::default();
        let flush = maintenance.flush();
        drop(maintenance.files());
        assert!(!maintenance.is_awaited());
        std::thread::scope(|scope| {
            let truncation = scope.spawn(|| drop(maintenance.alone()));
            while !maintenance.is_awaited() {
                std::thread::yield_now();
            }
            drop(flush);
            truncation.join().unwrap();
        });
        assert!(!maintenance.is_awaited());
    }
}
