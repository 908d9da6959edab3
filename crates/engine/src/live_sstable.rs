//! An SSTable of a table, which lives as long as a view or a read refers to it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ilion_env::Env;
use ilion_index::SSTableIndex;
use ilion_sstable::{CommittedTransaction, Component, Descriptor, SSTable};
use parking_lot::RwLock;

use crate::remover::{Removal, Remover};

/// An SSTable of a view. When the last reference to an obsolete one is dropped, its files are removed, perhaps by another thread.
pub(crate) struct LiveSSTable {
    pub sstable: Arc<SSTable>,
    env: Arc<dyn Env>,
    remover: Arc<Remover>,
    /// When its files were made, seconds since 1970; set by the first call.
    created_secs: OnceLock<i64>,
    obsolete: OnceLock<Arc<CommittedTransaction>>,
    /// Its parts of attached indexes, by the names of the indexes.
    indexes: RwLock<Vec<(String, Arc<dyn SSTableIndex>)>>,
}

impl LiveSSTable {
    pub(crate) fn new(env: Arc<dyn Env>, remover: Arc<Remover>, sstable: SSTable) -> Arc<Self> {
        Arc::new(Self {
            sstable: Arc::new(sstable),
            env,
            remover,
            created_secs: OnceLock::new(),
            obsolete: OnceLock::new(),
            indexes: RwLock::default(),
        })
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.sstable.descriptor()
    }

    /// Path of its Data.db, which identifies it in compactions.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.descriptor().path(&Component::Data)
    }

    /// When its files were made, seconds since 1970; the current time if the file system does not know.
    pub(crate) fn created_secs(&self) -> i64 {
        *self.created_secs.get_or_init(|| {
            let modified = self.env.modified_secs(&self.data_path());
            modified.unwrap_or_else(|_| self.env.now_secs())
        })
    }

    /// Its part of an attached index.
    pub(crate) fn index(&self, name: &str) -> Option<Arc<dyn SSTableIndex>> {
        let indexes = self.indexes.read();
        let (_, found) = indexes.iter().find(|(known, _)| known == name)?;
        Some(found.clone())
    }

    /// Sets or removes its part of an attached index.
    pub(crate) fn set_index(&self, name: &str, index: Option<Arc<dyn SSTableIndex>>) {
        let mut indexes = self.indexes.write();
        indexes.retain(|(known, _)| known != name);
        indexes.extend(index.map(|index| (name.to_owned(), index)));
    }

    /// Removes this part of an attached index, unless another part has replaced it.
    pub(crate) fn remove_index(&self, part: &Arc<dyn SSTableIndex>) {
        self.indexes
            .write()
            .retain(|(_, known)| !Arc::ptr_eq(known, part));
    }

    /// Marks it as removed by the transaction. When the last reference is dropped, its files are removed, and then the log of the
    /// transaction.
    pub(crate) fn retire(&self, transaction: Arc<CommittedTransaction>) {
        // Only one transaction ever removes an SSTable: the locks of `maintenance` ensure this.
        let _ = self.obsolete.set(transaction);
    }
}

impl Drop for LiveSSTable {
    fn drop(&mut self) {
        if let Some(transaction) = self.obsolete.take() {
            self.indexes.get_mut().clear();
            self.remover
                .remove(Removal::new(self.sstable.clone(), transaction));
        }
    }
}
