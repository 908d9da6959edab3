//! [`Awaited`]: the progress of flushes and snapshots that an operator waits for.
//!
//! Each table counts the bytes that its flushes write and the SSTables that its snapshots link (`maintenance`). The progress of a
//! request is the growth of these counts since it began.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::table_store::TableStore;

/// A snapshot takes about as long for an SSTable that is already on disk as a flush takes for this many bytes.
const LINKED_AS_BYTES: u64 = 256 << 10;

/// What a request does with its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AwaitedKind {
    Flush,
    Snapshot,
    /// A snapshot without the data that is only in memtables.
    SnapshotOfFiles,
}

/// A request of an operator for a flush or a snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AwaitedFacts {
    /// `Flush` or `Snapshot`.
    pub kind: &'static str,
    /// Work that is done, in bytes of memtables.
    pub done_bytes: u64,
    /// All work, as known when the request began, in bytes of memtables.
    pub total_bytes: u64,
}

/// The requests that operators wait for.
#[derive(Default)]
pub(crate) struct Awaited(Mutex<Vec<Arc<Request>>>);

struct Request {
    kind: AwaitedKind,
    parts: Vec<TableWork>,
}

/// The work on a table.
struct TableWork {
    store: Arc<TableStore>,
    bytes: u64,
    sstables: u64,
    written_before: u64,
    linked_before: u64,
}

impl TableWork {
    fn of(store: &Arc<TableStore>, kind: AwaitedKind) -> Self {
        let indexes = store.indexes();
        let views: Vec<_> = indexes
            .hidden()
            .chain([store])
            .map(|store| store.view())
            .collect();
        let in_memory = views.iter().map(|view| view.memtable_bytes()).sum();
        let on_disk = views.iter().map(|view| view.sstables.len() as u64).sum();
        Self {
            store: store.clone(),
            bytes: match kind {
                AwaitedKind::Flush | AwaitedKind::Snapshot => in_memory,
                AwaitedKind::SnapshotOfFiles => 0,
            },
            sstables: match kind {
                AwaitedKind::Flush => 0,
                AwaitedKind::Snapshot | AwaitedKind::SnapshotOfFiles => on_disk,
            },
            written_before: store.maintenance.written_bytes(),
            linked_before: store.maintenance.linked_sstables(),
        }
    }

    fn total(&self) -> u64 {
        self.bytes
            .saturating_add(self.sstables.saturating_mul(LINKED_AS_BYTES))
    }

    fn done(&self) -> u64 {
        let maintenance = &self.store.maintenance;
        let written = maintenance.written_bytes().saturating_sub(self.written_before);
        let linked = maintenance.linked_sstables().saturating_sub(self.linked_before);
        // Limited, since the counts also include later writes, and flushes and snapshots of other requests.
        let linked = linked.min(self.sstables).saturating_mul(LINKED_AS_BYTES);
        written.min(self.bytes).saturating_add(linked)
    }
}

/// Removes a request from the list when it is dropped.
pub(crate) struct Shown<'a> {
    awaited: &'a Awaited,
    request: Arc<Request>,
}

impl Awaited {
    /// Shows a request until the value is dropped.
    pub(crate) fn begin<'s>(
        &self,
        kind: AwaitedKind,
        stores: impl IntoIterator<Item = &'s Arc<TableStore>>,
    ) -> Shown<'_> {
        let parts = stores
            .into_iter()
            .map(|store| TableWork::of(store, kind))
            .collect();
        let request = Arc::new(Request { kind, parts });
        self.0.lock().push(request.clone());
        Shown {
            awaited: self,
            request,
        }
    }

    pub(crate) fn facts(&self) -> Vec<AwaitedFacts> {
        let requests = self.0.lock().clone();
        let facts = requests.iter().map(|request| AwaitedFacts {
            kind: match request.kind {
                AwaitedKind::Flush => "Flush",
                AwaitedKind::Snapshot | AwaitedKind::SnapshotOfFiles => "Snapshot",
            },
            done_bytes: request.parts.iter().map(TableWork::done).sum(),
            total_bytes: request.parts.iter().map(TableWork::total).sum(),
        });
        facts.collect()
    }
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        let mut requests = self.awaited.0.lock();
        requests.retain(|request| !Arc::ptr_eq(request, &self.request));
    }
}
