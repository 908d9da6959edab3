//! A power loss interrupts the build of a view. The next start continues it, and in the end the view has exactly the rows of
//! its base, including those written meanwhile.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ilion_engine::{Engine, EngineOptions};
use ilion_env::{CrashRule, MemEnv};
use ilion_query::{ClientState, EngineStore, ExecuteOptions, Outcome, QueryOptions, QueryProcessor};

use crate::store::cluster_facts;

/// More partitions than are built before progress is stored.
const PARTITIONS: i32 = 2300;
/// Number of power losses.
const IMAGES: usize = 6;

fn open(env: &MemEnv) -> QueryProcessor {
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.memtable_shards = 2;
    // Small, so that the log is synced during the build.
    options.commit_log.segment_bytes = 32 << 10;
    let engine = Arc::new(Engine::open(env.shared(), options).unwrap());
    let store = Arc::new(EngineStore::new(engine, cluster_facts()));
    QueryProcessor::new(store, QueryOptions::default())
}

fn run(processor: &QueryProcessor, cql: &str) -> Outcome {
    let executed = processor.query(&mut ClientState::default(), cql, &ExecuteOptions::default());
    executed.unwrap().outcome
}

/// Rows of two ints.
fn pairs(processor: &QueryProcessor, cql: &str) -> BTreeSet<Vec<u8>> {
    match run(processor, cql) {
        Outcome::Rows(rows) => {
            let (count, cells) = (rows.row_count as usize, rows.cells.into_vec());
            let pairs: BTreeSet<Vec<u8>> = cells.chunks(16).map(<[u8]>::to_vec).collect();
            assert_eq!(pairs.len(), count, "no row is there twice");
            pairs
        }
        other => panic!("no rows: {other:?}"),
    }
}

fn check(processor: &QueryProcessor) {
    let base = pairs(processor, "SELECT k, v FROM ks.t");
    let view = pairs(processor, "SELECT k, v FROM ks.by_v");
    assert!(!base.is_empty());
    assert_eq!(view, base);
}

#[test]
fn a_build_that_a_power_loss_interrupts_is_completed_by_the_next_start() {
    let env = MemEnv::new(11);
    let images: Arc<Mutex<Vec<MemEnv>>> = Arc::default();
    let is_watched = Arc::new(AtomicBool::new(false));
    {
        let processor = open(&env);
        run(
            &processor,
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        );
        run(&processor, "CREATE TABLE ks.t (k int PRIMARY KEY, v int)");
        for k in 0..PARTITIONS {
            run(
                &processor,
                &format!("INSERT INTO ks.t (k, v) VALUES ({k}, {})", k % 7),
            );
        }
        let (taken, watched) = (images.clone(), is_watched.clone());
        env.on_sync(move |env, _| {
            if watched.load(Ordering::Acquire) {
                taken.lock().unwrap().push(env.crash(CrashRule::LoseUnsynced));
            }
        });
        is_watched.store(true, Ordering::Release);
        run(
            &processor,
            "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.t WHERE v IS NOT NULL AND k IS NOT NULL PRIMARY KEY (v, k)",
        );
        for k in 0..PARTITIONS {
            match k % 5 {
                0 => run(
                    &processor,
                    &format!(
                        "UPDATE ks.t SET v = {} WHERE k = {}",
                        k % 11,
                        (k * 31) % PARTITIONS
                    ),
                ),
                1 => run(
                    &processor,
                    &format!("DELETE FROM ks.t WHERE k = {}", (k * 17) % PARTITIONS),
                ),
                _ => continue,
            };
        }
        processor.wait_for_views();
        is_watched.store(false, Ordering::Release);
        check(&processor);
    }
    let images = std::mem::take(&mut *images.lock().unwrap());
    assert!(images.len() > IMAGES, "{} power losses", images.len());
    let mut unbuilt = 0;
    for image in images.iter().step_by(images.len() / IMAGES) {
        let processor = open(image);
        if matches!(run(&processor, "SELECT * FROM system_schema.views WHERE keyspace_name = 'ks'"), Outcome::Rows(rows) if rows.row_count == 0)
        {
            continue;
        }
        unbuilt += 1;
        processor.wait_for_views();
        check(&processor);
    }
    assert!(unbuilt > 1, "{unbuilt} power losses after the view was made");
}
