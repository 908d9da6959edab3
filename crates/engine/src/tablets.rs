//! Records of shared logs: how a replica of a cluster applies them, and up to which offset it has.
//!
//! In a cluster, the log of a tablet (a slice of the token ring) is outside of the node, and this node applies its records with
//! [`Engine::apply_at`] in their order. They are not written to the local log. Three things make a crash harmless:
//!
//! - An SSTable says up to which offset it has the records of its table, for each tablet, in `commit_log_intervals` of Statistics.db. A
//!   memtable is frozen while no record is between the log and the memtable, so these offsets are exact, and a record is applied to a
//!   table once, however often it is read.
//! - [`Engine::tablet_needed`] returns the offset from which records must be read again after a crash.
//! - Memtables of a table are written in the order in which they were frozen, so the offsets of an SSTable hold for the whole table.
//!
//! The values are in `tablet_ends`.

use std::collections::BTreeMap;
use std::path::Path;

use ilion_env::Env;
use ilion_rows::Mutation;
use ilion_schema::TableId;
use uuid::Uuid;

use crate::intervals::intervals_of;
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::tablet_ends::{TABLETS_MAX, TabletPosition, ends_of};
use crate::write::{Locked, deletes_before_1970};
use crate::{Engine, Error, Result};

/// A file in the data directory of a node of a cluster: how far it has applied the logs. The crate `replica` reads and writes it.
pub const TABLETS_FILE: &str = "ilion.tablets";

/// Whether a data directory is that of a node of a cluster.
pub fn is_cluster_directory(env: &dyn Env, data_dir: &Path) -> bool {
    env.exists(&data_dir.join(TABLETS_FILE))
}

impl Engine {
    /// Continues a tablet: the tables have all of its records below `end` on disk. Call this after a start, with the result of
    /// [`Self::tablet_needed`] from before, or for a tablet whose SSTables were copied from another replica.
    pub fn resume_tablet(&self, tablet: u32, end: u64) {
        self.shared.tablets.reach(tablet, end);
    }

    /// Makes compactions keep data that lives at this second of the logs, even if that second is past: records from then on may be read
    /// again, and a command among them must find the same data as before.
    pub fn hold_purge(&self, log_secs: u32) {
        self.shared.tablets.hold_purge(log_secs);
    }

    /// The offset, exclusive, up to which the log of a tablet is applied.
    pub fn tablet_end(&self, tablet: u32) -> u64 {
        self.shared.tablets.end_of(tablet)
    }

    /// The highest offset, exclusive, up to which any table has records of a tablet, or had records that were cleared. A copy of the
    /// tablet must have all records below it.
    pub fn tablet_seen(&self, tablet: u32) -> u64 {
        let end = self.shared.tablets.end_of(tablet);
        let tables = self.shared.tables.load();
        let ends = tables.values().map(|store| store.ends_on_disk(self.shared.id));
        let of_tablet = ends.filter_map(|ends| ends.get(&tablet).copied());
        of_tablet.fold(end, u64::max)
    }

    /// Applies the mutations of a record of a tablet's log, all or none; tables that have the record on disk are skipped. A record
    /// without mutations only moves the end of the tablet.
    ///
    /// Requires: records of a tablet are applied one at a time, in the order of the log, and each again after an error.
    ///
    /// Indexes cannot refuse the mutations: an index that was made after [`Self::check_loggable`] skips values that it cannot store, as it
    /// does with stored rows. So an acknowledged record is applied by all replicas, and as a whole.
    ///
    /// # Errors
    /// [`Error::Stalled`], [`Error::CaptureFull`]: memory, or the space for captured changes, is used up for now. [`Error::Refused`]:
    /// [`Self::check_loggable`] refuses the mutations, whatever the indexes. Any other: this node cannot apply the record.
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
        // May fail, so it comes first.
        shared.copy_captured(position, mutations, &stores)?;
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

    /// Checks mutations of tables of a cluster before they are logged. [`Self::apply_at`] will apply what passes here, on all replicas.
    ///
    /// # Errors
    /// [`Error::Refused`]: the tables or their indexes cannot store the mutations. Any other: this node takes no writes now.
    pub fn check_loggable(&self, mutations: &[Mutation]) -> Result<()> {
        check_storable_everywhere(mutations)?;
        self.shared.stores_to_write(mutations).map(drop)
    }

    /// True if a table had a record on disk when this process began. False for a table that does not exist.
    pub fn has_on_disk(&self, table: TableId, position: TabletPosition) -> bool {
        let store = self.shared.table(table);
        store.is_some_and(|store| store.has_on_disk(position, self.shared.id))
    }

    /// The offset of the first record of a tablet that some table does not have on disk. Records below it are not needed any more.
    pub fn tablet_needed(&self, tablet: u32) -> u64 {
        // Taken first: records that are applied meanwhile are at or above this end.
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

/// Refuses mutations that the SSTables of some replica cannot store: each node chooses its own format.
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
    /// See [`Engine::is_of_cluster`].
    pub(crate) fn is_of_cluster(&self) -> bool {
        self.tablets.held_secs().is_some()
    }

    /// The second at which compactions decide what is dead.
    pub(crate) fn purge_secs(&self) -> u32 {
        let now_secs = self.now_secs();
        self.tablets
            .held_secs()
            .map_or(now_secs, |held| held.min(now_secs))
    }
}

impl TableStore {
    /// True if an SSTable that existed before this process wrote its first one has the record.
    pub(crate) fn has_on_disk(&self, position: TabletPosition, id: Uuid) -> bool {
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

    /// Forgets which records of tablets the SSTables had, after a copy was imported or tablets were cleared.
    pub(crate) fn forget_tablet_ends(&self) {
        *self.tablet_ends.write() = None;
    }

    /// The offset of the first record of a tablet that is only in memory.
    fn first_unflushed_of(&self, tablet: u32) -> Option<u64> {
        // The lock waits for a record that is being applied. A memtable that is frozen right after is seen twice, which is harmless.
        let of_active = self.active.write().tablets.of(tablet);
        let view = self.view();
        let of_frozen = view.frozen.iter().filter_map(|frozen| frozen.tablets.of(tablet));
        of_active.into_iter().chain(of_frozen).min()
    }
}
