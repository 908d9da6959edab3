//! Incremental backups: each SSTable that is flushed or imported gets links in `backups/` of its table, as in Cassandra.
//!
//! ```text
//! <table directory>/backups/nb-1-big-Data.db ...       and /.<index>/... for an index in a hidden table
//! ```
//!
//! The links are made before the COMMIT, so that a crash leaves at most links of an SSTable whose data is still in the log, and
//! will be flushed under another name. The operator moves the links elsewhere, and removes them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ilion_env::Env;
use ilion_sstable::{Descriptor, TableFiles};

use crate::shared::Shared;
use crate::snapshots::{BACKUPS_DIRECTORY, link};
use crate::table_store::TableStore;
use crate::{Engine, Result};

impl Engine {
    /// Whether flushed SSTables are linked into `backups/`.
    pub fn is_backing_up(&self) -> bool {
        self.shared.is_backing_up.load(Ordering::Relaxed)
    }

    /// Switches incremental backups on or off, until the next start.
    pub fn set_backing_up(&self, is_on: bool) {
        self.shared.is_backing_up.store(is_on, Ordering::Relaxed);
    }
}

impl Shared {
    /// Links an SSTable that a flush of `asked` or an import has made, if incremental backups are on. A failure is logged, and the
    /// flush goes on: the data is safe, only its backup is missing.
    pub(crate) fn back_up(&self, asked: &TableStore, descriptor: &Descriptor) {
        let is_due = self.is_backing_up.load(Ordering::Relaxed) && asked.schema().options.incremental_backups;
        if is_due && let Err(error) = link_to(&*self.env, descriptor, &directory_of(&descriptor.directory)) {
            tracing::error!(sstable = %descriptor, %error, "an SSTable is missing in the incremental backup; copy it there");
        }
    }

    /// Makes sure that no new SSTable gets the name of one in `backups/`.
    pub(crate) fn reserve_names_of_backups(&self, store: &TableStore) -> Result<()> {
        let files = TableFiles::list(&*self.env, &directory_of(&store.directory))?.unwrap_or_default();
        for found in files.sstables {
            store.reserve_generation(found.descriptor.id);
        }
        Ok(())
    }
}

/// The directory of the backups of a table or hidden table. The directory of a hidden table is inside that of its table.
fn directory_of(store: &Path) -> PathBuf {
    let name = store.file_name().unwrap_or_default();
    match store.parent() {
        Some(table) if name.to_string_lossy().starts_with('.') => table.join(BACKUPS_DIRECTORY).join(name),
        _ => store.join(BACKUPS_DIRECTORY),
    }
}

fn link_to(env: &dyn Env, descriptor: &Descriptor, directory: &Path) -> Result<()> {
    env.create_dir_all(directory)?;
    let source: Arc<Path> = descriptor.directory.clone();
    for entry in env.list(&source)? {
        let parsed = Descriptor::parse(&source, &entry.name);
        if !entry.is_dir && parsed.is_some_and(|(found, _)| found == *descriptor) {
            link(env, &source.join(&entry.name), &directory.join(&entry.name))?;
        }
    }
    Ok(env.sync_dir(directory)?)
}
