//! [`Handover`]: hands what is obsolete to a thread that drops it, so that no client waits for that.

use std::sync::OnceLock;

use crossbeam_channel::{Receiver, Sender, unbounded};

/// See the module. The thread ends at a `None` in its queue.
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
    /// The queue that the thread works through.
    pub fn begin(&self) -> Receiver<Option<T>> {
        let (sender, queue) = unbounded();
        // It is begun once, with the threads of the engine.
        let _ = self.queue.set(sender);
        queue
    }

    /// Ends the thread after what was handed over before.
    pub fn stop(&self) {
        if let Some(queue) = self.queue.get() {
            let _ = queue.send(None);
        }
    }

    /// Hands a value over. If there is no thread, or it has ended, the caller drops the value here.
    pub fn send(&self, obsolete: T) {
        if let Some(queue) = self.queue.get() {
            let _ = queue.send(Some(obsolete));
        }
    }
}
