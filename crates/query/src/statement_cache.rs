//! The prepared statements: in memory, and in `system.prepared_statements`, from which a statement is restored at its first use
//! after a restart.
//!
//! Compat: the rows are Cassandra's. A statement that is evicted from memory is also removed from the table. The limit is the
//! memory of all statements, which is estimated from their text ([`weight_of`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter};

use crate::internal;
use crate::invalidation::Invalidated;
use crate::weight::weight_of;
use crate::{Error, Prepared, QueryOptions, Store, Value};

type Id = [u8; 16];

/// A prepared statement on disk.
pub(crate) struct Remembered {
    pub text: String,
    /// The keyspace of unqualified names in the text.
    pub keyspace: Option<String>,
}

/// Number of shards of the cache, each with its own lock. A statement must fit into one shard.
const PARTS: u64 = 4;
/// Weighs statements by their bytes, but at least by a minimum, which bounds their number.
#[derive(Clone, Debug)]
struct Bytewise {
    weight_min: u64,
}

impl Weighter<Id, Arc<Prepared>> for Bytewise {
    fn weight(&self, _: &Id, prepared: &Arc<Prepared>) -> u64 {
        prepared.weight_bytes.max(self.weight_min)
    }
}

/// The prepared statements.
pub(crate) struct StatementCache {
    store: Arc<dyn Store>,
    options: QueryOptions,
    known: Cache<Id, Arc<Prepared>, Bytewise, DefaultHashBuilder, Evicted>,
    evicted: Evicted,
    /// Facts about forgotten statements, by whose columns clients may still decode rows.
    former: Cache<Id, Former>,
    /// True if the table may have statements that are not in memory.
    has_unread: AtomicBool,
    evicted_count: AtomicU64,
}

/// The facts about a forgotten statement.
#[derive(Clone, Copy)]
struct Former {
    result_metadata_id: Id,
    has_changed: bool,
}

/// Evicted statements, to be removed from the table.
#[derive(Clone, Debug, Default)]
struct Evicted(Arc<Mutex<Vec<Arc<Prepared>>>>);

impl Lifecycle<Id, Arc<Prepared>> for Evicted {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), _: Id, prepared: Arc<Prepared>) {
        self.0.lock().push(prepared);
    }
}

impl StatementCache {
    /// An empty cache.
    pub fn new(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        let evicted = Evicted::default();
        let bytes_max = options.prepared_bytes_max.max(1);
        let count = options.prepared_count_max.max(1);
        let mut parts = OptionsBuilder::new();
        parts
            .shards(usize::try_from(PARTS).unwrap_or(1))
            .estimated_items_capacity(count)
            .weight_capacity(bytes_max);
        let weighter = Bytewise {
            weight_min: (bytes_max / count as u64).max(1),
        };
        let hasher = DefaultHashBuilder::default();
        let known = match parts.build() {
            Ok(parts) => Cache::with_options(parts, weighter, hasher, evicted.clone()),
            // Building fails only if the options lack a capacity.
            Err(_) => Cache::with(count, bytes_max, weighter, hasher, evicted.clone()),
        };
        Self {
            known,
            evicted,
            former: Cache::new(count),
            has_unread: AtomicBool::new(true),
            evicted_count: AtomicU64::new(0),
            store,
            options,
        }
    }

    /// Refuses a text that no shard could hold: it would be evicted at once, and its client would prepare it again and again.
    ///
    /// Compat: `QueryProcessor.storePreparedStatement`.
    pub fn check_size(&self, text: &str) -> Result<(), Error> {
        let (size, max) = (weight_of(text), self.options.prepared_bytes_max / PARTS);
        if size <= max {
            return Ok(());
        }
        let start: String = ilion_cql::hide_secrets(text).chars().take(200).collect();
        Err(Error::Invalid(format!(
            "Prepared statement of size {size} bytes is larger than allowed maximum of {max} bytes (a quarter of \
             prepared_statements_cache_size): {start}..."
        )))
    }

    /// The statement, if it is in memory.
    pub fn get(&self, id: &Id) -> Option<Arc<Prepared>> {
        self.known.get(id)
    }

    /// Adds a statement that is already on disk.
    pub fn renew(&self, prepared: Arc<Prepared>) {
        self.known.insert(prepared.id, prepared);
        self.remove_evicted();
    }

    /// Adds a new statement, in memory only.
    pub fn add_in_memory(&self, prepared: Prepared) -> Arc<Prepared> {
        let prepared = self.insert(prepared);
        self.remove_evicted();
        prepared
    }

    fn insert(&self, mut prepared: Prepared) -> Arc<Prepared> {
        prepared.has_changed = self.former.get(&prepared.id).is_some_and(|former| {
            former.has_changed || former.result_metadata_id != prepared.result_metadata_id
        });
        let prepared = Arc::new(prepared);
        self.known.insert(prepared.id, prepared.clone());
        prepared
    }

    /// Adds a new statement, in memory and on disk.
    pub fn add(&self, prepared: Prepared, text: &str, keyspace: Option<&str>) -> Arc<Prepared> {
        let id = prepared.id;
        let prepared = self.insert(prepared);
        let keyspace = keyspace.map_or(Value::Null, internal::text);
        let values = [id_value(&id), keyspace, internal::text(text)];
        self.tell(self.run(
            "INSERT INTO system.prepared_statements (prepared_id, logged_keyspace, query_string) VALUES (?, ?, ?)",
            &values,
        ));
        self.remove_evicted();
        prepared
    }

    /// A statement in the table, prepared before and maybe by an earlier process.
    pub fn remembered(&self, id: &Id) -> Option<Remembered> {
        let found = self.run(
            "SELECT query_string, logged_keyspace FROM system.prepared_statements WHERE prepared_id = ?",
            &[id_value(id)],
        );
        let mut cells = self.tell(found)?.into_iter();
        let mut next = || {
            cells
                .next()
                .flatten()
                .and_then(|cell| String::from_utf8(cell.to_vec()).ok())
        };
        Some(Remembered {
            text: next()?,
            keyspace: next(),
        })
    }

    /// Forgets a statement whose markers or columns changed.
    pub fn forget(&self, prepared: &Prepared) {
        self.forget_in_memory(prepared);
        self.forget_on_disk(&prepared.id);
    }

    /// Statements in memory that a schema change invalidates.
    pub fn invalid(&self, changed: &Invalidated<'_>) -> Vec<Arc<Prepared>> {
        let known = self.known.iter().map(|(_, prepared)| prepared);
        known.filter(|prepared| changed.has(&prepared.planned)).collect()
    }

    /// Removes these statements from the table, before the schema changes: after a crash between the two, none is left with old columns.
    /// Statements that were not used since the start are removed, too, since their dependencies are not known.
    pub fn forget_before_change(&self, invalid: &[Arc<Prepared>]) {
        invalid
            .iter()
            .for_each(|prepared| self.forget_on_disk(&prepared.id));
        if !self.has_unread.load(Ordering::Relaxed) {
            return;
        }
        let Some(ids) = self.tell(self.run("SELECT prepared_id FROM system.prepared_statements", &[])) else {
            return;
        };
        let ids = ids.into_iter().flatten();
        for id in ids.filter_map(|id| Id::try_from(&*id).ok()) {
            if self.known.peek(&id).is_none() {
                self.forget_on_disk(&id);
            }
        }
        self.has_unread.store(false, Ordering::Relaxed);
    }

    /// Removes these statements from memory, after the schema changed.
    pub fn forget_after_change(&self, invalid: &[Arc<Prepared>]) {
        invalid
            .iter()
            .for_each(|prepared| self.forget_in_memory(prepared));
    }

    fn forget_in_memory(&self, prepared: &Prepared) {
        self.known.remove(&prepared.id);
        self.note_former(prepared);
    }

    fn note_former(&self, prepared: &Prepared) {
        let former = Former {
            result_metadata_id: prepared.result_metadata_id,
            has_changed: prepared.has_changed,
        };
        self.former.insert(prepared.id, former);
    }

    /// Removes a statement from the table.
    pub fn forget_on_disk(&self, id: &Id) {
        self.tell(self.run(
            "DELETE FROM system.prepared_statements WHERE prepared_id = ?",
            &[id_value(id)],
        ));
    }

    /// The number of statements in memory, and the number of those evicted since the start.
    pub fn counts(&self) -> (u64, u64) {
        (
            self.known.len() as u64,
            self.evicted_count.load(Ordering::Relaxed),
        )
    }

    fn remove_evicted(&self) {
        let evicted = std::mem::take(&mut *self.evicted.0.lock());
        let count = evicted.len() as u64;
        self.evicted_count.fetch_add(count, Ordering::Relaxed);
        // A statement that was planned again is among the evicted, too: it replaced its own older version.
        for prepared in evicted {
            if self.known.peek(&prepared.id).is_none() {
                self.note_former(&prepared);
                self.forget_on_disk(&prepared.id);
            }
        }
    }

    fn run(&self, cql: &str, values: &[Value]) -> Result<Vec<Option<Bytes>>, Error> {
        internal::run(&*self.store, &self.options, cql, values)
    }

    /// Logs a failure and returns `None`. The statement works all the same, but clients must prepare it again after a restart.
    fn tell<T>(&self, done: Result<T, Error>) -> Option<T> {
        done.map_err(|reason| tracing::warn!(%reason, "system.prepared_statements cannot be used"))
            .ok()
    }
}

fn id_value(id: &Id) -> Value {
    Value::Bytes(Bytes::copy_from_slice(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_weighs_its_text_and_its_terms() {
        assert_eq!(weight_of("SELECT a FROM t"), 2048 + 30);
        let list = "1,".repeat(1000);
        assert_eq!(weight_of(&list), 2048 + 4000 + 128_000);
    }
}
