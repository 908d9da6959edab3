//! [`Handover`]: passes obsolete values to a thread that drops them, so that no client waits for the drop.

use std::sync::OnceLock;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// A queue of obsolete values (see the module). The thread ends at a `None` in the queue.
pub(crate) struct Handover<T> {
    queue: OnceLock<Sender<Option<T>>>,
}

impl<T> Default for Handover<T> {
    fn default() -> Self {
        Self {
            queue: OnceLock::new(),
        }
    }
}

impl<T> Handover<T> {
    /// Creates the queue, and returns the end that the thread receives from.
    pub(crate) fn begin(&self) -> Receiver<Option<T>> {
        let (sender, queue) = unbounded();
        // Called once, when the engine starts its threads.
        let _ = self.queue.set(sender);
        queue
    }

    /// Ends the thread after it has dropped all values sent before.
    pub(crate) fn stop(&self) {
        if let Some(queue) = self.queue.get() {
            let _ = queue.send(None);
        }
    }

    /// Passes a value to the thread. If there is no thread, or it has ended, the caller drops the value here.
    pub(crate) fn send(&self, obsolete: T) {
        if let Some(queue) = self.queue.get() {
            let _ = queue.send(Some(obsolete));
        }
    }
}
