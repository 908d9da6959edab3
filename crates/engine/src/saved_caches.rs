//! Saved caches: the keys in caches are saved periodically, and when the engine closes. After a start,
//! the caches are filled again in the background, while the engine serves requests.
//!
//! Of the row and counter caches only keys are saved (`entries`), and their values are read again. Of the key cache, positions in
//! SSTables are saved, too (`keys`), since they never change. Damaged files are skipped with a warning.
//! Compat: `AutoSavingCache` of Cassandra 5.0.

mod entries;
mod file;
mod keys;
mod schema_digest;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use ilion_rows::{
    Clustering, ClusteringFilter, Cursor as _, Data, DecoratedKey, Row, Slice, Unfiltered, counter,
};
use ilion_schema::{ColumnKind, TableSchema};

use self::entries::{EntryDraft, Saved, SavedEntry, decode_cell, encode_cell};
use crate::cache_saving::{COUNTERS, CacheSaving, KEYS, ROWS};
use crate::counter_cache::{CounterKey, OwnCount};
use crate::shared::Shared;
use crate::{Engine, Error, Result};

/// Loads the saved caches, and saves them until the engine closes.
pub(crate) fn run(shared: &Arc<Shared>) {
    fill(shared);
    let caches = &shared.cache_savings;
    let now_nanos = shared.env.monotonic_nanos();
    let mut due = caches.each_ref().map(|cache| cache.due_nanos(now_nanos));
    loop {
        let now_nanos = shared.env.monotonic_nanos();
        let next = due.iter().flatten().min();
        let wait = next.map_or(u64::MAX, |due| due.saturating_sub(now_nanos));
        shared.background.pause(Duration::from_nanos(wait));
        let is_last = shared.background.is_stopping();
        let now_nanos = shared.env.monotonic_nanos();
        for (cache, due) in caches.iter().zip(&mut due) {
            if due.is_some_and(|due| is_last || due <= now_nanos) {
                save_and_tell(shared, cache);
                *due = cache.due_nanos(now_nanos);
            }
        }
        if is_last {
            return;
        }
    }
}

/// Loads the saved caches.
pub(crate) fn fill(shared: &Shared) {
    load(shared);
    shared.background.tell_caches_loaded();
}

fn save_and_tell(shared: &Shared, cache: &CacheSaving) {
    let keys_max = cache.keys_to_save.load(Ordering::Relaxed);
    let saved = match cache.name {
        KEYS => shared.save_keys(keys_max),
        ROWS => save_rows(shared, keys_max),
        _ => save_counters(shared, keys_max),
    };
    if let Err(error) = saved {
        tracing::warn!(cache = cache.name, %error, "the keys of a cache were not saved");
    }
}

fn save_rows(shared: &Shared, keys_max: usize) -> Result<()> {
    let mut draft = EntryDraft::default();
    for key in shared.row_cache.keys().into_iter().take(keys_max) {
        draft.add(key.table, &key.key, None);
    }
    write(shared, draft, ROWS)
}

fn save_counters(shared: &Shared, keys_max: usize) -> Result<()> {
    let mut draft = EntryDraft::default();
    for key in shared.counter_cache.keys().into_iter().take(keys_max) {
        let table = shared.table(key.table).map(|store| store.schema());
        let column = table.as_ref().and_then(|table| table.column(key.column));
        // Left out. Compat: Cassandra cannot load a file with an entry of a static column.
        if let Some(column) = column.filter(|column| column.kind != ColumnKind::Static) {
            let cell = encode_cell(key.clustering.values(), &column.name);
            draft.add(key.table, &key.key, Some(&cell));
        }
    }
    write(shared, draft, COUNTERS)
}

fn write(shared: &Shared, draft: EntryDraft, cache: &str) -> Result<()> {
    let version = shared.schema_version_of_cassandra()?;
    Ok(draft.write(&*shared.env, &shared.options.saved_caches_dir, cache, version)?)
}

/// Fills the caches with the keys that were saved last.
fn load(shared: &Shared) {
    let started_nanos = shared.env.monotonic_nanos();
    let timeout_nanos = u64::try_from(shared.options.cache_load_timeout.as_nanos()).unwrap_or(u64::MAX);
    let go_on = || {
        let elapsed_nanos = shared.env.monotonic_nanos().saturating_sub(started_nanos);
        !shared.background.is_stopping() && elapsed_nanos <= timeout_nanos
    };
    for (name, bytes_max) in [
        (KEYS, shared.key_cache.capacity_bytes()),
        (ROWS, shared.row_cache.capacity_bytes()),
        (COUNTERS, shared.counter_cache.capacity_bytes()),
    ] {
        if bytes_max == 0 {
            continue;
        }
        let (entries, loaded, complaint) = match name {
            KEYS => shared.load_keys(&go_on),
            _ => load_entries(shared, name, &go_on),
        };
        if let Some(complaint) = complaint {
            tracing::warn!(cache = name, %complaint, "a saved cache is not used, or not all of it");
        }
        if entries > 0 {
            tracing::info!(cache = name, entries, loaded, "a saved cache was loaded");
        }
    }
}

fn load_entries(
    shared: &Shared,
    name: &'static str,
    go_on: &dyn Fn() -> bool,
) -> (usize, usize, Option<String>) {
    let directory = &shared.options.saved_caches_dir;
    let saved = Saved::read(&*shared.env, directory, name, name == COUNTERS);
    let mut loaded = 0;
    for entry in saved.entries.iter().take_while(|_| go_on()) {
        match load_entry(shared, entry) {
            Ok(is_loaded) => loaded += usize::from(is_loaded),
            Err(error) => {
                tracing::debug!(cache = name, %error, "an entry of a saved cache was not loaded")
            }
        }
    }
    (saved.entries.len(), loaded, saved.complaint)
}

/// Loads the value of an entry into its cache. Returns false if the entry no longer exists.
fn load_entry(shared: &Shared, entry: &SavedEntry) -> Result<bool> {
    let Some(store) = shared.table(entry.table) else {
        return Ok(false);
    };
    let table = store.schema();
    let partitioner = table.partitioner(shared.options.partitioner);
    let key = DecoratedKey::new(partitioner, entry.key.clone());
    match &entry.cell {
        None => match table.options.caching.rows_per_partition {
            Some(rows_max) => Ok(shared.fill_row_cache(&store, &table, &key, rows_max)?.is_some()),
            None => Ok(false),
        },
        Some(cell) => load_counter(shared, &table, &key, cell),
    }
}

fn load_counter(shared: &Shared, table: &Arc<TableSchema>, key: &DecoratedKey, cell: &Bytes) -> Result<bool> {
    let Some((values, column)) = decode_cell(cell) else {
        return Ok(false);
    };
    let Some(column) = table.column_named(&column).filter(|_| table.is_counter()) else {
        return Ok(false);
    };
    let is_static = column.kind == ColumnKind::Static;
    let values_wanted = if is_static { 0 } else { table.clustering().len() };
    let Some(store) = shared.table(table.id).filter(|_| values.len() == values_wanted) else {
        return Ok(false);
    };
    let clustering = Clustering::new(values);
    let _guard = shared.stripes.lock(&mut std::iter::once((table.id, key)));
    let epoch = shared.counter_cache.epoch(table.id, &key.key);
    let filter = ClusteringFilter {
        slices: match is_static {
            true => Vec::new(),
            false => vec![Slice::exactly(&clustering)],
        },
        ..ClusteringFilter::all()
    };
    let mut cursor = store.read_partition(table, key, &filter, u32::MAX)?;
    let Some(head) = cursor.next_partition()? else {
        return Ok(false);
    };
    let mut row: Option<Row> = head.static_row.filter(|_| is_static);
    while let Some(unfiltered) = cursor.next_unfiltered()? {
        if let Unfiltered::Row(found) = unfiltered {
            row = Some(found);
        }
    }
    let own = match row.as_ref().and_then(|row| row.column(column.id)) {
        Some(Data::Simple(cell)) => counter::global_of(&cell.value, shared.id.as_bytes()),
        _ => None,
    };
    let Some((clock, count)) = own else {
        return Ok(false);
    };
    let counter = CounterKey {
        table: table.id,
        key: key.key.clone(),
        clustering,
        column: column.id,
    };
    shared
        .counter_cache
        .insert(&counter, OwnCount { clock, count }, epoch);
    Ok(true)
}

impl Engine {
    /// Changes the capacity of a cache until the next start, and evicts entries that no longer fit.
    ///
    /// # Errors
    /// There is no such cache.
    pub fn set_cache_capacity(&self, name: &str, bytes_max: u64) -> Result<()> {
        match name {
            "rows" => self.shared.row_cache.resize(bytes_max),
            "counters" => self.shared.counter_cache.resize(bytes_max),
            "keys" => self.shared.key_cache.resize(bytes_max),
            "chunks" => self.shared.chunk_cache.resize(bytes_max),
            _ => return Err(no_such_cache(name)),
        }
        Ok(())
    }

    /// Changes the number of keys of a cache that are saved, until the next start.
    ///
    /// # Errors
    /// There is no such cache, or it is not saved.
    pub fn set_cache_keys_to_save(&self, name: &str, keys_max: usize) -> Result<()> {
        let mut caches = self.shared.cache_savings.iter();
        let cache = caches
            .find(|cache| cache.label == name)
            .ok_or_else(|| match name {
                "chunks" => Error::Refused("the cache chunks is not saved".to_owned()),
                _ => no_such_cache(name),
            })?;
        cache.keys_to_save.store(keys_max, Ordering::Relaxed);
        Ok(())
    }

    /// Empties a cache: `rows`, `counters`, `keys` or `chunks`.
    ///
    /// # Errors
    /// There is no such cache.
    pub fn invalidate_cache(&self, name: &str) -> Result<()> {
        match name {
            "rows" => self.shared.row_cache.clear(),
            "counters" => self.shared.counter_cache.clear(None),
            "keys" => self.shared.key_cache.clear(),
            "chunks" => self.shared.chunk_cache.clear(),
            _ => return Err(no_such_cache(name)),
        }
        Ok(())
    }
}

fn no_such_cache(name: &str) -> Error {
    Error::Refused(format!(
        "there is no cache {name}: there are rows, counters, keys and chunks"
    ))
}
