//! What a read sees: memtables and SSTables, immutable, behind one `Arc`.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use ilion_commitlog::Position;
use ilion_env::Env;
use ilion_index::SSTableIndex;
use ilion_memtable::Memtable;
use ilion_sstable::{CommittedTransaction, Component, Descriptor, SSTable};
use parking_lot::RwLock;

use crate::memtable_indexes::MemtableIndexes;

/// The sources of a table at one moment.
#[derive(Clone, Default)]
pub(crate) struct View {
    /// Newest first; the first takes the writes.
    pub memtables: Vec<Arc<Memtable>>,
    /// Frozen memtables with what they cover, oldest first; they are in `memtables` as well.
    pub frozen: Vec<Arc<Frozen>>,
    /// Those with the newest data first.
    pub sstables: Vec<Arc<LiveSSTable>>,
    /// What attached indexes have of memtables.
    pub memtable_indexes: Vec<(Arc<Memtable>, Arc<MemtableIndexes>)>,
}

/// A memtable that takes no more writes.
pub(crate) struct Frozen {
    pub memtable: Arc<Memtable>,
    /// What its rows were told to.
    pub indexes: Option<Arc<MemtableIndexes>>,
    /// It has every record of its table from here ...
    pub since: Position,
    /// ... to before here.
    pub upto: Position,
}

impl Frozen {
    /// The memory that goes with it. Hidden tables have memtables of their own.
    pub(crate) fn size_bytes(&self) -> usize {
        let attached = self
            .indexes
            .as_ref()
            .map_or(0, |indexes| indexes.attached_bytes());
        self.memtable.size_bytes() + attached
    }
}

/// An SSTable of some view. When the last holder lets go of one that is obsolete, its files are removed.
pub(crate) struct LiveSSTable {
    pub sstable: Arc<SSTable>,
    env: Arc<dyn Env>,
    /// When its files were made, once somebody has asked.
    created_secs: OnceLock<i64>,
    obsolete: OnceLock<Arc<CommittedTransaction>>,
    /// What attached indexes have of it, by the names of the indexes.
    indexes: RwLock<Vec<(String, Arc<dyn SSTableIndex>)>>,
}

impl LiveSSTable {
    pub(crate) fn new(env: Arc<dyn Env>, sstable: SSTable) -> Arc<Self> {
        Arc::new(Self {
            sstable: Arc::new(sstable),
            env,
            created_secs: OnceLock::new(),
            obsolete: OnceLock::new(),
            indexes: RwLock::default(),
        })
    }

    pub(crate) fn descriptor(&self) -> &Descriptor {
        self.sstable.descriptor()
    }

    /// Path of its Data.db: its identity for compaction.
    pub(crate) fn data_path(&self) -> PathBuf {
        self.descriptor().path(&Component::Data)
    }

    /// When its files were made, seconds since 1970; now if that cannot be told.
    pub(crate) fn created_secs(&self) -> i64 {
        *self.created_secs.get_or_init(|| {
            let modified = self.env.modified_secs(&self.data_path());
            modified.unwrap_or_else(|_| self.env.now_secs())
        })
    }

    /// What an attached index has of it.
    pub(crate) fn index(&self, name: &str) -> Option<Arc<dyn SSTableIndex>> {
        let indexes = self.indexes.read();
        let (_, found) = indexes.iter().find(|(known, _)| known == name)?;
        Some(found.clone())
    }

    /// An attached index has this of it, or nothing any more.
    pub(crate) fn set_index(&self, name: &str, index: Option<Arc<dyn SSTableIndex>>) {
        let mut indexes = self.indexes.write();
        indexes.retain(|(known, _)| known != name);
        indexes.extend(index.map(|index| (name.to_owned(), index)));
    }

    /// The transaction has taken it out: its files go with its last holder, and the transaction's log after them.
    pub(crate) fn retire(&self, transaction: Arc<CommittedTransaction>) {
        // Only one transaction ever removes an SSTable: `maintenance` sees to it.
        let _ = self.obsolete.set(transaction);
    }
}

impl Drop for LiveSSTable {
    fn drop(&mut self) {
        if let Some(transaction) = self.obsolete.get()
            && let Err(error) = transaction.remove_files(self.descriptor())
        {
            tracing::warn!(sstable = %self.descriptor(), %error, "files of an obsolete SSTable stay until the next start");
        }
    }
}

impl View {
    /// What its memtables take.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.memtables
            .iter()
            .map(|memtable| memtable.size_bytes() as u64)
            .sum()
    }

    /// The same with other SSTables, ordered.
    pub(crate) fn with_sstables(&self, mut sstables: Vec<Arc<LiveSSTable>>) -> Self {
        sstables.sort_by_key(|live| std::cmp::Reverse(live.sstable.stats().max_timestamp_micros));
        Self {
            sstables,
            ..self.clone()
        }
    }

    /// The same without a frozen memtable.
    pub(crate) fn without_frozen(&self, gone: &Arc<Frozen>) -> Self {
        let is_gone = |memtable: &Arc<Memtable>| Arc::ptr_eq(memtable, &gone.memtable);
        Self {
            memtables: self.memtables.iter().filter(|m| !is_gone(m)).cloned().collect(),
            frozen: self
                .frozen
                .iter()
                .filter(|f| !Arc::ptr_eq(f, gone))
                .cloned()
                .collect(),
            sstables: self.sstables.clone(),
            memtable_indexes: self
                .memtable_indexes
                .iter()
                .filter(|(memtable, _)| !is_gone(memtable))
                .cloned()
                .collect(),
        }
    }

    /// Puts a new memtable first.
    pub(crate) fn push_memtable(&mut self, memtable: Arc<Memtable>, indexes: Option<&Arc<MemtableIndexes>>) {
        if let Some(indexes) = indexes.filter(|indexes| indexes.has_attached()) {
            self.memtable_indexes.push((memtable.clone(), indexes.clone()));
        }
        self.memtables.insert(0, memtable);
    }
}
