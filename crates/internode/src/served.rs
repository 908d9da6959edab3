//! [`ServedCall`]: a request of another node while it is answered: whether it is still wanted, and how much may be sent.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use ilion_env::Env;
use ilion_env::patience::Patience;
use parking_lot::{Condvar, Mutex};

use crate::hello::Identity;

/// A request that is being answered.
pub struct ServedCall {
    pub(crate) stream: i16,
    pub(crate) request_bytes: AtomicUsize,
    asker: Identity,
    env: Arc<dyn Env>,
    deadline_nanos: u64,
    is_cancelled: AtomicBool,
    /// Bytes that may still be sent; below 0 after a piece that was larger than what was left.
    credit: Mutex<i64>,
    changed: Condvar,
}

impl ServedCall {
    pub(crate) fn new(
        stream: i16,
        asker: Identity,
        env: Arc<dyn Env>,
        time_left_micros: u64,
        window: u32,
    ) -> Self {
        let left_nanos = time_left_micros.saturating_mul(1000);
        Self {
            stream,
            request_bytes: AtomicUsize::new(0),
            asker,
            deadline_nanos: env.monotonic_nanos().saturating_add(left_nanos),
            env,
            is_cancelled: AtomicBool::new(false),
            credit: Mutex::new(i64::from(window)),
            changed: Condvar::new(),
        }
    }

    /// The node that asks.
    pub fn asker(&self) -> &Identity {
        &self.asker
    }

    /// When the node that asks gives up, on this node's monotonic clock; `u64::MAX`: never by itself.
    pub fn deadline_nanos(&self) -> u64 {
        self.deadline_nanos
    }

    /// False if the node that asked does not want the answer any more, or is gone.
    pub fn is_wanted(&self) -> bool {
        !self.is_cancelled.load(Relaxed)
    }

    /// True if the time for an answer is over.
    pub(crate) fn is_late(&self) -> bool {
        self.env.monotonic_nanos() >= self.deadline_nanos
    }

    pub(crate) fn cancel(&self) {
        // Under the lock, so that a thread that is about to wait sees it.
        let _credit = self.credit.lock();
        self.is_cancelled.store(true, Relaxed);
        self.changed.notify_all();
    }

    pub(crate) fn add_credit(&self, bytes: u32) {
        let mut credit = self.credit.lock();
        *credit = credit.saturating_add(i64::from(bytes));
        self.changed.notify_all();
    }

    /// Waits until something may be sent, and takes credit for `bytes`. Returns false if the answer is not wanted any more, or there was no
    /// credit for `patience`.
    pub(crate) fn take_credit(&self, bytes: usize, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let mut credit = self.credit.lock();
        while *credit <= 0 && self.is_wanted() {
            if self.changed.wait_until(&mut credit, until).timed_out() && *credit <= 0 {
                return false;
            }
        }
        *credit -= i64::try_from(bytes).unwrap_or(i64::MAX);
        self.is_wanted()
    }

    /// Waits for a moment, or until the answer is not wanted any more.
    pub(crate) fn pause(&self, time: Duration) {
        let mut credit = self.credit.lock();
        if self.is_wanted() {
            self.changed.wait_for(&mut credit, time);
        }
    }
}

impl Patience for ServedCall {
    fn ended(&self, ends_nanos: u64) -> Option<&'static str> {
        if !self.is_wanted() {
            return Some("The node that asked does not want the answer any more");
        }
        (self.env.monotonic_nanos() >= ends_nanos).then_some("Operation timed out")
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;
    use uuid::Uuid;

    use super::*;

    fn call(window: u32) -> Arc<ServedCall> {
        let asker = Identity {
            cluster: Uuid::nil(),
            node: 1,
            session: Uuid::nil(),
            host: Uuid::nil(),
        };
        Arc::new(ServedCall::new(
            1,
            asker,
            Arc::new(MemEnv::new(1)),
            u64::MAX,
            window,
        ))
    }

    #[test]
    fn no_more_is_sent_than_there_is_credit_for() {
        let call = call(100);
        let (wait, none) = (Duration::from_secs(60), Duration::ZERO);
        assert!(call.take_credit(70, wait));
        assert!(call.take_credit(70, wait), "the last piece may be larger");
        assert!(!call.take_credit(1, none));
        let other = call.clone();
        let waiting = std::thread::spawn(move || other.take_credit(1, wait));
        call.add_credit(41);
        assert!(waiting.join().unwrap());
        assert!(!call.take_credit(1, none));
    }

    #[test]
    fn a_call_that_is_cancelled_waits_no_longer() {
        let call = call(0);
        let other = call.clone();
        let waiting = std::thread::spawn(move || other.take_credit(1, Duration::from_secs(60)));
        call.cancel();
        assert!(!waiting.join().unwrap());
        assert!(call.ended(u64::MAX).is_some());
    }
}
