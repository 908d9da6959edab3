//! [`Remover`]: a thread that removes the files of obsolete SSTables.
//!
//! The last reference to an obsolete SSTable is often that of a read. Removing large files takes the file system up to hundreds of
//! milliseconds (it frees their blocks, and tells the disk so), for which no client should wait. So a thread that reads for a client
//! ([`ilion_env::client_waits`]) leaves the removal to this one.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use ilion_env::does_client_wait;
use ilion_sstable::{CommittedTransaction, SSTable};

use crate::handover::Handover;

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
    queue: Handover<Removal>,
}

impl Remover {
    /// The queue that the thread works through.
    pub fn begin(&self) -> Receiver<Option<Removal>> {
        self.queue.begin()
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
        self.queue.stop();
    }

    /// Removes files, or leaves it to the thread.
    pub fn remove(&self, removal: Removal) {
        match does_client_wait() {
            true => self.queue.send(removal),
            false => drop(removal),
        }
    }
}
