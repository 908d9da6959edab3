//! Random operations on the engine and on a simple model of it: same answers, with flushes, compactions and restarts in
//! between.

use std::collections::BTreeMap;

use ilion_engine::{CompactionRequest, EngineOptions, Finding, MajorOutput, SSTableVersion};
use ilion_env::Seeded;
use ilion_schema::SchemaChange;
use ilion_types::Token;

use crate::support::{
    Contents, Store, compact_with, delete_partition, delete_range, delete_row, new_store, put, small_options,
};

/// The newest write of each row and the newest deletion that covers it.
#[derive(Default)]
pub struct Model {
    rows: BTreeMap<(String, i32), (i64, String)>,
    deleted: BTreeMap<(String, i32), i64>,
}

const CLUSTERINGS: i32 = 20;

impl Model {
    fn put(&mut self, key: &str, clustering: i32, value: &str, timestamp: i64) {
        let place = (key.to_owned(), clustering);
        let new = (timestamp, value.to_owned());
        // Equal timestamps: the larger value wins.
        if self.rows.get(&place).is_none_or(|old| *old < new) {
            self.rows.insert(place, new);
        }
    }

    fn delete(&mut self, key: &str, clusterings: impl Iterator<Item = i32>, timestamp: i64) {
        for clustering in clusterings {
            let newest = self
                .deleted
                .entry((key.to_owned(), clustering))
                .or_insert(timestamp);
            *newest = timestamp.max(*newest);
        }
    }

    fn contents(&self) -> Contents {
        let mut contents = Contents::new();
        for ((key, clustering), (timestamp, value)) in &self.rows {
            let deleted = self.deleted.get(&(key.clone(), *clustering));
            if deleted.is_none_or(|deleted| deleted < timestamp) {
                contents
                    .entry(key.clone())
                    .or_default()
                    .insert(*clustering, value.clone());
            }
        }
        contents
    }
}

pub fn options(random: &mut Seeded) -> EngineOptions {
    let mut options = small_options();
    options.is_compacting = random.one_in(2);
    options.memtable_shards = 1 + random.below(3) as usize;
    options.compaction_threads = 1 + random.below(3) as usize;
    options.memtable_bytes_max = if random.one_in(2) { 64 << 10 } else { 1 << 20 };
    options.row_cache.bytes_max = if random.one_in(2) { 64 << 10 } else { 0 };
    let versions = [SSTableVersion::NB, SSTableVersion::OA, SSTableVersion::DA];
    options.finding = [Finding::TokenMap, Finding::Summary, Finding::WholeIndex][random.below(3) as usize];
    options.sstable_version = versions[random.below(3) as usize];
    options
}

/// A strategy with random options that are allowed.
pub fn strategy(random: &mut Seeded) -> SchemaChange {
    let mut pick = |choices: &[&'static str]| choices[random.below(choices.len() as u64) as usize];
    let class = pick(&[
        "SizeTieredCompactionStrategy",
        "LeveledCompactionStrategy",
        "TimeWindowCompactionStrategy",
        "UnifiedCompactionStrategy",
    ]);
    let mut options = vec![("class", class)];
    match class {
        "UnifiedCompactionStrategy" => {
            options.push(("scaling_parameters", pick(&["T4", "L4", "N", "T2", "T4, L3"])));
            options.push(("base_shard_count", pick(&["1", "3", "8"])));
            options.push(("min_sstable_size", pick(&["0B", "100MiB"])));
            options.push((
                "overlap_inclusion_method",
                pick(&["none", "single", "transitive"]),
            ));
        }
        "LeveledCompactionStrategy" => {
            options.push(("sstable_size_in_mb", "1"));
            options.push(("fanout_size", pick(&["2", "10"])));
        }
        _ => {
            options.push(("min_threshold", pick(&["2", "3", "4"])));
            options.push(("max_threshold", pick(&["4", "32"])));
        }
    }
    options.push(("unchecked_tombstone_compaction", pick(&["true", "false"])));
    options.push(("tombstone_compaction_interval", "0"));
    compact_with(&options)
}

/// Something of what an operator may ask for.
fn request(random: &mut Seeded, store: &Store) -> CompactionRequest {
    match random.below(4) {
        0 => CompactionRequest::Major(MajorOutput::AsUsual),
        1 => CompactionRequest::Major(MajorOutput::Split),
        2 => {
            let mut token = || Token::Murmur3(random.next_u64().cast_signed());
            CompactionRequest::Range(token(), token())
        }
        _ => {
            let is_chosen = |_: &String| random.one_in(2);
            CompactionRequest::Files(
                store
                    .files()
                    .into_iter()
                    .filter(is_chosen)
                    .map(Into::into)
                    .collect(),
            )
        }
    }
}

pub fn step(random: &mut Seeded, store: &Store, model: &mut Model) {
    let table = store.table();
    let key = format!("k{}", random.below(6));
    let clustering = random.below(CLUSTERINGS as u64) as i32;
    let timestamp = random.below(200) as i64;
    match random.below(20) {
        0 => {
            store.write(delete_partition(&table, &key, timestamp));
            model.delete(&key, 0..CLUSTERINGS, timestamp);
        }
        1 | 2 => {
            store.write(delete_row(&table, &key, clustering, timestamp));
            model.delete(&key, clustering..=clustering, timestamp);
        }
        3 | 4 => {
            let end = clustering + random.below(6) as i32;
            store.write(delete_range(&table, &key, clustering, end, timestamp));
            model.delete(&key, clustering..=end, timestamp);
        }
        _ => {
            let value = format!("v{}", random.below(1000));
            store.write(put(&table, &key, clustering, &value, timestamp));
            model.put(&key, clustering, &value, timestamp);
        }
    }
}

pub fn check(seed: u64, store: &Store, model: &Model) {
    let expected = model.contents();
    assert_eq!(store.contents(), expected, "seed {seed}: scan");
    for key in (0..6).map(|number| format!("k{number}")) {
        let rows: Vec<_> = expected
            .get(&key)
            .cloned()
            .unwrap_or_default()
            .into_iter()
            .collect();
        assert_eq!(store.partition(&key, false), rows, "seed {seed}: {key}");
        for (clustering, value) in &rows {
            let row = store.row(&key, *clustering);
            assert_eq!(row.as_ref(), Some(value), "seed {seed}: {key} {clustering}");
        }
        let missing = (0..CLUSTERINGS).find(|at| rows.iter().all(|(clustering, _)| clustering != at));
        let nothing = missing.and_then(|clustering| store.row(&key, clustering));
        assert_eq!(nothing, None, "seed {seed}: {key} {missing:?}");
        let reversed: Vec<_> = rows.into_iter().rev().collect();
        assert_eq!(
            store.partition(&key, true),
            reversed,
            "seed {seed}: {key} reversed"
        );
    }
}

fn run(seed: u64, steps: u64) {
    let random = &mut Seeded::new(seed);
    let mut store = new_store(seed, options(random));
    store.engine.alter_schema(&strategy(random)).unwrap();
    let mut model = Model::default();
    for _ in 0..steps {
        match random.below(60) {
            0 => store.flush(),
            1 => match store
                .engine
                .compact_as(store.table().id, &request(random, &store))
            {
                // The background has compacted a file away meanwhile.
                Err(ilion_engine::Error::Refused(_)) | Ok(_) => {}
                Err(error) => panic!("seed {seed}: {error}"),
            },
            2 => store = store.restart(options(random)),
            3 => check(seed, &store, &model),
            5 if random.one_in(2) => {
                // The same options again change nothing.
                store.engine.alter_schema(&strategy(random)).unwrap();
            }
            4 if random.one_in(4) => {
                store.engine.truncate(store.table().id).unwrap();
                model = Model::default();
            }
            _ => step(random, &store, &mut model),
        }
    }
    check(seed, &store, &model);
}

#[test]
fn the_engine_answers_as_a_map_would() {
    for seed in 0..10 {
        run(seed, 300);
    }
}
