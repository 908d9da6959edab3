//! Writes missing entries into a hidden table, and removes stale ones, without a change of its table. These writes are not logged.

use ilion_index::{EntryMark, HiddenTable};
use ilion_rows::Mutation;

use crate::shared::Shared;
use crate::table_store::TableStore;

/// A table and the hidden table of an index of it.
pub(super) struct Beside<'a> {
    pub shared: &'a Shared,
    pub store: &'a TableStore,
    pub hidden: &'a TableStore,
    /// [`TableStore::import_mark`] of the table, taken before the first look-up.
    pub since: u64,
}

impl Beside<'_> {
    /// Adds an entry.
    pub(super) fn add(&self, entry: &Mutation) {
        // Held so that the hidden memtable is not frozen apart from the table's.
        let _active = self.store.active.read();
        self.apply(entry);
    }

    /// Removes entries that had no row. Returns false and removes no entry if the rows may be in an import that was running.
    pub(super) fn remove(&self, index: &dyn HiddenTable, stale: &[EntryMark]) -> bool {
        let now_secs = self.shared.now_secs();
        // Held so that the hidden memtable is not frozen apart from the table's, and so that no import begins.
        let _active = self.store.active.read();
        let are_settled = self.store.are_settled(self.since);
        if are_settled {
            for entry in stale {
                self.apply(&index.removal(entry, now_secs));
            }
        }
        are_settled
    }

    /// Requires: `active` of the table is held.
    fn apply(&self, mutation: &Mutation) {
        let grown_bytes = self.hidden.active.read().memtable.apply(mutation);
        self.shared.budget.grow(grown_bytes);
    }
}
