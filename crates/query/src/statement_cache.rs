//! Prepared statements that are known: in memory, and in `system.prepared_statements`, from where they come back after a
//! restart when they are first asked for.
//!
//! Compat: rows as Cassandra keeps them. A statement that goes from memory to make place goes from the table too.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use quick_cache::sync::Cache;
use quick_cache::{DefaultHashBuilder, Lifecycle, UnitWeighter};

use crate::internal;
use crate::{Error, Prepared, QueryOptions, Store, Value};

type Id = [u8; 16];

/// What is known of a prepared statement on disk.
pub(crate) struct Remembered {
    pub text: String,
    /// Of its unqualified names.
    pub keyspace: Option<String>,
}

/// The prepared statements.
pub(crate) struct StatementCache {
    store: Arc<dyn Store>,
    options: QueryOptions,
    known: Cache<Id, Arc<Prepared>, UnitWeighter, DefaultHashBuilder, Evicted>,
    evicted: Evicted,
}

/// Ids that made place for others, to be removed from the table.
#[derive(Clone, Debug, Default)]
struct Evicted(Arc<Mutex<Vec<Id>>>);

impl Lifecycle<Id, Arc<Prepared>> for Evicted {
    type RequestState = ();

    fn on_evict(&self, (): &mut (), id: Id, _: Arc<Prepared>) {
        self.0.lock().push(id);
    }
}

impl StatementCache {
    /// Nothing is in memory yet.
    pub fn new(store: Arc<dyn Store>, options: QueryOptions) -> Self {
        let evicted = Evicted::default();
        let count = options.prepared_count_max;
        Self {
            known: Cache::with(
                count,
                count as u64,
                UnitWeighter,
                DefaultHashBuilder::default(),
                evicted.clone(),
            ),
            evicted,
            store,
            options,
        }
    }

    /// The statement, if it is in memory.
    pub fn get(&self, id: &Id) -> Option<Arc<Prepared>> {
        self.known.get(id)
    }

    /// Puts in a statement that is on disk already.
    pub fn renew(&self, prepared: Arc<Prepared>) {
        self.known.insert(prepared.id, prepared);
        self.remove_evicted();
    }

    /// Puts in a new statement, in memory and on disk.
    pub fn add(&self, prepared: Arc<Prepared>, text: &str, keyspace: Option<&str>) {
        let id = prepared.id;
        self.known.insert(id, prepared);
        let keyspace = keyspace.map_or(Value::Null, internal::text);
        let values = [id_value(&id), keyspace, internal::text(text)];
        self.tell(self.run(
            "INSERT INTO system.prepared_statements (prepared_id, logged_keyspace, query_string) VALUES (?, ?, ?)",
            &values,
        ));
        self.remove_evicted();
    }

    /// A statement that was prepared before, maybe by a process before this one.
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

    /// Forgets a statement that can no longer be planned.
    pub fn forget(&self, id: &Id) {
        self.tell(self.run(
            "DELETE FROM system.prepared_statements WHERE prepared_id = ?",
            &[id_value(id)],
        ));
    }

    fn remove_evicted(&self) {
        let evicted = std::mem::take(&mut *self.evicted.0.lock());
        evicted.iter().for_each(|id| self.forget(id));
    }

    fn run(&self, cql: &str, values: &[Value]) -> Result<Vec<Option<Bytes>>, Error> {
        internal::run(&*self.store, &self.options, cql, values)
    }

    /// The statement works all the same: clients prepare it again after a restart.
    fn tell<T>(&self, done: Result<T, Error>) -> Option<T> {
        done.map_err(|reason| tracing::warn!(%reason, "system.prepared_statements cannot be used"))
            .ok()
    }
}

fn id_value(id: &Id) -> Value {
    Value::Bytes(Bytes::copy_from_slice(id))
}
