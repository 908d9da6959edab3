//! [`Remover`]: a thread that removes the files of obsolete SSTables.
//!
//! The last reference to an obsolete SSTable is often that of a read. Removing large files takes up to hundreds of milliseconds (the
//! file system frees their blocks, and reports them to the disk), and no client should wait for that. So a thread that reads for a
//! client ([`ilion_env::client_waits`]) leaves the removal to this one.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use ilion_env::does_client_wait;
use ilion_sstable::{CommittedTransaction, SSTable};

use crate::handover::Handover;

/// An obsolete SSTable. Dropping this value removes its files, on whichever thread.
pub(crate) struct Removal {
    sstable: Arc<SSTable>,
    /// The transaction that replaced it. Its log is removed after the files of its last SSTable.
    transaction: Arc<CommittedTransaction>,
}

impl Removal {
    pub(crate) fn new(sstable: Arc<SSTable>, transaction: Arc<CommittedTransaction>) -> Self {
        Self { sstable, transaction }
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        let sstable = self.sstable.descriptor();
        if let Err(error) = self.transaction.remove_files(sstable) {
            tracing::warn!(%sstable, %error, "files of an obsolete SSTable stay until the next start");
        }
    }
}

/// The queue to the thread (see the module). Before `begin` and after `stop`, each thread removes files itself.
#[derive(Default)]
pub(crate) struct Remover {
    queue: Handover<Removal>,
}

impl Remover {
    /// Creates the queue, and returns the end that the thread receives from.
    pub(crate) fn begin(&self) -> Receiver<Option<Removal>> {
        self.queue.begin()
    }

    /// Removes SSTables from the queue, until the remover is stopped.
    pub(crate) fn run(queue: &Receiver<Option<Removal>>) {
        for removal in queue {
            let Some(removal) = removal else {
                return;
            };
            drop(removal);
        }
    }

    /// Ends the thread after it has removed everything that is in the queue.
    pub(crate) fn stop(&self) {
        self.queue.stop();
    }

    /// Removes files on this thread, or leaves them to the remover's thread if a client waits.
    pub(crate) fn remove(&self, removal: Removal) {
        match does_client_wait() {
            true => self.queue.send(removal),
            false => drop(removal),
        }
    }
}
