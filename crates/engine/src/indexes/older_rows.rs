//! Whether older versions of an indexed row may be in SSTables. If not, a hidden table cannot have older entries of the row, and a flush
//! need not write the deletion of an entry that was added and removed in one memtable.

use ilion_rows::DecoratedKey;
use ilion_sstable::{KeyHash, Presence};

use crate::table_store::TableStore;
use crate::view::View;

/// With more SSTables, asking all of them for each removed entry would cost more than writing the entry.
const SSTABLES_MAX: usize = 16;

/// The SSTables of an indexed table at one moment; `None` if any row may have older versions.
pub(crate) struct OlderRows(Option<View>);

impl OlderRows {
    /// Any row may have older versions.
    pub(crate) const ANY: Self = Self(None);

    /// For the flush of a frozen memtable of a hidden table of `store`. The rows that belong to it are not in SSTables yet, since hidden
    /// tables are flushed first.
    pub(crate) fn of(store: &TableStore) -> Self {
        let view = store.view();
        // Of several frozen memtables of the table, an older one may have older rows.
        let are_known = view.frozen.len() <= 1 && view.sstables.len() <= SSTABLES_MAX;
        Self(are_known.then(|| View::clone(&view)))
    }

    /// False if there is no older version of a row with this partition key.
    pub(crate) fn may_have(&self, key: &DecoratedKey) -> bool {
        let Some(view) = &self.0 else {
            return true;
        };
        let hash = KeyHash::of(&key.key);
        let mut sstables = view.sstables.iter().map(|live| &live.sstable);
        sstables.any(|sstable| matches!(sstable.presence(key, &hash), Presence::Possible(_)))
    }
}
