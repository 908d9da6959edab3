//! A power loss at every sync: every acknowledged write is there afterwards, and nothing is invented.

use std::collections::BTreeMap;
use std::sync::Arc;

use ilion_engine::Engine;
use ilion_env::{CrashRule, MemEnv, Moment};
use parking_lot::Mutex;

use crate::support::{
    Store, compact_with, create_table, delete_row, drop_table, new_store, open, put, small_options,
};

/// Value of each row, as far as it was acknowledged and as far as it was sent.
#[derive(Clone, Default)]
struct Promise {
    acknowledged: BTreeMap<i32, String>,
    /// Rows with a write under way: what they may be instead.
    pending: Option<(i32, Option<String>)>,
    /// Names of tables that were acknowledged.
    tables: Vec<String>,
}

type Crash = (MemEnv, Promise);

fn workload(store: &Store, promise: &Mutex<Promise>) {
    let table = store.table();
    let begin = |row, value: Option<&str>| promise.lock().pending = Some((row, value.map(str::to_owned)));
    let acknowledge = |row, value: Option<&str>| {
        let mut promise = promise.lock();
        promise.pending = None;
        match value {
            Some(value) => promise.acknowledged.insert(row, value.to_owned()),
            None => promise.acknowledged.remove(&row),
        };
    };
    let mut timestamp = 100;
    for round in 0..3 {
        for row in 0..4 {
            timestamp += 1;
            let value = format!("round {round}");
            begin(row, Some(&value));
            store.write(put(&table, "a", row, &value, timestamp));
            acknowledge(row, Some(&value));
        }
        timestamp += 1;
        begin(round, None);
        store.write(delete_row(&table, "a", round, timestamp));
        acknowledge(round, None);
        match round {
            0 => store.flush(),
            1 => store.engine.compact(table.id).unwrap(),
            _ => store.engine.drain().unwrap(),
        }
        let name = format!("t{round}");
        store.alter(&create_table("ks", &name));
        promise.lock().tables.push(name.clone());
        if round == 1 {
            promise.lock().tables.clear();
            store.alter(&drop_table("ks", "t0"));
            promise.lock().tables.push(name);
        }
    }
}

fn check(number: usize, (env, promise): &Crash) {
    let store = open(env, small_options()).unwrap_or_else(|error| panic!("crash {number}: {error}"));
    let rows: BTreeMap<i32, String> = store.partition("a", false).into_iter().collect();
    let mut with_pending = promise.acknowledged.clone();
    match &promise.pending {
        Some((row, Some(value))) => {
            with_pending.insert(*row, value.clone());
        }
        Some((row, None)) => {
            with_pending.remove(row);
        }
        None => {}
    }
    assert!(
        rows == promise.acknowledged || rows == with_pending,
        "crash {number}: {rows:?}, acknowledged {:?}, pending {:?}",
        promise.acknowledged,
        promise.pending
    );
    for key in 0..4 {
        let beside = store.partition(&format!("k{key}"), false);
        assert_eq!(beside, [(1, "beside".to_owned())], "crash {number}: k{key}");
    }
    let schema = store.engine.schema();
    for table in &promise.tables {
        assert!(
            schema.table("ks", table).is_some(),
            "crash {number}: table {table} is lost"
        );
    }
    // It goes on working.
    store.put("b", 1, "after", 1);
    assert_eq!(store.partition("b", false), [(1, "after".to_owned())]);
}

/// Compactions make several SSTables.
const SHARDED: [(&str, &str); 3] = [
    ("class", "UnifiedCompactionStrategy"),
    ("base_shard_count", "3"),
    ("min_sstable_size", "0B"),
];

fn crashes(rule: impl Fn(u64) -> CrashRule + Send + Sync + 'static) -> Vec<Crash> {
    let store = new_store(77, small_options());
    store.alter(&compact_with(&SHARDED));
    for key in 0..4 {
        store.put(&format!("k{key}"), 1, "beside", 1);
    }
    store.engine.drain().unwrap();
    let promise = Arc::new(Mutex::new(Promise::default()));
    let crashes: Arc<Mutex<Vec<Crash>>> = Arc::default();
    let (seen, promised) = (crashes.clone(), promise.clone());
    store.env.on_sync(move |env, event| {
        // What is acknowledged after a crash is not promised by it: the promise is read first.
        let before = promised.lock().clone();
        if event.moment == Moment::BeforeSync {
            seen.lock().push((env.crash(rule(event.number)), before));
        }
    });
    workload(&store, &promise);
    assert!(store.sstables() > 1, "the workload is to make several results");
    drop(store);
    std::mem::take(&mut *crashes.lock())
}

#[test]
fn acknowledged_writes_survive_a_crash_that_loses_all_that_was_not_synced() {
    let crashes = crashes(|_| CrashRule::LoseUnsynced);
    assert!(crashes.len() > 50);
    crashes
        .iter()
        .enumerate()
        .for_each(|(number, crash)| check(number, crash));
}

#[test]
fn acknowledged_writes_survive_a_crash_that_tears() {
    let crashes = crashes(|number| CrashRule::Seeded(number * 7919));
    crashes
        .iter()
        .enumerate()
        .for_each(|(number, crash)| check(number, crash));
}

#[test]
fn a_power_loss_in_the_first_start_leaves_a_directory_that_starts() {
    let env = MemEnv::new(1);
    let crashes = Arc::<Mutex<Vec<_>>>::default();
    let seen = crashes.clone();
    env.on_sync(move |env, event| {
        let is_log = event.path.extension().is_some_and(|extension| extension == "log");
        if is_log && event.moment == Moment::BeforeSync {
            let torn = |tear| env.crash(CrashRule::Seeded(event.number * 100 + tear));
            seen.lock().extend((0..12).map(torn));
        }
    });
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    engine.drain().unwrap();
    drop(engine);
    env.on_sync(|_, _| ());
    for (number, env) in std::mem::take(&mut *crashes.lock()).iter().enumerate() {
        let engine = Engine::open(env.shared(), small_options());
        let engine = engine.unwrap_or_else(|error| panic!("crash {number}: {error}"));
        assert_eq!(engine.set_aside(), [], "crash {number}");
    }
}
