//! Entries read like the rows of any memtable.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::random::Dice;
use ilion_rows::{
    Bound, BoundKind, Clustering, ClusteringFilter, DecoratedKey, DeletionTime, Entry, EntryPlace, KeyBound,
    KeyRange, Liveness, Mutation, Partition, PartitionUpdate, Row, Slice, Values,
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
                    .map(|(key, row)| Entry { value: &key.key, liveness: row.liveness, deletion: row.deletion })
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
