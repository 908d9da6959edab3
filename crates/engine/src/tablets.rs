//! Records of shared logs: what a replica of a cluster applies, and up to where it has.
//!
//! In a cluster, the log of a tablet (a slice of the token ring) is elsewhere, and this node applies its records with
//! [`Engine::apply_at`] in their order. The local log has no part in it. Three things make a crash harmless:
//!
//! - An SSTable says up to where it has the records of its table, for each tablet, in `commit_log_intervals` of Statistics.db. A
//!   memtable is frozen while no record is between the log and the memtable, so that is exact, and a record is applied to a table
//!   once, however often it is read.
//! - [`Engine::tablet_needed`] says from where records must be read again after a crash.
//! - Memtables of a table are written in the order in which they were frozen, so what an SSTable says holds for the whole table.
//!
//! The end of a tablet is written as an interval from the start of the log: segment `1 << 62 | tablet << 32 | end >> 31`, offset
//! `end & 0x7fff_ffff`. Segments of the local log are far below.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ilion_rows::Mutation;
use ilion_schema::TableId;
use ilion_sstable::CommitLogInterval;
use parking_lot::{Mutex, RwLock};

use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::write::Locked;
use crate::{Engine, Error, Result};

/// In the number of a segment: it is one of a tablet.
const OF_TABLET: u64 = 1 << 62;
/// Numbers of tablets are below.
const TABLETS_MAX: u32 = 1 << 30;
const OFFSET_BITS: u32 = 31;
const OFFSET_MASK: u64 = (1 << OFFSET_BITS) - 1;

/// Where a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TabletPosition {
    /// The tablet.
    pub tablet: u32,
    /// The record's place in its log. Offsets grow, and may have gaps.
    pub offset: u64,
}

/// For each tablet, the offset above the last record. Ascending by tablet.
pub(crate) type TabletEnds = Arc<[(u32, u64)]>;

/// Up to where the logs of tablets are applied, exclusive.
#[derive(Default)]
pub(crate) struct Tablets {
    is_used: AtomicBool,
    ends: RwLock<BTreeMap<u32, u64>>,
    /// Compactions keep what is live at this second, or was until then.
    held_secs: RwLock<Option<u32>>,
}

impl Tablets {
    /// Notes that a log is applied up to `end`. Requires: the `active` locks of all tables that the records change are held.
    fn reach(&self, tablet: u32, end: u64) {
        self.is_used.store(true, Ordering::Relaxed);
        let mut ends = self.ends.write();
        let known = ends.entry(tablet).or_default();
        *known = end.max(*known);
    }

    fn end_of(&self, tablet: u32) -> u64 {
        self.ends.read().get(&tablet).copied().unwrap_or(0)
    }

    /// All ends at this moment.
    pub(crate) fn ends(&self) -> TabletEnds {
        match self.is_used.load(Ordering::Relaxed) {
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
    fn note(&self, position: TabletPosition) {
        self.0.lock().entry(position.tablet).or_insert(position.offset);
    }

    pub(crate) fn of(&self, tablet: u32) -> Option<u64> {
        self.0.lock().get(&tablet).copied()
    }
}

/// The interval that says that an SSTable has all records of a tablet below `end`. Pure.
pub(crate) fn interval(tablet: u32, end: u64) -> CommitLogInterval {
    let first = OF_TABLET | u64::from(tablet) << 32;
    let offset = u32::try_from(end & OFFSET_MASK).unwrap_or(0);
    ((first, 0), (first | end >> OFFSET_BITS, offset))
}

/// Whether an interval is one of a tablet. Pure.
pub(crate) fn is_of_tablet(interval: &CommitLogInterval) -> bool {
    interval.0.0 & OF_TABLET != 0
}

/// The tablet and end of an interval; `None` if it is one of the local log. Pure.
fn end_of(interval: &CommitLogInterval) -> Option<(u32, u64)> {
    if !is_of_tablet(interval) {
        return None;
    }
    let (segment, offset) = interval.1;
    let tablet = u32::try_from((segment & !OF_TABLET) >> 32).ok()?;
    let high = segment & u64::from(u32::MAX);
    Some((tablet, high << OFFSET_BITS | u64::from(offset)))
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

impl Engine {
    /// Goes on with a tablet: the tables have all of its records below `end`, on disk. To be called after a start, with what
    /// [`Self::tablet_needed`] returned before, or for a tablet whose SSTables were copied from another replica.
    pub fn resume_tablet(&self, tablet: u32, end: u64) {
        self.shared.tablets.reach(tablet, end);
    }

    /// Has compactions keep what lives at this second of the logs, though it is past: records from then on may be read again, and a
    /// command must find the data that it found before.
    pub fn hold_purge(&self, log_secs: u32) {
        *self.shared.tablets.held_secs.write() = Some(log_secs);
    }

    /// Up to where the log of a tablet is applied, exclusive.
    pub fn tablet_end(&self, tablet: u32) -> u64 {
        self.shared.tablets.end_of(tablet)
    }

    /// Applies the mutations of a record of a tablet's log, all or none; tables that have the record on disk are passed over. A record
    /// without mutations moves the end of the tablet only.
    ///
    /// Requires: records of a tablet are applied one at a time, in the order of the log, and each again after an error.
    ///
    /// # Errors
    /// [`Error::Stalled`]: memory is used up for now. Any other: this node cannot apply the record.
    pub fn apply_at(&self, position: TabletPosition, mutations: &[Mutation]) -> Result<()> {
        if position.tablet >= TABLETS_MAX {
            let tablet = position.tablet;
            return Err(Error::Refused(format!(
                "tablet {tablet} is none: they are below {TABLETS_MAX}"
            )));
        }
        let shared = &self.shared;
        self.admit_write(mutations)?;
        let stores = shared.stores_to_write(mutations)?;
        let locked = Locked::acquire(&stores);
        for (mutation, store) in mutations.iter().zip(&stores) {
            if store.has_on_disk(position, shared.id) {
                continue;
            }
            let active = locked.active(store.id);
            active.tablets.note(position);
            shared.apply_one(active, mutation, None);
        }
        shared.tablets.reach(position.tablet, position.offset + 1);
        Ok(())
    }

    /// True if a table had a record on disk when this process began. False for a table that does not exist.
    pub fn has_on_disk(&self, table: TableId, position: TabletPosition) -> bool {
        let store = self.shared.table(table);
        store.is_some_and(|store| store.has_on_disk(position, self.shared.id))
    }

    /// The offset of the first record of a tablet that is not on disk in each table. Records below are not needed any more.
    pub fn tablet_needed(&self, tablet: u32) -> u64 {
        // Taken first: records that are applied meanwhile are above.
        let end = self.shared.tablets.end_of(tablet);
        let tables = self.shared.tables.load();
        let firsts = tables
            .values()
            .filter_map(|store| store.first_unflushed_of(tablet));
        firsts.fold(end, u64::min)
    }

    /// Requests a flush of each table that has records of the tablet below `offset` in memory only.
    pub fn flush_tablet_below(&self, tablet: u32, offset: u64) {
        let tables = self.shared.tables.load_full();
        let mut due: Vec<_> = tables
            .values()
            .filter(|store| {
                store
                    .first_unflushed_of(tablet)
                    .is_some_and(|first| first < offset)
            })
            .collect();
        due.sort_by_key(|store| store.id);
        due.iter().for_each(|store| self.shared.ask_to_flush(store));
    }
}

impl Shared {
    /// The second at which compactions decide what is dead.
    pub(crate) fn purge_secs(&self) -> u32 {
        let now_secs = self.now_secs();
        self.tablets
            .held_secs
            .read()
            .map_or(now_secs, |held| held.min(now_secs))
    }
}

impl TableStore {
    /// True if an SSTable from before this process wrote its first has the record.
    fn has_on_disk(&self, position: TabletPosition, id: uuid::Uuid) -> bool {
        let ends = self.tablet_ends.get_or_init(|| {
            let view = self.view();
            let intervals = view
                .sstables
                .iter()
                .flat_map(|live| crate::intervals::intervals_of(&live.sstable, id));
            ends_of(intervals)
        });
        ends.get(&position.tablet)
            .is_some_and(|end| position.offset < *end)
    }

    /// The offset of the first record of a tablet that is only in memory.
    fn first_unflushed_of(&self, tablet: u32) -> Option<u64> {
        // Waits for a record that is being applied. What is frozen meanwhile is seen twice.
        let of_active = self.active.write().tablets.of(tablet);
        let view = self.view();
        let of_frozen = view.frozen.iter().filter_map(|frozen| frozen.tablets.of(tablet));
        of_active.into_iter().chain(of_frozen).min()
    }
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
