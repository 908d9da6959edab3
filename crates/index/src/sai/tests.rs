//! Tests of storage-attached indexes against a list of rows: every kind of column, every predicate, in memory and in files.

mod hostile;
mod model;
mod options;
mod sasi;
mod tree;

use std::sync::Arc;

use ilion_env::{Env, MemEnv, Seeded};
use ilion_rows::ClusteringComparator;
use ilion_types::Partitioner;

use super::sstable::Writer;
use crate::row_numbers::tests::write_places;
use crate::{
    Attached, Before, Candidates, Place, Predicate, RowChange, RowNumbersFile, SSTableIndex,
    SSTableIndexWriter, SecondaryIndex, Storage,
};
use model::{Model, Target};

const BASE: &str = "nb-1-big-";

fn attached(index: &dyn SecondaryIndex) -> &dyn Attached {
    match index.storage() {
        Storage::Attached(attached) => attached,
        Storage::HiddenTable(_) => panic!("it is attached"),
    }
}

/// Writes the rows of a model and their index, with little memory for sorting.
fn write_sstable(model: &Model, target: &Target, env: &Arc<dyn Env>, memory_bytes: usize) {
    let places: Vec<Place> = model.rows.iter().map(|(place, _)| place.clone()).collect();
    write_places(env, &model.table, Partitioner::Murmur3, &places);
    let indexed = Arc::new(target.indexed(&model.table));
    let name = &target.definition(&model.table).schema.name;
    let mut writer = Box::new(Writer::new(env, BASE, name, &indexed, true, memory_bytes));
    for (number, (place, row)) in model.rows.iter().enumerate() {
        writer.add(number as u32, &place.key, row).unwrap();
    }
    writer.finish().unwrap();
}

fn open_sstable(model: &Model, target: &Target, env: &Arc<dyn Env>) -> Arc<dyn SSTableIndex> {
    let index = target.open(&model.table);
    let rows = RowNumbersFile::open(env, BASE, &model.table, Partitioner::Murmur3).unwrap();
    attached(&*index).open_sstable(env, BASE, Arc::new(rows)).unwrap()
}

fn places_of(candidates: &mut dyn Candidates) -> Vec<Place> {
    let mut places = Vec::new();
    while let Some(candidate) = candidates.next().unwrap() {
        places.push(candidate.place);
    }
    places
}

/// Checks all results of a search, and its results after seeks, against the model.
fn check_search(
    model: &Model,
    expected: &[Place],
    search: &dyn Fn() -> Box<dyn Candidates>,
    random: &mut Seeded,
    what: &str,
) {
    assert_eq!(places_of(&mut *search()), expected, "{what}");
    let comparator = ClusteringComparator::of(&model.table);
    let mut candidates = search();
    let mut left = expected;
    for _ in 0..4 {
        if random.one_in(2) {
            let given = candidates.next().unwrap().map(|candidate| candidate.place);
            assert_eq!(given.as_ref(), left.first(), "{what}");
            left = left.get(1..).unwrap_or_default();
        }
        let target = model.random_place(random);
        candidates.seek(&target).unwrap();
        let passed = left.partition_point(|place| place.compare(&target, &comparator).is_lt());
        left = &left[passed..];
    }
    assert_eq!(places_of(&mut *candidates), left, "{what} after seeks");
}

fn check_all(
    model: &Model,
    target: &Target,
    search: &dyn Fn(&Predicate) -> Box<dyn Candidates>,
    random: &mut Seeded,
) {
    for _ in 0..10 {
        let predicate = target.random_predicate(random);
        let expected = model.matching(target, &predicate);
        let what = format!("{target:?} {predicate:?}");
        check_search(model, &expected, &|| search(&predicate), random, &what);
    }
}

#[test]
fn an_sstable_gives_the_rows_that_match() {
    let mut random = Seeded::new(21);
    for round in 0..3 {
        let count = [3, 100, 500][round];
        let model = Model::new(count, &mut random);
        for target in Target::all() {
            let env = MemEnv::new(1).shared();
            let memory_bytes = if round % 2 == 0 { 1 << 20 } else { 2000 };
            write_sstable(&model, &target, &env, memory_bytes);
            let index = open_sstable(&model, &target, &env);
            let search = |predicate: &Predicate| index.clone().search(predicate).unwrap();
            check_all(&model, &target, &search, &mut random);
        }
    }
}

#[test]
fn an_estimate_counts_the_rows() {
    let mut random = Seeded::new(22);
    let model = Model::new(400, &mut random);
    for target in Target::all() {
        let env = MemEnv::new(1).shared();
        write_sstable(&model, &target, &env, 1 << 20);
        let index = open_sstable(&model, &target, &env);
        let contents = index.contents();
        assert_eq!(contents.rows as usize, model.rows.len());
        assert!(
            contents.terms > 0 && contents.terms <= contents.cells,
            "{contents:?}"
        );
        for _ in 0..10 {
            let predicate = target.random_predicate(&mut random);
            let rows = model.matching(&target, &predicate).len() as u64;
            let estimate = index.estimate(&predicate);
            assert!(estimate.rows >= rows, "{target:?} {predicate:?}");
            // A row with several terms in the range counts for each of them.
            assert!(
                estimate.rows <= rows * 4,
                "{target:?} {predicate:?} {estimate:?} {rows}"
            );
        }
    }
}

#[test]
fn a_memtable_gives_the_rows_that_match_after_any_changes() {
    let mut random = Seeded::new(23);
    for _ in 0..2 {
        let mut model = Model::new(0, &mut random);
        let targets = Target::all();
        let indexes: Vec<_> = targets
            .iter()
            .map(|target| attached(&*target.open(&model.table)).begin_memtable())
            .collect();
        let mut weight = 0;
        for _ in 0..500 {
            let (place, before, after) = model.random_change(&mut random);
            let change = RowChange {
                before: before.as_ref().map(Before::Row),
                after: &after,
            };
            for index in &indexes {
                weight += index.apply(&place.key, change, &mut Vec::new());
            }
        }
        assert!(weight > 0);
        for (target, index) in targets.iter().zip(&indexes) {
            let search = |predicate: &Predicate| index.search(predicate);
            check_all(&model, target, &search, &mut random);
        }
    }
}

#[test]
fn values_that_are_cut_are_found_with_others_like_them() {
    let mut random = Seeded::new(26);
    let mut model = Model::new(200, &mut random);
    let target = Target::named("t");
    let long = |last: u8| [&[b'y'; 2000][..], &[last]].concat();
    for last in [b'a', b'b'] {
        model.set_text(usize::from(last), long(last).into());
    }
    let env = MemEnv::new(1).shared();
    write_sstable(&model, &target, &env, 1 << 20);
    let index = open_sstable(&model, &target, &env);
    let predicate = Predicate::Equal(long(b'a').into());
    let expected = model.matching(&target, &predicate);
    assert_eq!(expected.len(), 1);
    let found = places_of(&mut *index.search(&predicate).unwrap());
    assert!(found.len() == 2 && found.contains(&expected[0]), "{found:?}");
}

#[test]
fn a_row_that_is_written_again_and_again_weighs_little() {
    let mut random = Seeded::new(24);
    let mut model = Model::new(50, &mut random);
    let target = Target::named("t");
    let index = attached(&*target.open(&model.table)).begin_memtable();
    let (mut weight, mut before) = (0, None);
    for round in 0..40_000_u32 {
        let (place, after) = model.set_text(7, round.to_be_bytes().to_vec().into());
        let change = RowChange {
            before: before.as_ref().map(Before::Row),
            after: &after,
        };
        weight += index.apply(&place.key, change, &mut Vec::new());
        before = Some(after);
    }
    assert!((1..1_200_000).contains(&weight), "{weight}");
}

#[test]
fn searches_go_on_while_rows_are_written() {
    let mut random = Seeded::new(25);
    let mut model = Model::new(0, &mut random);
    let target = Target::named("i");
    let index = attached(&*target.open(&model.table)).begin_memtable();
    let apply = |(place, before, after): &(Place, Option<ilion_rows::Row>, ilion_rows::Row)| {
        let change = RowChange {
            before: before.as_ref().map(Before::Row),
            after,
        };
        index.apply(&place.key, change, &mut Vec::new());
    };
    for _ in 0..500 {
        apply(&model.random_change(&mut random));
    }
    let predicate = target.random_predicate(&mut random);
    let before = model.matching(&target, &predicate);
    let changes: Vec<_> = (0..500).map(|_| model.random_change(&mut random)).collect();
    let after = model.matching(&target, &predicate);
    let found = std::thread::scope(|scope| {
        let writer = scope.spawn(|| changes.iter().for_each(&apply));
        let found = places_of(&mut *index.search(&predicate));
        writer.join().unwrap();
        found
    });
    let comparator = ClusteringComparator::of(&model.table);
    assert!(found.is_sorted_by(|a, b| a.compare(b, &comparator).is_lt()));
    for place in before.iter().filter(|place| after.contains(place)) {
        // Some rows were removed and written again meanwhile.
        let is_touched = changes.iter().any(|(changed, ..)| changed == place);
        assert!(is_touched || found.contains(place));
    }
}
