//! The consumers that are reading changes, and the progress of each.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::named_consumers::Entry;

/// Most consumers at a time: each occupies a thread.
pub(crate) const CONSUMERS_MAX: usize = 16;

/// The progress of a consumer.
#[derive(Debug, Default)]
pub(crate) struct Consumer {
    /// Its name, keyspace and table, if it has a name.
    pub named: Option<Entry>,
    /// When the last record that it read was logged.
    logged_micros: AtomicI64,
    /// 1 if there are further records to read.
    is_behind: AtomicU64,
}

impl Consumer {
    /// Notes that the consumer reads a record that was logged at this time.
    pub fn reads(&self, logged_micros: i64) {
        self.logged_micros.store(logged_micros, Ordering::Relaxed);
        self.is_behind.store(1, Ordering::Relaxed);
    }

    /// Notes that the consumer has read all records.
    pub fn caught_up(&self) {
        self.is_behind.store(0, Ordering::Relaxed);
    }

    /// When the last record that it read was logged.
    pub fn logged_micros(&self) -> i64 {
        self.logged_micros.load(Ordering::Relaxed)
    }

    /// The age of the last record that the consumer read; 0 if it has read all.
    pub fn lag_micros(&self, now_micros: i64) -> i64 {
        match self.is_behind.load(Ordering::Relaxed) {
            0 => 0,
            _ => (now_micros - self.logged_micros.load(Ordering::Relaxed)).max(0),
        }
    }
}

/// The consumers that are reading changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consumers(Arc<Mutex<Vec<std::sync::Weak<Consumer>>>>);

impl Consumers {
    /// The consumers that are still reading.
    pub fn list(&self) -> Vec<Arc<Consumer>> {
        let mut all = self.0.lock();
        all.retain(|consumer| consumer.strong_count() > 0);
        all.iter().filter_map(std::sync::Weak::upgrade).collect()
    }

    pub fn add(&self, named: Option<Entry>, now_micros: i64) -> Option<Arc<Consumer>> {
        if self.list().len() >= CONSUMERS_MAX {
            return None;
        }
        let consumer = Arc::new(Consumer {
            named,
            logged_micros: AtomicI64::new(now_micros),
            is_behind: AtomicU64::new(0),
        });
        self.0.lock().push(Arc::downgrade(&consumer));
        Some(consumer)
    }
}
