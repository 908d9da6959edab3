//! Snapshots of a table with indexes: put back by hand, a search gives what a scan gives.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use ilion_engine::{Engine, SnapshotOrder};
use ilion_env::{CrashRule, Env, MemEnv};
use ilion_schema::IndexPart;

use super::table::{Reader, create_index, create_table, key, table, write_row};
use crate::support::{create_keyspace, small_options};

const INDEXES: [(&str, IndexPart, &str); 2] = [
    ("v", IndexPart::Simple, "by_v"),
    ("v", IndexPart::Simple, "sai_v"),
];

/// Replaces the files of a directory, and of the directories of hidden tables in it, by those of another one.
fn put_back(env: &MemEnv, from: &Path, to: &Path) {
    for entry in env.list(to).unwrap().into_iter().filter(|entry| !entry.is_dir) {
        env.remove_file(&to.join(entry.name)).unwrap();
    }
    for entry in env.list(from).unwrap() {
        let (from, to) = (from.join(&entry.name), to.join(&entry.name));
        match entry.is_dir {
            true => put_back(env, &from, &to),
            false => env.hard_link(&from, &to).unwrap(),
        }
    }
}

#[test]
fn snapshots_and_truncations_under_writes_have_every_entry_of_their_rows() {
    let env = MemEnv::new(1);
    let engine = Engine::open(env.shared(), small_options()).unwrap();
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    engine.alter_schema(&create_table()).unwrap();
    for index in INDEXES {
        engine.alter_schema(&create_index(index)).unwrap();
    }
    engine.wait_idle();
    let id = table(&engine).id;
    let (is_done, written) = (AtomicBool::new(false), AtomicI32::new(0));
    let wait_for = |count: i32| {
        let until = written.load(Ordering::SeqCst) + count;
        while written.load(Ordering::SeqCst) < until {
            std::thread::yield_now();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Rows get other values, so that entries become stale.
            for round in 0..i32::MAX {
                let k = format!("k{}", round % 7);
                write_row(&engine, key(&k, 0), round % 30, round % 5, i64::from(round) + 1);
                written.store(round, Ordering::SeqCst);
                if is_done.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        for number in 0..4 {
            let order = SnapshotOrder {
                tag: format!("s{number}"),
                tables: vec![id],
                ..SnapshotOrder::default()
            };
            wait_for(20);
            engine.snapshot(&order).unwrap();
            wait_for(20);
            engine.truncate(id).unwrap();
        }
        is_done.store(true, Ordering::SeqCst);
    });
    engine.drain().unwrap();
    let snapshots = engine.snapshots().unwrap();
    assert_eq!(snapshots.len(), 8, "{snapshots:?}");
    drop(engine);
    for facts in snapshots {
        let copy = env.crash(CrashRule::KeepAll);
        let directory = facts.directory.parent().and_then(Path::parent).unwrap();
        put_back(&copy, &facts.directory, directory);
        let engine = Engine::open(copy.shared(), small_options()).unwrap();
        assert_eq!(engine.set_aside(), []);
        let reader = Reader {
            engine: &engine,
            env: &copy,
        };
        reader.check(&facts.tag, &INDEXES, 5);
    }
}
