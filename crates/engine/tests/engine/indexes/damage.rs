//! Damage to files of a table and of its indexes: a search gives what it gave, or an error. Hidden tables that are damaged are made anew.
//!
//! One byte of each file is flipped, and it is cut once; with `ILION_ALL_FLIPS` set, every byte is, and it is cut at more places.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ilion_engine::{Engine, EngineOptions, Finding};
use ilion_env::{CrashRule, Env, MemEnv};
use ilion_index::Place;
use ilion_sstable::Version;

use super::table::{INDEXES, create_index, create_table, key, predicate, table, write_row};
use crate::support::{create_keyspace, small_options};

const VALUES: i32 = 5;

#[derive(Clone, Copy, Debug)]
enum Damage {
    Flip(u64),
    Cut(u64),
    Gone,
}

/// What the indexes give for each value; `None` where there was an error.
type Answers = Vec<Option<BTreeSet<String>>>;

fn indexes() -> impl Iterator<Item = (&'static str, ilion_schema::IndexPart, &'static str)> {
    INDEXES
        .into_iter()
        .filter(|(_, _, name)| ["by_v", "sai_v"].contains(name))
}

/// A disk with a table of several partitions, a hidden table and an attached index.
fn disk(options: &EngineOptions) -> (MemEnv, PathBuf) {
    let env = MemEnv::new(17);
    let engine = Engine::open(env.shared(), options.clone()).unwrap();
    engine.alter_schema(&create_keyspace("ks")).unwrap();
    engine.alter_schema(&create_table()).unwrap();
    for index in indexes() {
        engine.alter_schema(&create_index(index)).unwrap();
    }
    for row in 0..60 {
        write_row(&engine, key(&format!("k{}", row % 7), 0), row, row % VALUES, 5);
    }
    engine.wait_idle();
    engine.drain().unwrap();
    let stores = engine.tables();
    let store = stores
        .iter()
        .find(|store| store.schema().name == super::table::TABLE);
    (env.clone(), store.unwrap().directory().to_path_buf())
}

fn place_of(place: &Place) -> String {
    format!("{place:?}")
}

fn search(
    engine: &Engine,
    index: (&str, ilion_schema::IndexPart, &str),
    value: i32,
) -> Option<BTreeSet<String>> {
    let found = engine.index_search(&table(engine), index.2, &predicate(index, value));
    let mut candidates = found.ok()?;
    let mut places = BTreeSet::new();
    while let Some(candidate) = candidates.next().ok()? {
        places.insert(place_of(&candidate.place));
    }
    Some(places)
}

/// Opens the disk and asks; an error where it cannot be opened.
fn answers(env: &MemEnv, options: &EngineOptions) -> Result<Answers, String> {
    let engine = Engine::open(env.shared(), options.clone()).map_err(|error| error.to_string())?;
    engine.wait_idle();
    let asked = indexes().flat_map(|index| (0..VALUES).map(move |value| (index, value)));
    Ok(asked
        .map(|(index, value)| search(&engine, index, value))
        .collect())
}

fn files(env: &MemEnv, directory: &Path) -> Vec<PathBuf> {
    let of = |directory: PathBuf| {
        let entries = env.list(&directory).unwrap().into_iter();
        let files = entries.filter(|entry| !entry.is_dir);
        files
            .map(move |entry| directory.join(entry.name))
            .collect::<Vec<_>>()
    };
    [of(directory.to_path_buf()), of(directory.join(".by_v"))].concat()
}

fn damages(size: u64) -> Vec<Damage> {
    let is_thorough = std::env::var_os("ILION_ALL_FLIPS").is_some();
    let (flips, cuts) = match is_thorough {
        true => ((0..size).collect(), vec![0, size / 2, size.saturating_sub(1)]),
        false => (vec![size * 2 / 3], vec![size / 2]),
    };
    let flips = flips.into_iter().filter(|at| *at < size).map(Damage::Flip);
    flips
        .chain(cuts.into_iter().map(Damage::Cut))
        .chain([Damage::Gone])
        .collect()
}

fn inflict(env: &MemEnv, path: &Path, damage: Damage) {
    match damage {
        Damage::Flip(at) => env.corrupt_byte(path, at, 1 << (at % 8)).unwrap(),
        Damage::Cut(length) => {
            let mut file = env.open_append(path).unwrap();
            file.truncate(length).unwrap();
            file.sync().unwrap();
        }
        Damage::Gone => env.remove_file(path).unwrap(),
    }
}

#[test]
fn damage_to_a_table_or_its_indexes_never_hides_a_row_from_a_search() {
    for (version, finding) in [
        (Version::NB, Finding::TokenMap),
        (Version::NB, Finding::Summary),
        (Version::DA, Finding::TokenMap),
    ] {
        let mut options = small_options();
        options.sstable_version = version;
        options.stays_compatible = version == Version::NB;
        options.finding = finding;
        let (env, directory) = disk(&options);
        let copy = || env.crash(CrashRule::KeepAll);
        let whole = answers(&copy(), &options).unwrap();
        assert!(
            whole
                .iter()
                .all(|found| found.as_ref().is_some_and(|found| found.len() == 12))
        );
        let files = files(&env, &directory);
        let has = |part: &str| files.iter().any(|path| path.to_string_lossy().contains(part));
        assert!(has(".by_v") && has("Terms.db") && has("Checksums.db"));
        for path in &files {
            for damage in damages(env.file_size(path).unwrap()) {
                let damaged = copy();
                inflict(&damaged, path, damage);
                // Refused with a message: as good as an error.
                let Ok(found) = answers(&damaged, &options) else {
                    continue;
                };
                for (found, expected) in found.iter().zip(&whole) {
                    assert!(
                        found.is_none() || found == expected,
                        "{version} {finding:?} {}: {damage:?}",
                        path.display()
                    );
                }
            }
        }
    }
}
