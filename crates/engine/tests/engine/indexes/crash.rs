//! A power loss at every sync of a life with indexes: afterwards an index finds every row that is there.

use std::sync::Arc;

use ilion_engine::Engine;
use ilion_env::{CrashRule, MemEnv, Moment};
use parking_lot::Mutex;

use super::table::{INDEXES, Reader, create_index, create_table, drop_index, key, table, write_row};
use crate::support::{create_keyspace, small_options};

fn write(engine: &Engine, c: i32, v: i32, timestamp: i64) {
    write_row(engine, key("k", c % 2), c, v, timestamp);
}

fn workload(engine: &Engine) {
    let id = table(engine).id;
    let mut timestamp = 10;
    let mut round = |rows: i32| {
        for c in 0..rows {
            timestamp += 1;
            write(engine, c, (c + rows) % 4, timestamp);
        }
    };
    let (by_v, by_c, sai_v) = (INDEXES[0], INDEXES[2], INDEXES[9]);
    engine.alter_schema(&create_index(by_v)).unwrap();
    round(4);
    engine.flush(id).unwrap();
    engine.alter_schema(&create_index(sai_v)).unwrap();
    engine.alter_schema(&create_index(by_c)).unwrap();
    round(5);
    engine.flush(id).unwrap();
    round(3);
    engine.compact(id).unwrap();
    engine.wait_idle();
    engine.truncate(id).unwrap();
    round(6);
    engine.alter_schema(&drop_index(by_v.2)).unwrap();
    engine.alter_schema(&create_index(by_v)).unwrap();
    engine.wait_idle();
    engine.rebuild_index(&table(engine), sai_v.2).unwrap();
    round(7);
    engine.drain().unwrap();
}

/// The disk as a power loss at each sync would leave it.
fn crashes(rule: impl Fn(u64) -> CrashRule + Send + Sync + 'static) -> Vec<MemEnv> {
    let env = MemEnv::new(9);
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    engine.alter_schema(&create_table()).unwrap();
    let crashes = Arc::new(Mutex::new(Vec::new()));
    let seen = crashes.clone();
    env.on_sync(move |env, event| {
        // Not all, since there are many, and each takes a start.
        if event.moment == Moment::BeforeSync && event.number % 16 == 0 {
            seen.lock().push(env.crash(rule(event.number)));
        }
    });
    workload(&engine);
    drop(engine);
    std::mem::take(&mut *crashes.lock())
}

fn check(number: usize, env: &MemEnv) {
    let engine =
        Engine::open(env.shared(), small_options()).unwrap_or_else(|error| panic!("crash {number}: {error}"));
    engine.wait_idle();
    let schema = engine.schema();
    let keyspace = schema.keyspace("ks").unwrap();
    let there = INDEXES
        .iter()
        .copied()
        .filter(|index| keyspace.indexes.contains_key(index.2));
    let reader = Reader { engine: &engine, env };
    reader.check(&format!("crash {number}"), &there.collect::<Vec<_>>(), 7);
}

#[test]
fn an_index_finds_every_row_after_a_crash_that_loses_all_that_was_not_synced() {
    let crashes = crashes(|_| CrashRule::LoseUnsynced);
    assert!(crashes.len() > 10);
    crashes
        .iter()
        .enumerate()
        .for_each(|(number, env)| check(number, env));
}

#[test]
fn an_index_finds_every_row_after_a_crash_that_tears() {
    let crashes = crashes(|number| CrashRule::Seeded(number * 7919));
    crashes
        .iter()
        .enumerate()
        .for_each(|(number, env)| check(number, env));
}
