//! [`Maintenance`]: the locks for changes of a table's files.
//!
//! A flush holds its turn from freezing a memtable until the SSTable is in the view, which may take long; the
//! end of a compaction need not wait for that. TRUNCATE, DROP and imports wait for both. A flush that pauses
//! can see that a caller waits. This type also counts the bytes that flushes write and the SSTables that snapshots link, for `progress`.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};

/// The locks of a table's files, in the order in which they are taken.
#[derive(Default)]
pub(crate) struct Maintenance {
    /// Held by a flush, also while it writes.
    flushing: Mutex<()>,
    /// Held while a transaction is committed and the view is changed.
    files: Mutex<()>,
    /// Number of callers that wait for a flush to end.
    waiting: AtomicUsize,
    /// Bytes of memtables that flushes have written, including the table's hidden tables.
    written_bytes: AtomicU64,
    /// Number of SSTables that snapshots have linked.
    linked_sstables: AtomicU64,
}

/// While it is held, only the holder changes the table's files.
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

    /// Locks the files, to commit a transaction and change the view. A flush must hold its turn before.
    pub(crate) fn files(&self) -> MutexGuard<'_, ()> {
        self.files.lock()
    }

    /// Takes the turn of a flush, and then locks the files.
    pub(crate) fn alone(&self) -> Alone<'_> {
        let flushing = self.flush();
        Alone {
            _files: self.files(),
            _flushing: flushing,
        }
    }

    /// True if a caller waits for the running flush.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Counts bytes that a flush has written.
    pub(crate) fn add_written(&self, bytes: u64) {
        self.written_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Counts an SSTable that a snapshot has linked.
    pub(crate) fn add_linked(&self) {
        self.linked_sstables.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn linked_sstables(&self) -> u64 {
        self.linked_sstables.load(Ordering::Relaxed)
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
