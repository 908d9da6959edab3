//! A clock that only the test moves, and ids from it.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ilion_types::{Uuid, ticks_of_unix_micros, time_uuid_from_ticks};

/// 2023-11-14 22:13:20
const START_MICROS: i64 = 1_700_000_000_000_000;

pub struct Clock {
    now_micros: AtomicI64,
    last_micros: AtomicI64,
    uuids: AtomicU64,
}

impl Clock {
    pub fn new() -> Self {
        Self {
            now_micros: AtomicI64::new(START_MICROS),
            last_micros: AtomicI64::new(START_MICROS),
            uuids: AtomicU64::new(0),
        }
    }

    pub fn advance(&self, micros: i64) {
        self.now_micros.fetch_add(micros, Ordering::SeqCst);
    }

    pub fn now_micros(&self) -> i64 {
        self.now_micros.load(Ordering::SeqCst)
    }

    pub fn unique_micros(&self) -> i64 {
        let now = self.now_micros();
        let next = |last: i64| Some(now.max(last + 1));
        let before = self
            .last_micros
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        now.max(before.unwrap() + 1)
    }

    /// Skips this many unique timestamps.
    pub fn skip(&self, micros: i64) {
        self.last_micros.fetch_add(micros, Ordering::SeqCst);
    }

    pub fn time_uuid(&self) -> Uuid {
        time_uuid_from_ticks(ticks_of_unix_micros(self.unique_micros()), 0x8000_0000_0000_0001)
    }

    pub fn random_uuid(&self) -> Uuid {
        let number = self.uuids.fetch_add(1, Ordering::SeqCst);
        Uuid::from_u64_pair(0x4000, (2 << 62) | number)
    }
}
