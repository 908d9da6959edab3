//! [`Signal`]: wakes a thread when one of several answers has arrived.

use std::time::{Duration, Instant};

use ilion_env::handover;
use parking_lot::{Condvar, Mutex};

/// The receivers of answers raise it; the thread that wants one of the answers waits for it.
#[derive(Debug, Default)]
pub struct Signal {
    /// How often it was raised.
    raised: Mutex<u64>,
    changed: Condvar,
}

impl Signal {
    /// Something has changed.
    pub fn raise(&self) {
        *self.raised.lock() += 1;
        self.changed.notify_all();
    }

    /// Waits until `is_done` returns true, but no longer than `time`; calls it after each change. Returns its last result.
    ///
    /// `is_done` is called without a lock, so it may take locks that are held when the signal is raised.
    pub fn wait(&self, time: Duration, is_done: impl Fn() -> bool) -> bool {
        // `None` if no clock reaches that time: then the wait has no limit.
        let until = Instant::now().checked_add(time);
        loop {
            let seen = *self.raised.lock();
            if is_done() {
                return true;
            }
            if handover::before_wait() {
                continue;
            }
            let mut raised = self.raised.lock();
            if *raised != seen {
                continue;
            }
            match until {
                None => self.changed.wait(&mut raised),
                Some(until) => {
                    if self.changed.wait_until(&mut raised, until).timed_out() {
                        drop(raised);
                        return is_done();
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::*;

    #[test]
    fn a_wait_sees_every_change_or_ends() {
        let (signal, count) = (Arc::new(Signal::default()), Arc::new(AtomicUsize::new(0)));
        assert!(!signal.wait(Duration::ZERO, || false));
        let (raising, counting) = (signal.clone(), count.clone());
        let raises = std::thread::spawn(move || {
            for _ in 0..1000 {
                counting.fetch_add(1, SeqCst);
                raising.raise();
            }
        });
        for wanted in [1, 10, 1000] {
            assert!(signal.wait(Duration::from_secs(60), || count.load(SeqCst) >= wanted));
        }
        raises.join().unwrap();
    }
}
