//! Positions in the logs of tablets (see `tablets`), how far each log is applied, and their form in Statistics.db.
//!
//! The end of a tablet is written as an interval from the start of the log: segment `1 << 62 | tablet << 32 | end >> 31`, offset
//! `end & 0x7fff_ffff`. The numbers of the local log's segments are far smaller.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ilion_sstable::CommitLogInterval;
use parking_lot::{Mutex, RwLock};

/// Bit in the number of a segment that belongs to the log of a tablet.
const OF_TABLET: u64 = 1 << 62;
/// All numbers of tablets are below this one.
pub(crate) const TABLETS_MAX: u32 = 1 << 30;
const OFFSET_BITS: u32 = 31;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// The position of a record in the log of a tablet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TabletPosition {
    /// The tablet.
    pub tablet: u32,
    /// The offset of the record in that log. Offsets grow, and may have gaps.
    pub offset: u64,
}

/// For each tablet, an offset above its last record. Ascending by tablet.
pub(crate) type TabletEnds = Arc<[(u32, u64)]>;

/// The offsets, exclusive, up to which the logs of tablets are applied.
#[derive(Default)]
pub(crate) struct Tablets {
    is_used: AtomicBool,
    ends: RwLock<BTreeMap<u32, u64>>,
    /// Compactions keep data that lived at this second (since 1970) or later; see [`crate::Engine::hold_purge`].
    held_secs: RwLock<Option<u32>>,
}

impl Tablets {
    pub(crate) fn hold_purge(&self, log_secs: u32) {
        *self.held_secs.write() = Some(log_secs);
    }

    /// The second of [`Self::hold_purge`]; `None` for the engine of a single node.
    pub(crate) fn held_secs(&self) -> Option<u32> {
        *self.held_secs.read()
    }

    /// Records that a log is applied up to `end`. Requires: the `active` locks of all tables that the records change are held.
    pub(crate) fn reach(&self, tablet: u32, end: u64) {
        self.is_used.store(true, Ordering::Relaxed);
        let mut ends = self.ends.write();
        let known = ends.entry(tablet).or_default();
        *known = end.max(*known);
    }

    /// Whether records of tablets were applied.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    pub(crate) fn end_of(&self, tablet: u32) -> u64 {
        self.ends.read().get(&tablet).copied().unwrap_or(0)
    }

    /// The current ends of all tablets.
    pub(crate) fn ends(&self) -> TabletEnds {
        match self.is_used() {
            true => self
                .ends
                .read()
                .iter()
                .map(|(tablet, end)| (*tablet, *end))
                .collect(),
            false => Arc::new([]),
        }
    }
}

/// The first record of each tablet that a memtable has.
#[derive(Default)]
pub(crate) struct FirstOfTablets(Mutex<BTreeMap<u32, u64>>);

impl FirstOfTablets {
    pub(crate) fn note(&self, position: TabletPosition) {
        self.0.lock().entry(position.tablet).or_insert(position.offset);
    }

    pub(crate) fn of(&self, tablet: u32) -> Option<u64> {
        self.0.lock().get(&tablet).copied()
    }
}

/// The interval in Statistics.db of an SSTable that has all records of a tablet below `end`. Pure.
pub(crate) fn interval(tablet: u32, end: u64) -> CommitLogInterval {
    let first = OF_TABLET | u64::from(tablet) << 32;
    let offset = u32::try_from(end & OFFSET_MASK).unwrap_or(0);
    ((first, 0), (first | end >> OFFSET_BITS, offset))
}

/// Whether an interval belongs to the log of a tablet. Pure.
pub(crate) fn is_of_tablet(interval: &CommitLogInterval) -> bool {
    interval.0.0 & OF_TABLET != 0
}

/// The tablet and end of an interval; `None` if it belongs to the local log. Pure.
fn end_of(interval: &CommitLogInterval) -> Option<(u32, u64)> {
    if !is_of_tablet(interval) {
        return None;
    }
    let (segment, offset) = interval.1;
    let tablet = u32::try_from((segment & !OF_TABLET) >> 32).ok()?;
    let high = segment & u64::from(u32::MAX);
    Some((tablet, high << OFFSET_BITS | u64::from(offset)))
}

/// The tablet of an interval; `None` if it belongs to the local log. Pure.
pub(crate) fn tablet_of(interval: &CommitLogInterval) -> Option<u32> {
    end_of(interval).map(|(tablet, _)| tablet)
}

/// The ends of the tablets among intervals. Pure.
pub(crate) fn ends_of(intervals: impl Iterator<Item = CommitLogInterval>) -> BTreeMap<u32, u64> {
    let mut ends = BTreeMap::new();
    for (tablet, end) in intervals.filter_map(|interval| end_of(&interval)) {
        let known: &mut u64 = ends.entry(tablet).or_default();
        *known = end.max(*known);
    }
    ends
}

#[cfg(test)]
mod tests {
    use ilion_sstable::union_intervals;

    use super::*;

    #[test]
    fn the_end_of_a_tablet_is_read_back_from_its_interval() {
        for tablet in [0, 1, 4095, TABLETS_MAX - 1] {
            for end in [0, 1, OFFSET_MASK, OFFSET_MASK + 1, i64::MAX.unsigned_abs() - 1] {
                let interval = interval(tablet, end);
                assert_eq!(end_of(&interval), Some((tablet, end)));
                // Statistics.db has signed numbers.
                assert!(i64::try_from(interval.1.0).is_ok() && i32::try_from(interval.1.1).is_ok());
            }
        }
    }

    #[test]
    fn a_compaction_keeps_the_highest_end_of_each_tablet_and_the_intervals_of_the_local_log() {
        let local = ((1_795_518_435_438, 10), (1_795_518_435_439, 7));
        let all = vec![interval(7, 1 << 40), interval(8, 3), local, interval(7, 9)];
        let joined = union_intervals(all);
        assert_eq!(joined, [local, interval(7, 1 << 40), interval(8, 3)]);
        assert_eq!(
            ends_of(joined.into_iter()),
            BTreeMap::from([(7, 1 << 40), (8, 3)])
        );
    }
}
