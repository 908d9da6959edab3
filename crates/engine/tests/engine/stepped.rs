//! An engine without threads: everything happens in the calls of the test, so that a seed decides every step.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_engine::EngineOptions;
use ilion_env::{CrashRule, Env as _, MemEnv, Moment, Seeded};
use parking_lot::Mutex;

use crate::model::{Model, check, options, step, strategy};
use crate::support::{Store, create_keyspace, create_table, open, put};

/// The first is compared with a map; the others share memory and log with it.
const TABLES: [&str; 4] = ["t", "u", "v", "w"];

/// What a life did to its disks, in order, and what it left.
#[derive(Debug, Default, PartialEq, Eq)]
struct Trace {
    syncs: Vec<(u64, Moment, PathBuf)>,
    served: Vec<(u64, u64)>,
    files: Vec<(PathBuf, Vec<u8>)>,
}

pub fn stepped(random: &mut Seeded) -> EngineOptions {
    EngineOptions {
        is_stepped: true,
        ..options(random)
    }
}

fn watch(env: &MemEnv, trace: &Arc<Mutex<Trace>>) {
    let trace = trace.clone();
    env.on_sync(move |_, event| {
        let event = (event.number, event.moment, event.path.clone());
        trace.lock().syncs.push(event);
    });
}

fn files_below(env: &MemEnv, directory: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in env.list(directory).unwrap() {
        let path = directory.join(&entry.name);
        match entry.is_dir {
            true => files_below(env, &path, files),
            false => files.push((path.clone(), env.read_all(&path, u64::MAX).unwrap())),
        }
    }
}

/// Random operations on an engine whose background goes on in random steps, with power losses, compared with a map.
fn life(seed: u64) -> Trace {
    let random = &mut Seeded::new(seed);
    let trace = Arc::new(Mutex::new(Trace::default()));
    let env = MemEnv::new(seed);
    watch(&env, &trace);
    let mut store = open(&env, stepped(random)).unwrap();
    store.alter(&create_keyspace("ks"));
    for table in TABLES {
        store.alter(&create_table("ks", table));
    }
    store.alter(&strategy(random));
    let mut model = Model::default();
    for _ in 0..300 {
        match random.below(40) {
            0 => store.flush(),
            1 => {
                store.env.advance_micros(1_000_000 * random.below(100) as i64);
                store.engine.tick();
            }
            2 => store.engine.wait_idle(),
            3 => check(seed, &store, &model),
            4 => {
                let rule = match random.below(3) {
                    0 => CrashRule::LoseUnsynced,
                    1 => CrashRule::KeepAll,
                    _ => CrashRule::Seeded(random.next_u64()),
                };
                store = lose_power(store, rule, random, &trace);
            }
            5..15 => {
                store.engine.step();
            }
            15..20 => {
                let table = store.table_named(TABLES[1 + random.below(3) as usize]);
                store.write(put(&table, "a", 1, "the same value in each table", 10));
            }
            _ => step(random, &store, &mut model),
        }
    }
    check(seed, &store, &model);
    trace.lock().served.push(store.env.served());
    let env = store.close();
    let mut files = Vec::new();
    files_below(&env, Path::new("/"), &mut files);
    let mut trace = std::mem::take(&mut *trace.lock());
    trace.files = files;
    trace
}

fn lose_power(store: Store, rule: CrashRule, random: &mut Seeded, trace: &Arc<Mutex<Trace>>) -> Store {
    let after = store.env.crash(rule);
    trace.lock().served.push(store.env.served());
    // What the process does from now on is lost.
    store.env.on_sync(|_, _| {});
    drop(store);
    watch(&after, trace);
    open(&after, stepped(random)).unwrap()
}

#[test]
fn an_engine_without_threads_answers_as_a_map_would_and_one_seed_decides_everything() {
    for seed in 0..4 {
        let (first, second) = (life(seed), life(seed));
        assert!(
            first.syncs.len() > 400 && first.files.len() > 20,
            "seed {seed}: little happened"
        );
        assert_eq!(first.syncs, second.syncs, "seed {seed}: syncs");
        assert_eq!(first.served, second.served, "seed {seed}: reads");
        let names =
            |trace: &Trace| -> Vec<PathBuf> { trace.files.iter().map(|(path, _)| path.clone()).collect() };
        assert_eq!(names(&first), names(&second), "seed {seed}: files");
        for ((path, first), (_, second)) in first.files.iter().zip(&second.files) {
            assert!(first == second, "seed {seed}: {} differs", path.display());
        }
    }
}
