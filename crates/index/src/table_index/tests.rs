//! Tests of the entries of a change, and of the rows that a search finds by them.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Cell, Clustering, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime, Liveness, Mutation, Row,
};
use ilion_schema::{ClusteringOrder, IndexKind, IndexSchema, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner, encode_composite};

use super::*;
use crate::{Before, RowPart, When};

const SECS: u32 = 1_000;
const NOW: i64 = 1_000_000_000;

fn table() -> Arc<TableSchema> {
    let list = CqlType::List {
        element: Arc::new(CqlType::Int),
        frozen: false,
    };
    let map = CqlType::Map {
        key: Arc::new(CqlType::Text),
        value: Arc::new(CqlType::Int),
        frozen: false,
    };
    TableBuilder::new("ks", "t", TableId::of_system_table("ks", "t"))
        .partition_key("p", CqlType::Int)
        .partition_key("q", CqlType::Text)
        .clustering("c", CqlType::Int, ClusteringOrder::Desc)
        .clustering("d", CqlType::Int, ClusteringOrder::Asc)
        .static_column("s", CqlType::Int)
        .regular("v", CqlType::Int)
        .regular("l", list)
        .regular("m", map)
        .build()
}

fn index(target: &str) -> TableIndex {
    let schema = Arc::new(IndexSchema {
        name: "i".to_owned(),
        table: "t".to_owned(),
        kind: IndexKind::Composites,
        options: BTreeMap::from([("target".to_owned(), target.to_owned())]),
    });
    TableIndex::of(Definition::of(&schema, &table()).unwrap()).unwrap()
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn key() -> DecoratedKey {
    let mut key = Vec::new();
    encode_composite([&int(7)[..], b"q"], &mut key).unwrap();
    DecoratedKey::new(Partitioner::Murmur3, key.into())
}

fn row(clustering: &[i32], column: &str, data: Data) -> Row {
    let column = table().column_named(column).unwrap().id;
    Row {
        columns: vec![ColumnData { column, data }],
        ..Row::empty(Clustering::of(clustering.iter().map(|value| int(*value))))
    }
}

fn simple(cell: Cell) -> Row {
    row(&[1, 2], "v", Data::Simple(cell))
}

fn complex(column: &str, cells: &[(Bytes, Cell)]) -> Row {
    let data = ComplexColumn {
        deletion: DeletionTime::LIVE,
        cells: cells.to_vec(),
    };
    row(&[1, 2], column, Data::Complex(Box::new(data)))
}

struct Now;

impl When for Now {
    fn now_secs(&self) -> u32 {
        SECS
    }

    fn entry_micros(&self) -> i64 {
        NOW
    }
}

fn entries(index: &TableIndex, before: Option<&Row>, after: &Row) -> Vec<Mutation> {
    let change = RowChange {
        before: before.map(Before::Row),
        after,
    };
    index.entries(&key(), change, &Now)
}

/// Value, timestamp, and whether the entry is added.
fn told(mutations: &[Mutation]) -> Vec<(Bytes, i64, bool)> {
    let tell = |mutation: &Mutation| {
        let row = &mutation.update.rows[0];
        let is_added = !row.liveness.is_none();
        let time = match is_added {
            true => row.liveness.timestamp_micros,
            false => row.deletion.marked_at_micros,
        };
        (mutation.key.key.clone(), time, is_added)
    };
    mutations.iter().map(tell).collect()
}

fn found(index: &TableIndex, mutation: &Mutation) -> Candidate {
    index.candidate(&mutation.key, &mutation.update.rows[0]).unwrap()
}

#[test]
fn a_new_value_adds_its_entry_and_removes_that_of_the_old_one_in_the_memtable() {
    let index = index("v");
    let (old, new) = (simple(Cell::live(5, int(1))), simple(Cell::live(9, int(2))));
    assert_eq!(told(&entries(&index, None, &old)), [(int(1), 5, true)]);
    assert_eq!(
        told(&entries(&index, Some(&old), &new)),
        [(int(2), 9, true), (int(1), 5, false)]
    );
    assert!(entries(&index, Some(&new), &new).is_empty());
    let rewritten = simple(Cell::live(12, int(2)));
    assert_eq!(
        told(&entries(&index, Some(&new), &rewritten)),
        [(int(2), 12, true)]
    );
    let deleted = simple(Cell::tombstone(13, SECS));
    assert_eq!(
        told(&entries(&index, Some(&rewritten), &deleted)),
        [(int(2), 12, false)]
    );
    let gone = Row::empty(old.clustering.clone());
    assert_eq!(told(&entries(&index, Some(&old), &gone)), [(int(1), 5, false)]);
}

#[test]
fn values_that_are_too_long_for_a_key_have_no_entries() {
    let index = index("v");
    let short = simple(Cell::live(9, int(2)));
    let long = |micros| simple(Cell::live(micros, Bytes::from(vec![7; 65535])));
    assert!(entries(&index, None, &long(5)).is_empty());
    assert_eq!(
        told(&entries(&index, Some(&long(5)), &short)),
        [(int(2), 9, true)]
    );
    assert_eq!(
        told(&entries(&index, Some(&short), &long(12))),
        [(int(2), 9, false)]
    );
}

#[test]
fn an_entry_expires_with_its_cell_and_an_expired_cell_has_none() {
    let index = index("v");
    let expiring = simple(Cell::expiring(5, 60, SECS + 60, int(1)));
    let [entry] = &entries(&index, None, &expiring)[..] else {
        panic!()
    };
    assert_eq!(
        entry.update.rows[0].liveness,
        Liveness::expiring(5, 60, SECS + 60)
    );
    assert!(found(&index, entry).entry.unwrap().is_expiring);
    assert!(entries(&index, None, &simple(Cell::expiring(5, 60, SECS, int(1)))).is_empty());
}

#[test]
fn an_entry_leads_back_to_its_row_and_is_stale_when_the_row_has_another_value() {
    let index = index("v");
    let row = simple(Cell::live(5, int(1)));
    let [entry] = &entries(&index, None, &row)[..] else {
        panic!()
    };
    let candidate = found(&index, entry);
    assert_eq!(candidate.place.key, key());
    assert_eq!(candidate.place.row, RowPart::Row(row.clustering.clone()));
    let mark = candidate.entry.unwrap();
    assert!(!index.is_stale(&mark, Some(&row)));
    assert!(index.is_stale(&mark, Some(&simple(Cell::live(9, int(2))))));
    assert!(index.is_stale(&mark, None));
    assert_eq!(told(&[index.removal(&mark, SECS)]), [(int(1), 5, false)]);
}

#[test]
fn key_columns_have_an_entry_with_every_write_of_a_row_that_lives() {
    for (target, value) in [
        ("q", Bytes::from_static(b"q")),
        ("p", int(7)),
        ("c", int(1)),
        ("d", int(2)),
    ] {
        let index = index(target);
        let row = simple(Cell::expiring(5, 60, SECS + 60, int(1)));
        let made = entries(&index, Some(&row), &row);
        assert_eq!(told(&made), [(value, NOW, true)], "{target}");
        let candidate = found(&index, &made[0]);
        assert_eq!(candidate.place.key, key());
        assert_eq!(
            candidate.place.row,
            RowPart::Row(row.clustering.clone()),
            "{target}"
        );
        assert!(!candidate.entry.unwrap().is_expiring);
        assert!(entries(&index, Some(&row), &simple(Cell::tombstone(9, SECS))).is_empty());
    }
}

#[test]
fn a_static_row_is_found_by_static_columns_and_by_the_partition_key() {
    let of_static = row(&[], "s", Data::Simple(Cell::live(5, int(3))));
    for target in ["s", "q"] {
        let index = index(target);
        let [entry] = &entries(&index, None, &of_static)[..] else {
            panic!("{target}")
        };
        assert_eq!(found(&index, entry).place, Place::start_of(key()));
        assert_eq!(entry.update.rows[0].clustering.values().len(), 3);
    }
    assert!(entries(&index("v"), None, &of_static).is_empty());
    assert!(entries(&index("c"), None, &of_static).is_empty());
    assert!(entries(&index("s"), None, &simple(Cell::live(5, int(1)))).is_empty());
}

#[test]
fn elements_of_collections_have_entries_of_their_own() {
    let cell = |time, value| Cell::live(time, int(value));
    let (a, b) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
    let before = complex("m", &[(a.clone(), cell(5, 1)), (b.clone(), cell(6, 1))]);
    let after = complex(
        "m",
        &[(a.clone(), cell(9, 2)), (b.clone(), Cell::tombstone(9, SECS))],
    );
    let change = |target: &str| told(&entries(&index(target), Some(&before), &after));
    assert_eq!(change("keys(m)"), [(a.clone(), 9, true), (b.clone(), 6, false)]);
    assert_eq!(
        change("values(m)"),
        [(int(2), 9, true), (int(1), 5, false), (int(1), 6, false)]
    );
    let entry = |key: &Bytes, value: i32| {
        let mut out = Vec::new();
        encode_composite([&key[..], &int(value)[..]], &mut out).unwrap();
        Bytes::from(out)
    };
    let expected = [
        (entry(&a, 2), 9, true),
        (entry(&a, 1), 5, false),
        (entry(&b, 1), 6, false),
    ];
    assert_eq!(change("entries(m)"), expected);
    for target in ["keys(m)", "values(m)", "entries(m)"] {
        let index = index(target);
        for made in entries(&index, None, &before) {
            let mark = found(&index, &made).entry.unwrap();
            assert!(!index.is_stale(&mark, Some(&before)), "{target}");
            let is_kept = target == "keys(m)" && mark.value.key == a;
            assert_eq!(index.is_stale(&mark, Some(&after)), !is_kept, "{target}");
        }
    }
}

#[test]
fn an_index_serves_what_it_has_the_values_of() {
    let equal = Predicate::Equal(int(1));
    let contains = Predicate::Contains(int(1));
    let has_key = Predicate::ContainsKey(Bytes::from_static(b"a"));
    let entry = Predicate::Entry(Bytes::from_static(b"a"), int(1));
    let serves = |target: &str| {
        let index = index(target);
        [&equal, &contains, &has_key, &entry].map(|predicate| index.serves(predicate))
    };
    assert_eq!(serves("v"), [true, false, false, false]);
    assert_eq!(serves("c"), [true, false, false, false]);
    assert_eq!(serves("values(l)"), [false, true, false, false]);
    assert_eq!(serves("values(m)"), [false, true, false, false]);
    assert_eq!(serves("keys(m)"), [false, false, true, false]);
    assert_eq!(serves("entries(m)"), [false, false, false, true]);
}

#[test]
fn a_value_that_no_key_can_hold_is_refused() {
    let index = index("v");
    let update = |len: usize| Mutation {
        table: table(),
        key: key(),
        update: ilion_rows::PartitionUpdate {
            rows: vec![simple(Cell::live(5, vec![0; len].into()))],
            ..Default::default()
        },
    };
    assert!(index.check(&update(65534)).is_ok());
    assert!(index.check(&update(65535)).is_err());
}
