//! Several tables at one moment, on a node of a cluster.
//!
//! On a single node, the snapshots of a backup are taken one after another, and the commit log makes them consistent. Records of a cluster are
//! not in that log, and one record may change several tables. So the memtables of all tables are frozen together, while no record is
//! being applied; later records go to new memtables, which are not flushed before the table's snapshot has its SSTables.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_schema::TableId;
use parking_lot::MutexGuard;

use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::view::Frozen;

/// A table whose memtables were frozen. No other flush of the table begins while this exists.
pub(super) struct FrozenTable<'s> {
    /// The turn of the table's flush.
    pub turn: MutexGuard<'s, ()>,
    /// The frozen memtables.
    pub memtables: Vec<Arc<Frozen>>,
}

impl Shared {
    /// Freezes the memtables of these tables between two records.
    pub(super) fn freeze_together<'s>(
        &self,
        stores: impl Iterator<Item = &'s Arc<TableStore>>,
    ) -> BTreeMap<TableId, FrozenTable<'s>> {
        // Writers lock the tables of a record in this order, too.
        let stores: BTreeMap<TableId, &Arc<TableStore>> = stores.map(|store| (store.id, store)).collect();
        let turns: Vec<_> = stores.values().map(|store| store.maintenance.flush()).collect();
        let mut actives: Vec<_> = stores.values().map(|store| store.active.write()).collect();
        for (store, active) in stores.values().zip(&mut actives) {
            store.freeze_held(&*self.env, active, || self.barrier());
        }
        let frozen = stores.values().zip(turns).map(|(store, turn)| {
            let memtables = store.view().frozen.clone();
            (store.id, FrozenTable { turn, memtables })
        });
        // Collected before the locks are released.
        frozen.collect()
    }
}
