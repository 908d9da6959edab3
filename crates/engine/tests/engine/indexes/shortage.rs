//! Indexes of a table whose flush lacks disk space or descriptors: they find what a scan finds, whatever failed.

use std::sync::Arc;

use ilion_engine::Engine;
use ilion_env::{FaultEnv, MemEnv};
use ilion_schema::IndexPart;

use super::table::{Reader, create_index, create_table, key, table, write_row};
use crate::support::{create_keyspace, small_options};

const BY_V: (&str, IndexPart, &str) = ("v", IndexPart::Simple, "by_v");
const SAI_V: (&str, IndexPart, &str) = ("v", IndexPart::Simple, "sai_v");
const VALUES: i32 = 5;

fn new_faulty(seed: u64) -> (MemEnv, Arc<FaultEnv>, Engine) {
    let env = MemEnv::new(seed);
    let faults = FaultEnv::new(env.shared());
    let engine = Engine::open(faults.clone(), small_options()).unwrap();
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    engine.alter_schema(&create_table()).unwrap();
    (env, faults, engine)
}

fn is_built(engine: &Engine) -> bool {
    let indexes = engine.indexes_of(table(engine).id);
    indexes.iter().all(|index| index.is_built)
}

#[test]
fn whatever_call_of_a_flush_lacks_something_indexes_find_what_a_scan_finds() {
    let (env, faults, engine) = new_faulty(1);
    for index in [BY_V, SAI_V] {
        engine.alter_schema(&create_index(index)).unwrap();
    }
    engine.wait_idle();
    let mut round = 0;
    for (what, when) in [
        ("no_space write", "at"),
        ("no_descriptors any", "at"),
        ("no_descriptors any", "from"),
        ("no_memory open", "from"),
    ] {
        let mut failures = 0;
        for call in 1..400 {
            round += 1;
            write_row(&engine, key("k", round % 3), round, round % VALUES, 10);
            faults.add(&format!("{what} \"*\" {when} {call}")).unwrap();
            let flushed = engine.flush(table(&engine).id);
            faults.clear();
            assert_eq!(engine.failure(), None, "{what} at {call}: {flushed:?}");
            if flushed.is_err() {
                failures = call;
                engine.flush(table(&engine).id).unwrap();
            } else if call > failures + 20 {
                break;
            }
            if round % 7 == 0 {
                let (engine, env) = (&engine, &env);
                Reader { engine, env }.check(&format!("{what} at {call}"), &[BY_V, SAI_V], VALUES);
            }
        }
        assert!(failures > 3, "{what}: {failures}");
    }
    drop(engine);
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    let reader = Reader {
        engine: &engine,
        env: &env,
    };
    reader.check("after a restart", &[BY_V, SAI_V], VALUES);
}

#[test]
fn a_build_that_lacked_disk_space_is_tried_again_by_itself() {
    let (env, faults, engine) = new_faulty(2);
    for round in 0..20 {
        write_row(&engine, key("k", round % 3), round, round % VALUES, 10);
    }
    engine.flush(table(&engine).id).unwrap();
    faults.add("no_space write \"*-Data.db\"").unwrap();
    engine.alter_schema(&create_index(BY_V)).unwrap();
    engine.wait_idle();
    assert!(!is_built(&engine));
    faults.clear();
    while !is_built(&engine) {
        std::thread::yield_now();
    }
    let reader = Reader {
        engine: &engine,
        env: &env,
    };
    reader.check("after the build", &[BY_V], VALUES);
}
