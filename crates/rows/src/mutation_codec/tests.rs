use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{ClusteringOrder, ColumnKind, DroppedColumn, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner, Uuid};
use proptest::prelude::*;

use super::{Decoded, MutationReader, decode_mutation, encode_mutation, peek_place};
use crate::random::{Dice, random_mutation, random_table};
use crate::{Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, Mutation, PartitionUpdate, Row};

fn encode(mutation: &Mutation) -> Bytes {
    let mut out = Vec::new();
    encode_mutation(mutation, &mut out);
    Bytes::from(out)
}

fn decode(record: &Bytes, table: &Arc<TableSchema>) -> Mutation {
    match decode_mutation(record, &|id| (id == table.id).then(|| table.clone())).unwrap() {
        Decoded::Mutation(mutation) => mutation,
        Decoded::NoSuchTable(id) => panic!("table {id} is there"),
    }
}

fn users() -> TableBuilder {
    TableBuilder::new("ks", "users", TableId(Uuid::from_u128(7)))
        .partition_key("k", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .regular("name", CqlType::Text)
        .regular("age", CqlType::Int)
}

fn insert(table: &Arc<TableSchema>, cells: &[(&str, &'static str)], micros: i64) -> Mutation {
    let mut row = Row::empty(Clustering::of([Bytes::from_static(&[0, 0, 0, 1])]));
    row.liveness = Liveness::live(micros);
    for (name, value) in cells {
        row.columns.push(ColumnData {
            column: table.column_named(name).unwrap().id,
            data: Data::Simple(Cell::live(micros, Bytes::from_static(value.as_bytes()))),
        });
    }
    row.columns.sort_by_key(|entry| entry.column);
    Mutation {
        table: table.clone(),
        key: DecoratedKey::new(Partitioner::Murmur3, Bytes::from_static(&[0, 0, 0, 9])),
        update: PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_encoded_is_decoded(seed: u64) {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let written: Vec<Mutation> = (0..3).map(|_| random_mutation(&table, &mut dice)).collect();
        let mut record = Vec::new();
        written.iter().for_each(|mutation| encode_mutation(mutation, &mut record));
        let mut reader = MutationReader::new(Bytes::from(record));
        for expected in &written {
            prop_assert_eq!(peek_place(&encode(expected)), Some((table.id, expected.key.token.code())));
            match reader.next_mutation(&|_| Some(table.clone())).unwrap() {
                Some(Decoded::Mutation(read)) => {
                    prop_assert_eq!(&read.key, &expected.key);
                    prop_assert_eq!(&read.update, &expected.update);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
        prop_assert!(reader.next_mutation(&|_| Some(table.clone())).unwrap().is_none());
    }

    #[test]
    fn a_reader_that_goes_on_reads_as_a_new_one(seed: u64) {
        let mut dice = Dice::new(seed);
        let tables = [random_table(&mut dice), random_table(&mut dice)];
        let mut reader = MutationReader::new(Bytes::new());
        let mut last: Option<Mutation> = None;
        for _ in 0..20 {
            let mutation = match last.take().filter(|_| dice.one_in(2)) {
                // The same columns in another row.
                Some(mut last) => {
                    last.key = random_mutation(&last.table, &mut dice).key;
                    last
                }
                None => random_mutation(&tables[dice.below(2)], &mut dice),
            };
            let mut record = encode(&mutation).to_vec();
            let is_damaged = dice.one_in(4);
            if is_damaged {
                let at = 30 + dice.below(record.len() - 30);
                record[at] ^= 1 << dice.below(8);
            }
            let record = Bytes::from(record);
            let resolve = |_| Some(mutation.table.clone());
            reader.restart(record.clone());
            let (new, again) = (decode_mutation(&record, &resolve), reader.next_mutation(&resolve));
            match (new, again) {
                (Ok(Decoded::Mutation(new)), Ok(Some(Decoded::Mutation(again)))) => {
                    prop_assert_eq!((new.key, new.update), (again.key, again.update));
                }
                (Err(new), Err(again)) => prop_assert_eq!(new, again),
                other => prop_assert!(false, "{:?}", other),
            }
            last = Some(mutation);
        }
    }

    #[test]
    fn hostile_bytes_give_errors_or_mutations_in_order(seed: u64) {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let mut record = encode(&random_mutation(&table, &mut dice)).to_vec();
        for _ in 0..1 + dice.below(4) {
            let at = dice.below(record.len());
            match dice.below(4) {
                0 => record.truncate(at.max(1)),
                1 => record[at] = 0xFF,
                2 => record[at] ^= 1 << dice.below(8),
                _ => record.insert(at, dice.byte()),
            }
        }
        if let Some(body) = record.len().checked_sub(4) && dice.one_in(2) {
            record[..4].copy_from_slice(&u32::try_from(body).unwrap().to_be_bytes());
        }
        let record = Bytes::from(record);
        let place = peek_place(&record);
        if let Ok(Decoded::Mutation(read)) = decode_mutation(&record, &|_| Some(table.clone())) {
            prop_assert_eq!(place.map(|(_, code)| code), Some(read.key.token.code()));
            for row in &read.update.rows {
                prop_assert!(row.columns.is_sorted_by(|a, b| a.column < b.column));
                prop_assert_eq!(row.clustering.values().len(), table.clustering().len());
            }
        }
    }
}

#[test]
fn a_small_insert_is_small() {
    let table = users().build();
    let record = encode(&insert(
        &table,
        &[("name", "ann"), ("age", "\0\0\0\x2A")],
        1_700_000_000_000_000,
    ));
    let names = 2 * 2 + "name".len() + "age".len();
    let head = 4 + 1 + 16 + 1 + 8 + 5 + 1 + 1 + names + 1;
    let row = 1 + 5 + 1 + (1 + 1 + 3) + (1 + 1 + 4);
    assert_eq!(record.len(), head + row);
}

#[test]
fn columns_are_found_by_name_whatever_their_ids() {
    let before = users().build();
    let after = TableBuilder::new("ks", "users", before.id)
        .regular("age", CqlType::Int)
        .partition_key("k", CqlType::Int)
        .regular("name", CqlType::Text)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .build();
    let cells = [("name", "ann"), ("age", "\0\0\0\x2A")];
    let record = encode(&insert(&before, &cells, 5));
    assert_eq!(decode(&record, &after).update, insert(&after, &cells, 5).update);
}

#[test]
fn a_column_that_is_gone_is_skipped() {
    let before = users().build();
    let record = encode(&insert(&before, &[("name", "ann"), ("age", "\0\0\0\x2A")], 5));
    let without = before.to_builder().remove("age").build();
    assert_eq!(
        decode(&record, &without).update,
        insert(&before, &[("name", "ann")], 5).update
    );
    let now_static = before
        .to_builder()
        .remove("age")
        .static_column("age", CqlType::Int)
        .build();
    assert_eq!(
        decode(&record, &now_static).update,
        insert(&before, &[("name", "ann")], 5).update
    );
}

#[test]
fn cells_older_than_a_drop_stay_dropped_when_the_name_is_used_again() {
    let before = users().build();
    let mut again = before.to_builder().remove("age").regular("age", CqlType::Int);
    again.dropped.insert(
        "age".to_owned(),
        DroppedColumn {
            name: "age".to_owned(),
            kind: ColumnKind::Regular,
            ty: CqlType::Int,
            dropped_micros: 10,
        },
    );
    let again = again.build();
    let age = [("age", "\0\0\0\x2A")];
    let cells_at = |micros| {
        let record = encode(&insert(&before, &age, micros));
        // A mutation in memory has no other cells than one that was encoded.
        let mut new = insert(&again, &age, micros);
        let read_back = decode(&encode(&new), &again);
        new.remove_dropped();
        assert_eq!(new.update, read_back.update);
        decode(&record, &again).update.rows[0].columns.len()
    };
    assert_eq!(cells_at(10), 0);
    assert_eq!(cells_at(11), 1);
}

#[test]
fn a_table_that_is_gone_is_reported_and_the_next_mutation_read() {
    let gone = TableBuilder::new("ks", "gone", TableId(Uuid::from_u128(1)))
        .partition_key("k", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .regular("v", CqlType::Int)
        .build();
    let table = users().build();
    let mut record = Vec::new();
    encode_mutation(&insert(&gone, &[("v", "\0\0\0\0")], 1), &mut record);
    encode_mutation(&insert(&table, &[("name", "ann")], 1), &mut record);
    let mut reader = MutationReader::new(Bytes::from(record));
    let resolve = |id| (id == table.id).then(|| table.clone());
    let first = reader.next_mutation(&resolve).unwrap();
    assert!(matches!(first, Some(Decoded::NoSuchTable(id)) if id == gone.id));
    assert!(matches!(
        reader.next_mutation(&resolve).unwrap(),
        Some(Decoded::Mutation(_))
    ));
    assert!(reader.next_mutation(&resolve).unwrap().is_none());
}

#[test]
fn a_newer_version_is_refused_with_who_wrote_it() {
    let table = users().build();
    let mut record = encode(&insert(&table, &[], 1)).to_vec();
    record[4] = 2;
    let error = decode_mutation(&Bytes::from(record), &|_| Some(table.clone())).unwrap_err();
    assert_eq!(error.offset, 4);
    assert!(error.expected.contains("newer Ilion"));
}
