//! Partitions with many deleted rows: reads skip them, and still return every living row.

use std::collections::BTreeMap;

use ilion_engine::{CompactionRequest, MajorOutput};
use ilion_rows::random::Dice;
use ilion_rows::{
    Bound, BoundKind, ClusteringFilter, Cursor, Mutation, ReadLaw, ReadPurge, Slice, Unfiltered,
};

use crate::support::{
    Store, clustering_of, decorated, delete_partition, delete_range, delete_row, new_store, put,
    small_options,
};

const KEY: &str = "queue";

/// One mutation with the rows of all these, which have the same key.
fn together(mutations: impl Iterator<Item = Mutation>) -> Option<Mutation> {
    mutations.reduce(|mut all, one| {
        all.update.rows.extend(one.update.rows);
        all
    })
}

/// Reads the first row of the partition; returns it, and the number of tombstones that the read met.
fn first(store: &Store, filter: &ClusteringFilter) -> (Option<i32>, u64) {
    let table = store.table();
    let cursor = store.engine.read_partition(&table, &decorated(KEY), filter);
    let mut purged = ReadPurge::new(cursor.unwrap(), table, ReadLaw::without_limits(1_700_000_000));
    purged.next_partition().unwrap();
    let row = purged.next_unfiltered().unwrap().map(|unfiltered| {
        let Unfiltered::Row(row) = unfiltered else {
            panic!("a read of living rows returned {unfiltered:?}");
        };
        let value = row.clustering.values()[0].clone().unwrap();
        i32::from_be_bytes(value[..].try_into().unwrap())
    });
    (row, purged.counts().tombstones)
}

/// Entries are inserted at the end and deleted at the beginning, five are waiting; the memtable is flushed nine times meanwhile. However many
/// were deleted, a read of the oldest meets few tombstones.
#[test]
fn the_oldest_entry_of_a_queue_is_found_behind_few_tombstones() {
    let store = new_store(1, small_options());
    let table = store.table();
    let all = ClusteringFilter::all();
    let after_zero = ClusteringFilter {
        slices: vec![Slice {
            start: Bound::new(BoundKind::ExclStart, clustering_of(0).values().clone()),
            end: Bound::top(),
        }],
        ..ClusteringFilter::all()
    };
    for round in 0..10 {
        let entries = round * 1_000..(round + 1) * 1_000;
        let puts = entries.clone().map(|entry| put(&table, KEY, entry + 5, "v", 1));
        store.write(together(puts).unwrap());
        let deletes = entries.map(|entry| delete_row(&table, KEY, entry, 2));
        store.write(together(deletes).unwrap());
        for filter in [&all, &after_zero] {
            let (oldest, tombstones) = first(&store, filter);
            assert_eq!(oldest, Some((round + 1) * 1_000));
            // In each of the ten sources: four before the jump, and the five that waited when the source before was flushed.
            assert!(tombstones <= 90, "{tombstones} tombstones in round {round}");
        }
        if round < 9 {
            store.flush();
        }
    }
    assert_eq!(store.sstables(), 9);
}

/// The newest entry is read and deleted, in memory and in an SSTable.
#[test]
fn the_newest_entry_of_a_stack_is_found_behind_few_tombstones() {
    let store = new_store(1, small_options());
    let table = store.table();
    let puts = (0..9_000).map(|entry| put(&table, KEY, entry, "v", 1));
    store.write(together(puts).unwrap());
    let deletes = (500..9_000).map(|entry| delete_row(&table, KEY, entry, 2));
    store.write(together(deletes).unwrap());
    let reversed = ClusteringFilter {
        reversed: true,
        ..ClusteringFilter::all()
    };
    assert_eq!(first(&store, &reversed), (Some(499), 4));
    store.flush();
    assert_eq!(first(&store, &reversed), (Some(499), 4));
}

/// What the partition must have.
#[derive(Default)]
struct Model {
    /// Timestamp and value of each row that was put.
    rows: BTreeMap<i32, (i64, String)>,
    /// Timestamp of the newest deletion of each row.
    deleted: BTreeMap<i32, i64>,
    ranges: Vec<(i32, i32, i64)>,
}

impl Model {
    fn put(&mut self, row: i32, value: &str, at: i64) {
        let known = self.rows.entry(row).or_insert((i64::MIN, String::new()));
        *known = known.clone().max((at, value.to_owned()));
    }

    fn delete(&mut self, row: i32, at: i64) {
        let known = self.deleted.entry(row).or_insert(i64::MIN);
        *known = at.max(*known);
    }

    fn is_living(&self, row: i32, at: i64) -> bool {
        let is_newer = |deletion: i64| at > deletion;
        self.deleted.get(&row).is_none_or(|deleted| is_newer(*deleted))
            && self
                .ranges
                .iter()
                .all(|(start, end, deletion)| !(*start..=*end).contains(&row) || is_newer(*deletion))
    }

    fn living(&self, from: i32, to: i32) -> Vec<(i32, String)> {
        let rows = self.rows.range(from..to);
        let living = rows.filter(|(row, (at, _))| self.is_living(**row, *at));
        living.map(|(row, (_, value))| (*row, value.clone())).collect()
    }
}

/// A change of a stretch of rows.
fn change(store: &Store, model: &mut Model, dice: &mut Dice) {
    let table = store.table();
    let number = |dice: &mut Dice, end: usize| i32::try_from(dice.below(end)).unwrap();
    let (start, length) = (number(dice, 3_000), 1 + number(dice, 900));
    let step = *dice.pick(&[1, 1, 1, 2, 7]);
    let rows = (start..start + length).step_by(step);
    let at = i64::from(number(dice, 40));
    match dice.below(10) {
        0..4 => {
            let value = format!("{}", dice.below(1_000));
            rows.clone().for_each(|row| model.put(row, &value, at));
            store.write(together(rows.map(|row| put(&table, KEY, row, &value, at))).unwrap());
        }
        4..9 => {
            rows.clone().for_each(|row| model.delete(row, at));
            store.write(together(rows.map(|row| delete_row(&table, KEY, row, at))).unwrap());
        }
        _ if dice.one_in(3) => {
            model.ranges.push((i32::MIN, i32::MAX, at));
            store.write(delete_partition(&table, KEY, at));
        }
        _ => {
            model.ranges.push((start, start + length, at));
            store.write(delete_range(&table, KEY, start, start + length, at));
        }
    }
}

/// Stretches of rows are put and deleted in any order of time, in memory and in SSTables that overlap; slices are read in both
/// directions.
#[test]
fn a_read_that_skips_deleted_rows_returns_all_others() {
    for seed in 0..20 {
        let dice = &mut Dice::new(seed);
        let store = new_store(seed, small_options());
        let mut model = Model::default();
        for _ in 0..14 {
            change(&store, &mut model, dice);
            match dice.below(6) {
                0 | 1 => store.flush(),
                2 if dice.one_in(2) => {
                    store
                        .engine
                        .compact_as(store.table().id, &CompactionRequest::Major(MajorOutput::AsUsual))
                        .unwrap();
                }
                _ => {}
            }
            for _ in 0..4 {
                let mut bounds = [(); 2].map(|()| i32::try_from(dice.below(4_000)).unwrap());
                bounds.sort_unstable();
                let [from, to] = bounds;
                let bound = |kind, row: i32| Bound::new(kind, clustering_of(row).values().clone());
                let slice = Slice {
                    start: bound(BoundKind::InclStart, from),
                    end: bound(BoundKind::ExclEnd, to),
                };
                let (slices, from, to) = match dice.one_in(3) {
                    true => (vec![Slice::all()], i32::MIN, i32::MAX),
                    false => (vec![slice], from, to),
                };
                let filter = ClusteringFilter {
                    slices,
                    reversed: dice.one_in(2),
                    ..ClusteringFilter::all()
                };
                let mut expected = model.living(from, to);
                if filter.reversed {
                    expected.reverse();
                }
                assert_eq!(store.rows(KEY, &filter), expected, "seed {seed}: {filter:?}");
            }
        }
        let contents = store.contents().remove(KEY).unwrap_or_default();
        let expected: BTreeMap<i32, String> = model.living(i32::MIN, i32::MAX).into_iter().collect();
        assert_eq!(contents, expected, "seed {seed}");
    }
}
