//! [`Remover`]: a thread that removes the files of obsolete SSTables.
//!
//! The last reference to an obsolete SSTable is often that of a read. Removing large files takes the file system up to hundreds of
//! milliseconds (it frees their blocks, and tells the disk so), for which no client should wait. So a thread that reads for a client
//! ([`ilion_env::client_waits`]) leaves the removal to this one.

use std::sync::{Arc, OnceLock};

use crossbeam_channel::{Receiver, Sender, unbounded};
use ilion_env::does_client_wait;
use ilion_sstable::{CommittedTransaction, SSTable};

/// An obsolete SSTable. Its files are removed when this is dropped, wherever that is.
pub(crate) struct Removal {
    sstable: Arc<SSTable>,
    /// What has replaced it. Its log is removed with the last of its SSTables.
    transaction: Arc<CommittedTransaction>,
}

impl Removal {
    pub fn new(sstable: Arc<SSTable>, transaction: Arc<CommittedTransaction>) -> Self {
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

/// See the module. Before it is begun, and after it is stopped, each thread removes files itself.
#[derive(Default)]
pub(crate) struct Remover {
    queue: OnceLock<Sender<Option<Removal>>>,
}

impl Remover {
    /// The queue that the thread works through.
    pub fn begin(&self) -> Receiver<Option<Removal>> {
        let (sender, queue) = unbounded();
        // It is begun once, with the threads of the engine.
        let _ = self.queue.set(sender);
        queue
    }

    /// Removes what comes, until the remover is stopped.
    pub fn run(queue: &Receiver<Option<Removal>>) {
        for removal in queue {
            let Some(removal) = removal else {
                return;
            };
            drop(removal);
        }
    }

    /// Ends the thread after what was left to it.
    pub fn stop(&self) {
        if let Some(queue) = self.queue.get() {
            let _ = queue.send(None);
        }
    }

    /// Removes files, or leaves it to the thread.
    pub fn remove(&self, removal: Removal) {
        let Some(queue) = self.queue.get().filter(|_| does_client_wait()) else {
            return drop(removal);
        };
        // If the thread has ended, the removal comes back and is dropped, which removes the files.
        let _ = queue.send(Some(removal));
    }
}
