//! What a reader of a memtable sees after writes.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::{LogPosition, Memtable, Observed};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey,
    DeletionTime, KeyBound, KeyRange, Liveness, Mutation, PartitionUpdate, RangeTombstone, Row, Slice,
    Unfiltered,
};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, KeyOrder, Partitioner};

fn table() -> Arc<TableSchema> {
    TableBuilder::new("ks", "t", TableId(uuid::Uuid::nil()))
        .partition_key("k", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc)
        .regular("v", CqlType::Int)
        .build()
}

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn key(value: i32) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, int(value))
}

fn write(table: &Arc<TableSchema>, k: i32, update: PartitionUpdate) -> Mutation {
    Mutation {
        table: table.clone(),
        key: key(k),
        update,
    }
}

fn insert(table: &Arc<TableSchema>, k: i32, c: i32, v: i32, timestamp: i64) -> Mutation {
    let column = table.column_named("v").unwrap().id;
    let row = Row {
        liveness: Liveness::live(timestamp),
        columns: vec![ColumnData {
            column,
            data: Data::Simple(Cell::live(timestamp, int(v))),
        }],
        ..Row::empty(Clustering::of([int(c)]))
    };
    let update = PartitionUpdate {
        rows: vec![row],
        ..PartitionUpdate::default()
    };
    write(table, k, update)
}

fn number(bytes: &Bytes) -> i32 {
    i32::from_be_bytes(bytes.as_ref().try_into().unwrap())
}

fn place(bound: &Bound) -> String {
    let values: Vec<i32> = bound.values.iter().flatten().map(number).collect();
    format!("{:?}{values:?}", bound.kind)
}

/// Everything a cursor gives, in short.
fn dump(cursor: &mut dyn Cursor) -> String {
    let mut out = Vec::new();
    while let Some(head) = cursor.next_partition().unwrap() {
        out.push(format!("k{}", number(&head.key.key)));
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            out.push(match unfiltered {
                Unfiltered::Row(row) => {
                    let value = match &row.columns[0].data {
                        Data::Simple(cell) => number(&cell.value),
                        Data::Complex(_) => panic!("a simple column"),
                    };
                    format!("{}={value}", number(row.clustering.values()[0].as_ref().unwrap()))
                }
                Unfiltered::Marker(marker) => place(&marker.bound),
            });
        }
    }
    out.join(" ")
}

fn slice(from: i32, to: i32) -> Slice {
    Slice {
        start: Bound::new(BoundKind::InclStart, [Some(int(from))].into()),
        end: Bound::new(BoundKind::ExclEnd, [Some(int(to))].into()),
    }
}

fn delete(from: i32, to: i32, timestamp: i64) -> PartitionUpdate {
    let Slice { start, end } = slice(from, to);
    PartitionUpdate {
        ranges: vec![RangeTombstone {
            start,
            end,
            deletion: DeletionTime::new(timestamp, 1),
        }],
        ..PartitionUpdate::default()
    }
}

fn filter(slices: Vec<Slice>, reversed: bool) -> Arc<ClusteringFilter> {
    Arc::new(ClusteringFilter {
        slices,
        reversed,
        ..ClusteringFilter::all()
    })
}

#[test]
fn a_scan_gives_partitions_by_token_and_rows_of_the_slices_in_order() {
    let table = table();
    for shards in [1, 7] {
        let memtable = Arc::new(Memtable::new(table.clone(), shards));
        let mut keys: Vec<DecoratedKey> = (0..300).map(key).collect();
        keys.sort();
        for k in 0..300 {
            for c in [3, 1, 2] {
                memtable.apply(&insert(&table, k, c, k, 1));
            }
        }
        let expected: Vec<String> = keys
            .iter()
            .map(|key| number(&key.key))
            .map(|k| format!("k{k} 1={k} 2={k} 3={k}"))
            .collect();
        assert_eq!(dump(&mut memtable.flush_cursor()), expected.join(" "));
        let range = KeyRange {
            start: KeyBound::AfterToken(keys[99].token.clone()),
            end: KeyBound::AfterToken(keys[200].token.clone()),
        };
        let mut cursor = memtable.cursor(range, filter(vec![Slice::all()], false));
        assert_eq!(dump(&mut cursor), expected[100..=200].join(" "));
    }
}

#[test]
fn a_wide_partition_is_read_on_where_the_last_copy_ended() {
    let table = table();
    let memtable = Arc::new(Memtable::new(table.clone(), 4));
    for c in (0..1000).rev() {
        memtable.apply(&insert(&table, 1, c, c, 1));
    }
    let numbers = |numbers: &mut dyn Iterator<Item = i32>| {
        let words: Vec<String> = numbers.map(|c| format!("{c}={c}")).collect();
        format!("k1 {}", words.join(" "))
    };
    for reversed in [false, true] {
        let filter = filter(vec![slice(10, 500), slice(600, 601), slice(700, 2000)], reversed);
        let wanted = (10..500).chain(600..601).chain(700..1000);
        let expected = if reversed {
            numbers(&mut wanted.rev())
        } else {
            numbers(&mut wanted.into_iter())
        };
        let mut cursor = memtable.partition(&key(1), &filter).unwrap();
        assert_eq!(dump(&mut cursor), expected);
        assert_eq!(dump(&mut memtable.cursor(KeyRange::all(), filter)), expected);
    }
    assert!(memtable.partition(&key(2), &filter(vec![], false)).is_none());
}

#[test]
fn deleted_ranges_hide_rows_and_are_cut_to_the_slices() {
    let table = table();
    let memtable = Arc::new(Memtable::new(table.clone(), 4));
    for c in 0..10 {
        memtable.apply(&insert(&table, 1, c, c, if c == 5 { 30 } else { 1 }));
    }
    memtable.apply(&write(&table, 1, delete(2, 8, 10)));
    memtable.apply(&write(&table, 1, delete(4, 6, 20)));
    let mut all = memtable.flush_cursor();
    assert_eq!(
        dump(&mut all),
        "k1 0=0 1=1 InclStart[2] ExclEndInclStart[4] 5=5 ExclEndInclStart[6] ExclEnd[8] 8=8 9=9"
    );
    let mut part = memtable
        .partition(&key(1), &filter(vec![slice(0, 1), slice(3, 5)], false))
        .unwrap();
    assert_eq!(
        dump(&mut part),
        "k1 0=0 InclStart[3] ExclEndInclStart[4] ExclEnd[5]"
    );
    let mut part = memtable
        .partition(&key(1), &filter(vec![slice(0, 1), slice(3, 5)], true))
        .unwrap();
    assert_eq!(
        dump(&mut part),
        "k1 ExclEnd[5] ExclEndInclStart[4] InclStart[3] 0=0"
    );
}

#[test]
fn a_partition_deletion_frees_what_it_covers() {
    let table = table();
    let memtable = Arc::new(Memtable::new(table.clone(), 4));
    for c in 0..100 {
        memtable.apply(&insert(&table, 1, c, c, 1));
    }
    memtable.apply(&insert(&table, 1, 7, 7, 50));
    let before = memtable.size_bytes();
    let update = PartitionUpdate {
        deletion: Some(DeletionTime::new(10, 1)),
        ..PartitionUpdate::default()
    };
    let mut gone = 0;
    let mut observer = |change: ilion_rows::RowChange<'_>| {
        gone += usize::from(change.before.is_some() && change.after.is_empty());
    };
    let grown_bytes =
        memtable.apply_observed(&write(&table, 1, update), None, &Observed::Rows, &mut observer);
    assert_eq!(gone, 99);
    assert!(grown_bytes < 0);
    assert_eq!(memtable.size_bytes(), before.strict_add_signed(grown_bytes));
    assert_eq!(dump(&mut memtable.flush_cursor()), "k1 7=7");
    memtable.apply(&insert(&table, 1, 8, 8, 5));
    assert_eq!(dump(&mut memtable.flush_cursor()), "k1 7=7");
}

#[test]
fn an_observer_is_shown_what_a_read_before_and_after_the_write_would_see() {
    let table = table();
    let column = table.column_named("v").unwrap().id;
    let expiring = |c, value, micros| {
        let mut mutation = insert(&table, 1, c, value, micros);
        for entry in &mut mutation.update.rows[0].columns {
            if let Data::Simple(cell) = &mut entry.data {
                (cell.ttl_secs, cell.local_deletion_secs) = (60, 100);
            }
        }
        mutation
    };
    let deletion = |marked_at| {
        let update = PartitionUpdate {
            deletion: Some(DeletionTime::new(marked_at, 1)),
            ..PartitionUpdate::default()
        };
        write(&table, 1, update)
    };
    let writes = [
        insert(&table, 1, 7, 1, 10),
        insert(&table, 1, 7, 2, 11),
        insert(&table, 1, 7, 3, 9),
        expiring(7, 4, 12),
        insert(&table, 1, 8, 4, 12),
        deletion(11),
        insert(&table, 1, 8, 5, 10),
        insert(&table, 1, 9, 5, 20),
        deletion(30),
    ];
    for observed in [Observed::Rows, Observed::of([Some(column)].into_iter())] {
        let memtable = Arc::new(Memtable::new(table.clone(), 4));
        let row_at = |memtable: &Arc<Memtable>, clustering: &Clustering| {
            let mut rows = memtable.partition(&key(1), &Arc::new(ClusteringFilter::all()))?;
            while let Some(Unfiltered::Row(row)) = rows.next_unfiltered().unwrap() {
                if row.clustering == *clustering {
                    return Some(row);
                }
            }
            None
        };
        for mutation in &writes {
            let before = Memtable::new(table.clone(), 4);
            let before = Arc::new(before);
            for known in writes.iter().take_while(|known| !std::ptr::eq(*known, mutation)) {
                before.apply(known);
            }
            let mut shown = Vec::new();
            memtable.apply_observed(mutation, None, &observed, &mut |change| {
                let cell = change.cell_before(column).map(|cell| cell.to_cell());
                let row = change.row_before().map(Cow::into_owned);
                shown.push((row, cell, change.after.clone()));
            });
            for (old, old_cell, new) in shown {
                let known = row_at(&before, &new.clustering);
                let known_cell = known.as_ref().and_then(|row| row.cell(column));
                assert_eq!(old_cell, known_cell.map(|cell| cell.to_cell()));
                match &observed {
                    Observed::Rows => assert_eq!(old, known),
                    Observed::Columns(_) => {
                        assert_eq!(old.map(|row| row.columns), known.map(|row| row.columns))
                    }
                }
                let now = row_at(&memtable, &new.clustering);
                assert_eq!(now.unwrap_or_else(|| Row::empty(new.clustering.clone())), new);
            }
        }
    }
}

#[test]
fn counts_cover_every_mutation() {
    let table = table();
    let memtable = Arc::new(Memtable::new(table.clone(), 4));
    assert!(memtable.is_empty());
    let at = |offset| LogPosition { segment: 1, offset };
    for k in 0..10 {
        memtable.apply_logged(
            &insert(&table, k, 1, 1, i64::from(k)),
            at(100 - u64::from(k.unsigned_abs())),
        );
    }
    let statistics = memtable.statistics();
    assert_eq!((statistics.partitions, statistics.operations), (10, 10));
    assert_eq!(
        (statistics.min_timestamp_micros, statistics.max_timestamp_micros),
        (0, 9)
    );
    assert_eq!(statistics.log, Some((at(91), at(100))));
    // The first version of a row keeps its place. Later ones take that of the one before.
    for (micros, takes_room) in [(100, true), (101, false), (102, false)] {
        let size = memtable.size_bytes();
        let grown: isize = (0..10)
            .map(|k| memtable.apply(&insert(&table, k, 1, 2, micros)))
            .sum();
        assert_eq!(grown > 0, takes_room);
        assert_eq!(memtable.size_bytes(), size.strict_add_signed(grown));
    }
}

#[test]
fn a_table_ordered_by_its_values_is_read_in_their_order_whatever_the_shards() {
    let mut builder = TableBuilder::new("ks", "t.by_v", TableId::of_system_table("ks", "t.by_v"))
        .partition_key("v", CqlType::Int)
        .clustering("c", CqlType::Int, ClusteringOrder::Asc);
    builder.key_order = Some(KeyOrder::of(CqlType::Int, false));
    let table = builder.build();
    let partitioner = table.partitioner(Partitioner::Murmur3);
    let key = |value: i32| DecoratedKey::new(partitioner, int(value));
    let memtable = Arc::new(Memtable::new(table.clone(), 16));
    let values: Vec<i32> = (0..2000).map(|number| (number * 7919) % 4001 - 2000).collect();
    for value in &values {
        memtable.apply(&Mutation {
            table: table.clone(),
            key: key(*value),
            update: PartitionUpdate {
                rows: vec![Row {
                    liveness: Liveness::live(1),
                    ..Row::empty(Clustering::of([int(*value)]))
                }],
                ..PartitionUpdate::default()
            },
        });
    }
    let mut sorted = values.clone();
    sorted.sort_unstable();
    let read = |range: KeyRange| {
        let mut cursor = memtable.cursor(range, Arc::new(ClusteringFilter::all()));
        let mut found = Vec::new();
        while let Some(head) = cursor.next_partition().unwrap() {
            assert!(matches!(cursor.next_unfiltered(), Ok(Some(Unfiltered::Row(_)))));
            found.push(number(&head.key.key));
        }
        found
    };
    assert_eq!(read(KeyRange::all()), sorted);
    for (from, to) in [
        (-2000, 2000),
        (-3, 3),
        (17, 17),
        (100, 90),
        (-5000, -1900),
        (0, 5000),
    ] {
        let range = KeyRange {
            start: KeyBound::BeforeToken(key(from).token),
            end: KeyBound::AfterToken(key(to).token),
        };
        let expected: Vec<i32> = sorted
            .iter()
            .copied()
            .filter(|value| (from..=to).contains(value))
            .collect();
        assert_eq!(read(range), expected, "{from} to {to}");
    }
    let after = KeyRange {
        start: KeyBound::After(key(sorted[500])),
        end: KeyBound::Before(key(sorted[700])),
    };
    assert_eq!(read(after), sorted[501..700]);
}
