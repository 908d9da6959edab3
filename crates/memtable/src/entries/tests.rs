//! Entries read like the rows of any memtable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::random::Dice;
use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringFilter, Cursor, DecoratedKey, DeletionTime, Entry, EntryPlace,
    KeyBound, KeyRange, Liveness, Mutation, Partition, PartitionUpdate, Row, Slice, Unfiltered, Values,
};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, KeyOrder, Partitioner, Uuid};
use proptest::prelude::*;

use crate::Memtable;

/// With an order of keys it is a hidden table, and else any table.
fn table(order: Option<KeyOrder>, partitioner: Partitioner) -> Arc<TableSchema> {
    let mut builder = TableBuilder::new("ks", "t.by_v", TableId(Uuid::nil()))
        .partition_key("v", CqlType::Text)
        .clustering(
            "partition_key",
            CqlType::partition_keys(partitioner),
            ClusteringOrder::Asc,
        )
        .clustering("c", CqlType::Int, ClusteringOrder::Desc);
    builder.key_order = order;
    builder.build()
}

fn random_values(dice: &mut Dice, max: usize) -> Values {
    let mut values = Values::new();
    let key = Bytes::from(vec![b'k'; 1 + dice.below(4)]);
    values.push(Some(key));
    let number = i32::try_from(dice.below(max)).unwrap() - 3;
    let number = Bytes::copy_from_slice(&number.to_be_bytes());
    values.push((dice.below(9) > 0).then_some(number));
    values
}

fn random_key(dice: &mut Dice, order: KeyOrder) -> DecoratedKey {
    let value = ["", "a", "a\0", "ab", "abcdefghij", "abcdefghik", "z"][dice.below(7)];
    DecoratedKey::new(Partitioner::Ordered(order), Bytes::from_static(value.as_bytes()))
}

fn random_row(dice: &mut Dice) -> Row {
    let mut row = Row::empty(Clustering::new(random_values(dice, 8)));
    let micros = i64::try_from(dice.below(20)).unwrap();
    match dice.below(4) {
        0 => row.deletion = DeletionTime::new(micros, 7),
        1 => {
            row.liveness = Liveness {
                timestamp_micros: micros,
                ttl_secs: 60,
                expires_secs: 1000,
            }
        }
        _ => row.liveness = Liveness::live(micros),
    }
    row
}

fn random_filter(dice: &mut Dice) -> ClusteringFilter {
    let mut cut = || {
        let mut values = random_values(dice, 10);
        values.truncate(1 + dice.below(2));
        let kind = [BoundKind::InclStart, BoundKind::ExclStart][dice.below(2)];
        Bound::new(kind, values)
    };
    let (a, b) = (cut(), cut());
    let slices = match dice.below(3) {
        0 => vec![Slice::all()],
        1 => vec![Slice {
            start: a,
            end: Bound::top(),
        }],
        // In both tables these come in any order, and may have nothing in them.
        _ => vec![Slice {
            start: a,
            end: b.invert(),
        }],
    };
    ClusteringFilter {
        slices,
        reversed: dice.below(2) == 0,
        ..ClusteringFilter::all()
    }
}

fn random_bound(dice: &mut Dice, order: KeyOrder, end: KeyBound) -> KeyBound {
    let key = random_key(dice, order);
    match dice.below(5) {
        0 => KeyBound::Before(key),
        1 => KeyBound::After(key),
        2 => KeyBound::BeforeToken(key.token),
        3 => KeyBound::AfterToken(key.token),
        _ => end,
    }
}

fn read(memtable: &Arc<Memtable>, range: &KeyRange, filter: &ClusteringFilter) -> Vec<Partition> {
    let mut cursor = memtable.cursor(range.clone(), Arc::new(filter.clone()));
    std::iter::from_fn(|| Partition::read_next(&mut cursor).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn entries_read_like_rows(
        seed in any::<u64>(),
        count in 0_usize..1500,
        partitioner in prop::sample::select(vec![Partitioner::Murmur3, Partitioner::ByteOrdered, Partitioner::Random]),
    ) {
        let order = KeyOrder::of(CqlType::Text, false);
        let (hidden, plain) = (table(Some(order), partitioner), table(None, partitioner));
        let memtable = Arc::new(Memtable::new(hidden.clone(), 3));
        let model = Arc::new(Memtable::new(plain.clone(), 1));
        prop_assert!(memtable.entries().is_some() && model.entries().is_none());
        let mut dice = Dice::new(seed);
        let (mut grown, mut scratch) = (0, b"what was there before".to_vec());
        for _ in 0..count {
            let mutation = |table: &Arc<TableSchema>, key: DecoratedKey, row: Row| Mutation {
                table: table.clone(),
                key,
                update: PartitionUpdate { rows: vec![row], ..PartitionUpdate::default() },
            };
            let (key, row) = (random_key(&mut dice, order), random_row(&mut dice));
            if dice.below(3) > 0 {
                grown += memtable.apply(&mutation(&hidden, key.clone(), row.clone()));
                model.apply(&mutation(&plain, key, row));
            } else {
                // Some of one place together, as an index tells them.
                let others: Vec<(DecoratedKey, Row)> = (0..dice.below(4))
                    .map(|_| (random_key(&mut dice, order), random_row(&mut dice)))
                    .collect();
                let clustering: Vec<Option<&[u8]>> =
                    row.clustering.values().iter().map(Option::as_deref).collect();
                let place = EntryPlace {
                    key_token: &partitioner.token(clustering[0].unwrap()),
                    clustering: &clustering,
                };
                let entries: Vec<Entry<'_>> = others
                    .iter()
                    .map(|(key, row)| Entry {
                        value: &key.key,
                        liveness: row.liveness,
                        deletion: row.deletion,
                        is_first: false,
                    })
                    .collect();
                grown += memtable.apply_entries(&place, &entries, &mut scratch);
                for entry in entries {
                    let mutation = entry.to_mutation(&place, &hidden);
                    model.apply(&Mutation { table: plain.clone(), ..mutation });
                }
            }
            if dice.below(60) == 0 {
                let range = KeyRange {
                    start: random_bound(&mut dice, order, KeyBound::Start),
                    end: random_bound(&mut dice, order, KeyBound::End),
                };
                let filter = random_filter(&mut dice);
                prop_assert_eq!(read(&memtable, &range, &filter), read(&model, &range, &filter));
                let (key, filter) = (random_key(&mut dice, order), Arc::new(random_filter(&mut dice)));
                let one = |memtable: &Arc<Memtable>| memtable
                    .partition(&key, &filter)
                    .and_then(|mut cursor| Partition::read_next(&mut cursor).unwrap());
                prop_assert_eq!(one(&memtable), one(&model));
            }
        }
        prop_assert_eq!(grown, memtable.size_bytes().cast_signed());
        let (known, here) = (model.statistics(), memtable.statistics());
        prop_assert_eq!(here.partitions, known.partitions);
        prop_assert_eq!(here.operations, known.operations);
        prop_assert_eq!(here.min_timestamp_micros, known.min_timestamp_micros);
        prop_assert_eq!(here.max_timestamp_micros, known.max_timestamp_micros);
    }
}

/// Entries by value and base key, with their timestamps.
type ByValue = BTreeMap<(Bytes, Bytes), i64>;

/// A memtable of a hidden table, changed as an index changes it: a row gets another value, or the same one again.
struct Statuses {
    memtable: Arc<Memtable>,
    /// The value of each row, with its timestamp.
    rows: BTreeMap<u32, (&'static str, i64)>,
    /// Entries that were not added here, but removed.
    foreign: BTreeSet<(Bytes, Bytes)>,
}

impl Statuses {
    fn new() -> Self {
        let order = KeyOrder::of(CqlType::Text, false);
        Self {
            memtable: Arc::new(Memtable::new(table(Some(order), Partitioner::Murmur3), 2)),
            rows: BTreeMap::new(),
            foreign: BTreeSet::new(),
        }
    }

    fn apply(&self, row: u32, entries: &[Entry<'_>]) {
        let (key, value) = (row.to_be_bytes(), 7_i32.to_be_bytes());
        let place = EntryPlace {
            key_token: &Partitioner::Murmur3.token(&key),
            clustering: &[Some(&key), Some(&value)],
        };
        self.memtable.apply_entries(&place, entries, &mut Vec::new());
    }

    fn set(&mut self, row: u32, value: &'static str, micros: i64) {
        let before = self.rows.insert(row, (value, micros));
        let added = Entry {
            is_first: before.is_none_or(|(before, _)| before != value),
            ..Entry::added(value.as_bytes(), Liveness::live(micros))
        };
        match before.filter(|(before, _)| *before != value) {
            None => self.apply(row, &[added]),
            Some((before, at)) => {
                let removed = Entry::removed(before.as_bytes(), DeletionTime::new(at, 5));
                self.apply(row, &[added, removed]);
            }
        }
    }

    /// Removes an entry that an SSTable has.
    fn remove_foreign(&mut self, row: u32, value: &'static str) {
        self.apply(row, &[Entry::removed(value.as_bytes(), DeletionTime::new(0, 5))]);
        let place = (Bytes::from(value), Bytes::copy_from_slice(&row.to_be_bytes()));
        self.foreign.insert(place);
    }

    fn expected(&self) -> ByValue {
        let place = |row: &u32, value| {
            (
                Bytes::from_static(value),
                Bytes::copy_from_slice(&row.to_be_bytes()),
            )
        };
        let rows = self.rows.iter();
        rows.map(|(row, (value, micros))| (place(row, value.as_bytes()), *micros))
            .collect()
    }

    /// The living entries. If `skips`, deleted ones before a bound are skipped after each entry that is read.
    fn read(&self, skips: bool, before: Option<&Bound>) -> ByValue {
        let filter = Arc::new(ClusteringFilter::all());
        let mut cursor = self.memtable.cursor(KeyRange::all(), filter);
        let mut found = ByValue::new();
        while let Some(head) = cursor.next_partition().unwrap() {
            while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
                let Unfiltered::Row(row) = unfiltered else {
                    panic!("entries are rows");
                };
                let key = row.clustering.values()[0].clone().unwrap();
                if !row.liveness.is_none() {
                    found.insert((head.key.key.clone(), key), row.liveness.timestamp_micros);
                }
                if skips {
                    cursor.skip_deleted(before).unwrap();
                }
            }
        }
        found
    }

    /// What a flush writes: living entries, and deletions.
    fn flush(&self, may_be_older: bool) -> (ByValue, BTreeSet<(Bytes, Bytes)>) {
        let mut entries = self.memtable.entries_in_order(|_| may_be_older).unwrap();
        let (mut living, mut deleted) = (ByValue::new(), BTreeSet::new());
        while let Some(value) = entries.next_partition() {
            let before = living.len() + deleted.len();
            while let Some(entry) = entries.next_entry() {
                let key = Bytes::copy_from_slice(entry.clustering[0].unwrap());
                let place = (value.key.clone(), key);
                if entry.liveness.is_none() {
                    deleted.insert(place);
                } else {
                    living.insert(place, entry.liveness.timestamp_micros);
                }
            }
            assert!(living.len() + deleted.len() > before, "a partition has entries");
        }
        (living, deleted)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn removed_entries_are_skipped_and_written_only_if_an_sstable_may_have_them(
        seed in any::<u64>(),
        rows in prop::sample::select(vec![5_usize, 300, 100_000]),
        count in 0_usize..6000,
        reads_every in prop::sample::select(vec![50_usize, 1000]),
    ) {
        let mut dice = Dice::new(seed);
        let mut statuses = Statuses::new();
        // Entries that are there, or were.
        let mut known = BTreeSet::new();
        for step in 0..count {
            let row = u32::try_from(dice.below(rows)).unwrap();
            let value = ["new", "busy", "done"][dice.below(3)];
            match dice.below(10) {
                // Rows that the memtable does not know.
                0 => statuses.remove_foreign(row + 1_000_000, value),
                _ => {
                    statuses.set(row, value, i64::try_from(step + 1).unwrap());
                    known.insert((Bytes::from(value), Bytes::copy_from_slice(&row.to_be_bytes())));
                }
            }
            if dice.below(reads_every) == 0 {
                let expected = statuses.expected();
                let bound = Bound::new(BoundKind::InclEnd, random_values(&mut dice, 8));
                prop_assert_eq!(statuses.read(false, None), expected.clone());
                prop_assert_eq!(statuses.read(true, None), expected.clone());
                prop_assert_eq!(statuses.read(true, Some(&bound)), expected);
            }
        }
        let expected = statuses.expected();
        let (living, deleted) = statuses.flush(false);
        prop_assert_eq!(&living, &expected);
        prop_assert_eq!(&deleted, &statuses.foreign);
        let (living, deleted) = statuses.flush(true);
        prop_assert_eq!(&living, &expected);
        let gone = known.into_iter().filter(|place| !expected.contains_key(place));
        prop_assert_eq!(deleted, gone.chain(statuses.foreign).collect::<BTreeSet<_>>());
    }
}

#[test]
fn partitions_are_counted_about_right() {
    let mut distinct = super::Distinct::default();
    for (count, value) in (1..=100_000_u64).enumerate() {
        for _ in 0..2 {
            let bytes = value.to_be_bytes();
            distinct.see(super::scattered(value, &bytes));
        }
        let count = count + 1;
        if [10, 100, 1000, 10_000, 100_000].contains(&count) {
            let error = distinct.estimate().abs_diff(count) * 100 / count;
            assert!(error <= 20, "{} for {count}", distinct.estimate());
        }
    }
}
