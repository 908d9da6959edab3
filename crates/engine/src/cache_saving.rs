//! [`CacheSaving`]: when `saved_caches` saves a cache, and how much of it.

use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use crate::EngineOptions;
use crate::options::CacheOptions;

pub(crate) const KEYS: &str = "KeyCache";
pub(crate) const ROWS: &str = "RowCache";
pub(crate) const COUNTERS: &str = "CounterCache";

/// When a cache is saved, and how much of it.
pub(crate) struct CacheSaving {
    /// Prefix of the names of its files.
    pub name: &'static str,
    /// The name that operators see.
    pub label: &'static str,
    save_period: Option<Duration>,
    /// Most keys that are saved.
    pub keys_to_save: AtomicUsize,
}

impl CacheSaving {
    fn of(name: &'static str, label: &'static str, options: &CacheOptions) -> Self {
        Self {
            name,
            label,
            save_period: options.save_period,
            keys_to_save: AtomicUsize::new(options.keys_to_save),
        }
    }

    /// The settings of all caches that are saved.
    pub(crate) fn all(options: &EngineOptions) -> [Self; 3] {
        [
            Self::of(KEYS, "keys", &options.key_cache),
            Self::of(ROWS, "rows", &options.row_cache),
            Self::of(COUNTERS, "counters", &options.counter_cache),
        ]
    }

    /// When the cache is saved next, in nanoseconds of the same clock as `now_nanos`; `None` if never.
    pub(crate) fn due_nanos(&self, now_nanos: u64) -> Option<u64> {
        let nanos = |period: Duration| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        self.save_period
            .map(|period| now_nanos.saturating_add(nanos(period)))
    }
}
