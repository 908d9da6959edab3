//! The indexes of a table, and of each of its memtables.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use ilion_env::Env;
use ilion_index::{MemtableIndex, SecondaryIndex, Storage, When};
use ilion_memtable::Watched;
use ilion_rows::{DecoratedKey, RowChange};
use parking_lot::Mutex;

use crate::clock::now_secs;
use crate::table_store::TableStore;

/// An index that takes writes.
pub(crate) struct LiveIndex {
    pub index: Arc<dyn SecondaryIndex>,
    /// Its hidden table, if it has one.
    pub hidden: Option<Arc<TableStore>>,
    /// The same after an ALTER of the table, which opens the index anew.
    pub state: Arc<IndexState>,
}

/// What becomes of an index while it lives.
#[derive(Default)]
pub(crate) struct IndexState {
    /// It has everything that its table has.
    pub is_built: AtomicBool,
    /// A build was asked for and has not ended.
    pub is_build_asked: AtomicBool,
    /// The schema has it no more.
    pub is_dropped: AtomicBool,
    /// Held by whoever builds it or makes it empty.
    pub building: Mutex<()>,
}

impl LiveIndex {
    pub(crate) fn name(&self) -> &str {
        &self.index.definition().schema.name
    }

    pub(crate) fn is_built(&self) -> bool {
        self.state.is_built.load(Ordering::Acquire)
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.state.is_dropped.load(Ordering::Acquire)
    }
}

/// The indexes of a table.
#[derive(Default)]
pub(crate) struct TableIndexes(pub Vec<Arc<LiveIndex>>);

impl TableIndexes {
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<LiveIndex>> {
        self.0.iter().find(|live| live.name() == name)
    }

    /// Their hidden tables.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Arc<TableStore>> {
        self.0.iter().filter_map(|live| live.hidden.as_ref())
    }

    /// What they look at of a row.
    pub(crate) fn looked_at(&self) -> Watched {
        Watched::of(self.0.iter().map(|live| live.index.watches()))
    }

    /// For a memtable that begins empty; `None` if there is no index.
    pub(crate) fn begin_memtable(&self) -> Option<Arc<MemtableIndexes>> {
        if self.0.is_empty() {
            return None;
        }
        let mut indexes = MemtableIndexes {
            watched: self.looked_at(),
            ..MemtableIndexes::default()
        };
        for live in &self.0 {
            match live.index.storage() {
                Storage::HiddenTable(_) => indexes.hidden.push(live.clone()),
                Storage::Attached(attached) => {
                    indexes.attached.push((live.clone(), attached.begin_memtable()));
                }
            }
        }
        Some(Arc::new(indexes))
    }
}

/// While a row is written.
pub(crate) struct Writing<'w> {
    pub hidden: &'w TableStore,
    pub env: &'w dyn Env,
}

impl When for Writing<'_> {
    fn now_secs(&self) -> u32 {
        now_secs(self.env)
    }

    fn entry_micros(&self) -> i64 {
        self.hidden.entry_micros(self.env)
    }
}

/// What is told of the rows of one memtable.
#[derive(Default)]
pub(crate) struct MemtableIndexes {
    hidden: Vec<Arc<LiveIndex>>,
    attached: Vec<(Arc<LiveIndex>, Arc<dyn MemtableIndex>)>,
    attached_bytes: AtomicIsize,
    watched: Watched,
}

impl MemtableIndexes {
    /// The hidden tables, whose memtables are frozen together with this one.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &Arc<TableStore>> {
        self.hidden.iter().filter_map(|live| live.hidden.as_ref())
    }

    /// What they look at of a row that changes.
    pub(crate) fn watched(&self) -> &Watched {
        &self.watched
    }

    pub(crate) fn has_attached(&self) -> bool {
        !self.attached.is_empty()
    }

    /// What an attached index has of the memtable.
    pub(crate) fn attached(&self, index: &str) -> Option<&Arc<dyn MemtableIndex>> {
        let (_, found) = self.attached.iter().find(|(live, _)| live.name() == index)?;
        Some(found)
    }

    /// Memory of the attached indexes.
    pub(crate) fn attached_bytes(&self) -> usize {
        usize::try_from(self.attached_bytes.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Memory of all.
    pub(crate) fn size_bytes(&self) -> usize {
        let of_hidden = self
            .hidden()
            .map(|hidden| hidden.active.read_recursive().memtable.size_bytes());
        of_hidden.sum::<usize>() + self.attached_bytes()
    }

    /// True if hidden tables have nothing to flush.
    pub(crate) fn is_empty(&self) -> bool {
        self.hidden()
            .all(|hidden| hidden.active.read_recursive().memtable.is_empty())
    }

    /// Takes in how a row changed; returns by how many bytes memory grew. `scratch` is memory to use.
    ///
    /// Requires: the memtable's `active` lock is held.
    pub(crate) fn take_in(
        &self,
        env: &dyn Env,
        key: &DecoratedKey,
        change: RowChange<'_>,
        scratch: &mut Vec<u8>,
    ) -> isize {
        let mut grown = 0;
        for live in &self.hidden {
            if let (Storage::HiddenTable(index), Some(hidden)) = (live.index.storage(), &live.hidden) {
                let active = hidden.active.read();
                let when = Writing { hidden, env };
                index.each_entry(key, change, &when, &mut |place, entries| {
                    grown += active.memtable.apply_entries(place, entries, scratch);
                });
            }
        }
        for (_, index) in &self.attached {
            let bytes = index.apply(key, change, scratch);
            self.attached_bytes.fetch_add(bytes, Ordering::Relaxed);
            grown += bytes;
        }
        grown
    }
}
