//! Locks of partitions for writes that depend on a read (lightweight transactions, counters, views): a fixed number of mutexes, each
//! for the partitions that hash to it.

use std::hash::BuildHasher;

use ilion_env::cost::{self, Count};
use ilion_rows::DecoratedKey;
use ilion_schema::TableId;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

const STRIPES: usize = 1024;

pub(crate) struct Stripes {
    locks: Box<[Mutex<()>]>,
    hasher: foldhash::fast::FixedState,
}

/// Holds the locks of some partitions until it is dropped.
pub struct StripesGuard<'a> {
    _guards: SmallVec<[MutexGuard<'a, ()>; 1]>,
}

impl Stripes {
    pub(crate) fn new() -> Self {
        Self {
            locks: std::iter::repeat_with(|| Mutex::new(())).take(STRIPES).collect(),
            hasher: foldhash::fast::FixedState::default(),
        }
    }

    /// Locks the partitions, in an order that all callers share, so that they cannot deadlock.
    pub(crate) fn lock<'a>(
        &'a self,
        partitions: &mut dyn Iterator<Item = (TableId, &DecoratedKey)>,
    ) -> StripesGuard<'a> {
        let place = |(table, key): (TableId, &DecoratedKey)| {
            self.hasher.hash_one((table, &key.key)) as usize % STRIPES
        };
        let mut places: SmallVec<[usize; 1]> = partitions.map(place).collect();
        places.sort_unstable();
        places.dedup();
        StripesGuard {
            _guards: places.iter().map(|place| held(&self.locks[*place])).collect(),
        }
    }
}

fn held(lock: &Mutex<()>) -> MutexGuard<'_, ()> {
    lock.try_lock()
        .unwrap_or_else(|| cost::timed(Count::LockNanos, || lock.lock()))
}
