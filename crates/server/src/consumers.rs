//! Who reads changes now, and how far each is.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;

/// Consumers at a time: each holds a thread.
pub(crate) const CONSUMERS_MAX: usize = 16;

/// How far a consumer is.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    /// When the last record that it read was logged.
    logged_micros: AtomicI64,
    /// 1 if records follow.
    is_behind: AtomicU64,
}

impl Consumer {
    /// It reads a record that was logged then.
    pub fn reads(&self, logged_micros: i64) {
        self.logged_micros.store(logged_micros, Ordering::Relaxed);
        self.is_behind.store(1, Ordering::Relaxed);
    }

    /// It has read everything.
    pub fn caught_up(&self) {
        self.is_behind.store(0, Ordering::Relaxed);
    }

    /// The age of the last record that it read, if records follow.
    pub fn lag_micros(&self, now_micros: i64) -> i64 {
        match self.is_behind.load(Ordering::Relaxed) {
            0 => 0,
            _ => (now_micros - self.logged_micros.load(Ordering::Relaxed)).max(0),
        }
    }
}

/// The consumers that read now.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumers(Arc<Mutex<Vec<std::sync::Weak<Consumer>>>>);

impl Consumers {
    /// Those that still read.
    pub fn list(&self) -> Vec<Arc<Consumer>> {
        let mut all = self.0.lock();
        all.retain(|consumer| consumer.strong_count() > 0);
        all.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    pub fn add(&self, now_micros: i64) -> Option<Arc<Consumer>> {
        if self.list().len() >= CONSUMERS_MAX {
            return None;
        }
        let consumer = Arc::new(Consumer {
            logged_micros: AtomicI64::new(now_micros),
            is_behind: AtomicU64::new(0),
        });
        self.0.lock().push(Arc::downgrade(&consumer));
        Some(consumer)
    }
}
