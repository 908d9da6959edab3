//! [`Releaser`]: a thread that frees the memory of flushed memtables.
//!
//! The last reference to a flushed memtable is often that of a read. Its rows are freed one by one, which takes seconds for a memtable of
//! hundreds of megabytes, and no client should wait for it. So this thread keeps a reference until it has the only one.

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError};

use crate::handover::Handover;
use crate::view::Frozen;

/// How often the thread checks whether reads still use flushed memtables.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// The queue to the thread (see the module). Before `begin` and after `stop`, the last user of a memtable frees it.
#[derive(Default)]
pub(crate) struct Releaser {
    queue: Handover<Arc<Frozen>>,
}

impl Releaser {
    /// Creates the queue, and returns the end that the thread receives from.
    pub(crate) fn begin(&self) -> Receiver<Option<Arc<Frozen>>> {
        self.queue.begin()
    }

    /// Frees memtables from the queue once no read uses them, until the releaser is stopped.
    pub(crate) fn run(queue: &Receiver<Option<Arc<Frozen>>>) {
        let mut held: Vec<Arc<Frozen>> = Vec::new();
        loop {
            let next = match held.is_empty() {
                true => queue.recv().map_err(|_| RecvTimeoutError::Disconnected),
                false => queue.recv_timeout(LOOK_AGAIN),
            };
            match next {
                Ok(Some(frozen)) => held.push(frozen),
                Err(RecvTimeoutError::Timeout) => {}
                Ok(None) | Err(RecvTimeoutError::Disconnected) => return,
            }
            held.retain(|frozen| !is_last(frozen));
        }
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.queue.stop();
    }

    /// Passes a memtable that is in no view any more to the thread.
    pub(crate) fn release(&self, frozen: &Arc<Frozen>) {
        self.queue.send(frozen.clone());
    }
}

/// Whether the releaser has the only references. No view has the memtable, so no other thread gets a new one.
fn is_last(frozen: &Arc<Frozen>) -> bool {
    Arc::strong_count(frozen) == 1 && Arc::strong_count(&frozen.memtable) == 1
}

#[cfg(test)]
mod tests {
    use ilion_commitlog::Position;
    use ilion_memtable::Memtable;
    use ilion_schema::Schema;

    use super::*;

    fn frozen() -> Arc<Frozen> {
        let schema = Schema::with_system();
        let table = schema.table("system_schema", "tables").unwrap();
        Arc::new(Frozen {
            memtable: Arc::new(Memtable::new(table.clone(), 1)),
            indexes: None,
            since: Position::START,
            upto: Position::START,
            tablets_upto: Arc::default(),
            tablets: Arc::default(),
        })
    }

    #[test]
    fn a_memtable_is_freed_by_the_thread_and_not_by_the_last_read() {
        let releaser = Releaser::default();
        let queue = releaser.begin();
        let (unused, read) = (frozen(), frozen());
        let memtables = [&unused, &read].map(|frozen| Arc::downgrade(&frozen.memtable));
        let is_there = || memtables.each_ref().map(|memtable| memtable.strong_count() > 0);
        releaser.release(&unused);
        releaser.release(&read);
        let reading = read.memtable.clone();
        drop((unused, read));
        assert_eq!(is_there(), [true, true]);
        std::thread::scope(|scope| {
            scope.spawn(|| Releaser::run(&queue));
            while is_there() != [false, true] {
                std::thread::yield_now();
            }
            drop(reading);
            while is_there() != [false, false] {
                std::thread::yield_now();
            }
            releaser.stop();
        });
    }
}
