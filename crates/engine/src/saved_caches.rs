//! Caches that outlive the process: which partitions and counters they held is saved now and then, and at the end; after a start,
//! when the engine serves already, they are read again in the background.
//!
//! Only keys are saved (`file` says how), so what comes back is as new as a read. What is damaged, or of another schema, is left
//! alone with a warning. Compat: `AutoSavingCache` of Cassandra 5.0.

mod file;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_rows::{
    Clustering, ClusteringFilter, Cursor as _, Data, DecoratedKey, Row, Slice, Unfiltered, counter,
};
use ilion_schema::{ColumnKind, TableSchema};

use self::file::{Draft, Saved, SavedEntry, decode_cell, encode_cell};
use crate::Result;
use crate::counter_cache::{CounterKey, OwnCount};
use crate::engine::Shared;
use crate::options::CacheOptions;

const ROWS: &str = "RowCache";
const COUNTERS: &str = "CounterCache";

/// A cache and when it is saved.
struct Plan {
    name: &'static str,
    options: CacheOptions,
    due_nanos: Option<u64>,
}

impl Plan {
    fn after(name: &'static str, options: &CacheOptions, now_nanos: u64) -> Self {
        let mut plan = Self {
            name,
            options: options.clone(),
            due_nanos: None,
        };
        plan.postpone(now_nanos);
        plan
    }

    fn postpone(&mut self, now_nanos: u64) {
        let nanos = |period: Duration| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        let period = self.options.save_period.filter(|_| self.options.bytes_max > 0);
        self.due_nanos = period.map(|period| now_nanos.saturating_add(nanos(period)));
    }
}

/// Loads what was saved, and saves until the engine stops.
pub(crate) fn run(shared: &Arc<Shared>) {
    load(shared);
    shared.background.tell_caches_loaded();
    let now_nanos = shared.env.monotonic_nanos();
    let options = &shared.options;
    let mut plans = [
        Plan::after(ROWS, &options.row_cache, now_nanos),
        Plan::after(COUNTERS, &options.counter_cache, now_nanos),
    ];
    loop {
        let now_nanos = shared.env.monotonic_nanos();
        let next = plans.iter().filter_map(|plan| plan.due_nanos).min();
        let wait = next.map_or(u64::MAX, |due| due.saturating_sub(now_nanos));
        shared.background.pause(Duration::from_nanos(wait));
        let is_last = shared.background.is_stopping();
        let now_nanos = shared.env.monotonic_nanos();
        for plan in &mut plans {
            if plan.due_nanos.is_some_and(|due| is_last || due <= now_nanos) {
                save_and_tell(shared, plan);
                plan.postpone(now_nanos);
            }
        }
        if is_last {
            return;
        }
    }
}

fn save_and_tell(shared: &Shared, plan: &Plan) {
    if let Err(error) = save(shared, plan) {
        tracing::warn!(cache = plan.name, %error, "the keys of a cache were not saved");
    }
}

fn save(shared: &Shared, plan: &Plan) -> Result<()> {
    let schema = shared.schema.load_full();
    let mut draft = Draft::new(schema.version);
    if plan.name == ROWS {
        for key in shared
            .row_cache
            .keys()
            .into_iter()
            .take(plan.options.keys_to_save)
        {
            draft.add(key.table, &key.key, None);
        }
    } else {
        for key in shared
            .counter_cache
            .keys()
            .into_iter()
            .take(plan.options.keys_to_save)
        {
            let Some(store) = shared.table(key.table) else {
                continue;
            };
            let table = store.schema();
            if let Some(column) = table.column(key.column) {
                let cell = encode_cell(key.clustering.values(), &column.name);
                draft.add(key.table, &key.key, Some(&cell));
            }
        }
    }
    Ok(draft.write(&*shared.env, &shared.options.saved_caches_dir, plan.name)?)
}

/// Reads what was cached when the caches were saved last.
fn load(shared: &Shared) {
    let started_nanos = shared.env.monotonic_nanos();
    for (name, bytes_max) in [
        (ROWS, shared.options.row_cache.bytes_max),
        (COUNTERS, shared.options.counter_cache.bytes_max),
    ] {
        if bytes_max == 0 {
            continue;
        }
        let version = shared.schema.load().version;
        let directory = &shared.options.saved_caches_dir;
        let saved = Saved::read(&*shared.env, directory, name, version, name == COUNTERS);
        if let Some(complaint) = &saved.complaint {
            tracing::warn!(cache = name, %complaint, "a saved cache is not used, or not all of it");
        }
        let mut loaded = 0;
        let timeout_nanos = u64::try_from(shared.options.cache_load_timeout.as_nanos()).unwrap_or(u64::MAX);
        for entry in &saved.entries {
            let elapsed_nanos = shared.env.monotonic_nanos().saturating_sub(started_nanos);
            if shared.background.is_stopping() || elapsed_nanos > timeout_nanos {
                break;
            }
            match load_entry(shared, entry) {
                Ok(true) => loaded += 1,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(cache = name, %error, "an entry of a saved cache was not loaded")
                }
            }
        }
        if !saved.entries.is_empty() {
            tracing::info!(
                cache = name,
                entries = saved.entries.len(),
                loaded,
                "a saved cache was loaded"
            );
        }
    }
}

/// False if there is nothing to cache any more.
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
