//! SSTables that an operator placed in the directory of a table while the node runs (`nodetool refresh`).
//!
//! They are found by comparison: SSTables in the directory that are neither in the view nor named by a transaction log. Then they are
//! imported under new names, like those of another directory. The same transaction removes the old names.

use std::path::PathBuf;

use ilion_schema::TableId;
use ilion_sstable::{Component, Descriptor, TableFiles};

use super::{Bringer, ImportReport, ImportSource};
use crate::shared::Shared;
use crate::table_store::TableStore;
use crate::{Engine, Result};

/// How often a directory is listed again because a transaction ended meanwhile.
const LISTINGS_MAX: usize = 16;

impl Engine {
    /// Adds the SSTables to a table that were placed in its directory. The report names those that are damaged or do not fit the
    /// table; they stay where they are, and the next start opens them.
    ///
    /// # Errors
    /// Those of [`Engine::import`]. Then no SSTable is added.
    pub fn refresh(&self, table: TableId) -> Result<ImportReport> {
        self.check_bringer(Bringer::Operator)?;
        let store = self.importing_store(table)?;
        let placed = self.shared.placed_in(&store)?;
        self.import_all(Bringer::Operator, &store, placed, ImportSource::Placed)
    }
}

impl Shared {
    /// The SSTables in the directory of a table that are not the table's own, oldest id first.
    fn placed_in(&self, store: &TableStore) -> Result<Vec<Descriptor>> {
        // A thread that adds files puts them into the view, or names them in a log, before it releases these locks.
        let _maintenance = store.maintenance.alone();
        // The files of an obsolete SSTable, and then its log, may be removed during a listing. Then the second listing lacks them.
        let first = self.unclaimed_in(store)?;
        let mut placed = self.unclaimed_in(store)?;
        placed.retain(|descriptor| first.contains(descriptor));
        Ok(placed)
    }

    fn unclaimed_in(&self, store: &TableStore) -> Result<Vec<Descriptor>> {
        let mut listings = 0;
        let files = loop {
            listings += 1;
            match TableFiles::list(&*self.env, &store.directory) {
                Err(error) if is_gone(&error) && listings < LISTINGS_MAX => {}
                files => break files?,
            }
        };
        let Some(files) = files else {
            return Ok(Vec::new());
        };
        let view = store.view();
        // Files of a truncation that could not be removed yet.
        let stall = self.stall.lock();
        let removed = stall.removals.iter().flat_map(|removal| &removal.left);
        let own: Vec<PathBuf> = view
            .sstables
            .iter()
            .chain(removed)
            .map(|live| live.data_path())
            .collect();
        let sstables = files.sstables.into_iter();
        let whole = sstables.filter(|found| found.size_of(&Component::Data).is_some());
        let unclaimed = whole
            .map(|found| found.descriptor)
            .filter(|descriptor| !own.contains(&descriptor.path(&Component::Data)));
        Ok(unclaimed.collect())
    }
}

fn is_gone(error: &ilion_sstable::Error) -> bool {
    matches!(error, ilion_sstable::Error::Io(error) if error.is_not_found())
}
