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
//! The values are in `tablet_ends`.

use std::collections::BTreeMap;

use ilion_rows::Mutation;
use ilion_schema::TableId;
use uuid::Uuid;

use crate::intervals::intervals_of;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::tablet_ends::{TABLETS_MAX, TabletPosition, ends_of};
use crate::write::{Locked, deletes_before_1970};
use crate::{Engine, Error, Result};

impl Engine {
    /// Goes on with a tablet: the tables have all of its records below `end`, on disk. To be called after a start, with what
    /// [`Self::tablet_needed`] returned before, or for a tablet whose SSTables were copied from another replica.
    pub fn resume_tablet(&self, tablet: u32, end: u64) {
        self.shared.tablets.reach(tablet, end);
    }

    /// Has compactions keep what lives at this second of the logs, though it is past: records from then on may be read again, and a
    /// command must find the data that it found before.
    pub fn hold_purge(&self, log_secs: u32) {
        self.shared.tablets.hold_purge(log_secs);
    }

    /// Up to where the log of a tablet is applied, exclusive.
    pub fn tablet_end(&self, tablet: u32) -> u64 {
        self.shared.tablets.end_of(tablet)
    }

    /// The highest offset, exclusive, up to which any table has records of a tablet, or had some that are cleared. A copy of the tablet
    /// must have all records below.
    pub fn tablet_seen(&self, tablet: u32) -> u64 {
        let end = self.shared.tablets.end_of(tablet);
        let tables = self.shared.tables.load();
        let ends = tables.values().map(|store| store.ends_on_disk(self.shared.id));
        let of_tablet = ends.filter_map(|ends| ends.get(&tablet).copied());
        of_tablet.fold(end, u64::max)
    }

    /// Applies the mutations of a record of a tablet's log, all or none; tables that have the record on disk are passed over. A record
    /// without mutations moves the end of the tablet only.
    ///
    /// Requires: records of a tablet are applied one at a time, in the order of the log, and each again after an error.
    ///
    /// Indexes are not asked: an index that was made after [`Self::check_loggable`] passes over values that it cannot hold, as it does with
    /// those that it finds. So an acknowledged record is applied by all replicas, and as a whole.
    ///
    /// # Errors
    /// [`Error::Stalled`]: memory is used up for now. [`Error::Refused`]: [`Self::check_loggable`] refuses the mutations, whatever the
    /// indexes. Any other: this node cannot apply the record.
    pub fn apply_at(&self, position: TabletPosition, mutations: &[Mutation]) -> Result<()> {
        if position.tablet >= TABLETS_MAX {
            let tablet = position.tablet;
            return Err(Error::Refused(format!(
                "tablet {tablet} is none: they are below {TABLETS_MAX}"
            )));
        }
        let shared = &self.shared;
        self.admit_write(mutations)?;
        check_storable_everywhere(mutations)?;
        let stores = shared.stores_to_apply(mutations)?;
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

    /// Checks mutations of tables of a cluster before they are logged: what passes here is applied by [`Self::apply_at`], on all replicas.
    ///
    /// # Errors
    /// [`Error::Refused`]: the tables or their indexes cannot hold them. Any other: this node takes no writes now.
    pub fn check_loggable(&self, mutations: &[Mutation]) -> Result<()> {
        check_storable_everywhere(mutations)?;
        self.shared.stores_to_write(mutations).map(drop)
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

/// Refuses mutations that the SSTables of some replica cannot hold: each node has its own format.
fn check_storable_everywhere(mutations: &[Mutation]) -> Result<()> {
    match mutations.iter().find(|mutation| deletes_before_1970(mutation)) {
        None => Ok(()),
        Some(mutation) => Err(Error::Refused(format!(
            "A deletion of a partition of {}.{} has a negative timestamp: SSTables of format oa cannot hold it",
            mutation.table.keyspace, mutation.table.name
        ))),
    }
}

impl Shared {
    /// The second at which compactions decide what is dead.
    pub(crate) fn purge_secs(&self) -> u32 {
        let now_secs = self.now_secs();
        self.tablets
            .held_secs()
            .map_or(now_secs, |held| held.min(now_secs))
    }
}

impl TableStore {
    /// True if an SSTable from before this process wrote its first has the record.
    fn has_on_disk(&self, position: TabletPosition, id: Uuid) -> bool {
        let is_below = |ends: &BTreeMap<u32, u64>| {
            ends.get(&position.tablet)
                .is_some_and(|end| position.offset < *end)
        };
        if let Some(ends) = &*self.tablet_ends.read() {
            return is_below(ends);
        }
        is_below(
            self.tablet_ends
                .write()
                .get_or_insert_with(|| self.ends_on_disk(id)),
        )
    }

    fn ends_on_disk(&self, id: Uuid) -> BTreeMap<u32, u64> {
        let view = self.view();
        let sstables = view.sstables.iter();
        ends_of(sstables.flat_map(|live| intervals_of(&live.sstable, id)))
    }

    /// The SSTables have records of tablets that this process has not applied, or some less: a copy has come, or was cleared.
    pub(crate) fn forget_tablet_ends(&self) {
        *self.tablet_ends.write() = None;
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
