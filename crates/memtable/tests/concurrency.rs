//! Readers beside writers: each partition is seen as it was between two mutations.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use bytes::Bytes;
use ilion_memtable::Memtable;
use ilion_rows::notation::{parse_mutations, parse_table};
use ilion_rows::{
    Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, DeletionTime, KeyRange,
    Mutation, Partition, Row, Slice, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_types::Partitioner;

const ROWS: i32 = 300;
const PARTITIONS: i32 = 3;
const MUTATIONS: usize = 120;

fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn key(number: i32) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, int(number))
}

fn row(table: &TableSchema, clustering: Clustering, column: &str, micros: i64) -> Row {
    let value = Bytes::copy_from_slice(&micros.to_be_bytes());
    let mut row = Row::empty(clustering);
    row.columns.push(ColumnData {
        column: table.column_named(column).unwrap().id,
        data: Data::Simple(Cell::live(micros, value)),
    });
    row
}

/// Says the same in every row of a partition, and deletes what was said before: by the partition, by ranges, or not at all.
fn say(table: &Arc<TableSchema>, micros: i64) -> Mutation {
    let partition = i32::try_from(micros).unwrap() % PARTITIONS;
    let mut mutation = Mutation {
        table: table.clone(),
        key: key(partition),
        update: ilion_rows::PartitionUpdate::default(),
    };
    let update = &mut mutation.update;
    update.static_row = Some(row(table, Clustering::empty(), "s", micros));
    let clusterings = (0..ROWS).map(|number| Clustering::of([int(number)]));
    update.rows = clusterings
        .map(|clustering| row(table, clustering, "v", micros))
        .collect();
    match micros % 4 {
        0 => update.deletion = Some(DeletionTime::new(micros - 1, 0)),
        1 => {
            let text = format!("partition 1\n[*, 150) del@{0}/0\n[150, *] del@{0}/0", micros - 1);
            update.ranges = parse_mutations(&text, table, Partitioner::Murmur3)
                .unwrap()
                .remove(0)
                .update
                .ranges;
        }
        _ => {}
    }
    mutation
}

fn said(row: &Row) -> i64 {
    match &row.columns[0].data {
        Data::Simple(cell) => cell.timestamp_micros,
        Data::Complex(_) => panic!("a simple column"),
    }
}

/// What a read says, which is one thing only.
fn said_by(partition: &Partition, rows_expected: usize) -> i64 {
    let rows: Vec<&Row> = partition
        .unfiltereds
        .iter()
        .filter_map(|unfiltered| match unfiltered {
            Unfiltered::Row(row) => Some(row),
            Unfiltered::Marker(_) => None,
        })
        .collect();
    let all: BTreeSet<i64> = rows
        .iter()
        .chain(&partition.head.static_row.as_ref())
        .map(|row| said(row))
        .collect();
    assert_eq!(all.len(), 1, "one mutation: {all:?}");
    assert_eq!(rows.len(), rows_expected);
    let said = *all.first().unwrap();
    let deletions = partition
        .unfiltereds
        .iter()
        .filter_map(|unfiltered| match unfiltered {
            Unfiltered::Marker(marker) => marker.start,
            Unfiltered::Row(_) => None,
        });
    for deletion in deletions.chain([partition.head.deletion]) {
        assert!(!deletion.deletes(said), "nothing is deleted by what came later");
    }
    said
}

fn read_slowly(memtable: &Arc<Memtable>, number: i32, filter: ClusteringFilter, rows: usize) -> Option<i64> {
    let mut cursor = memtable.partition(&key(number), &Arc::new(filter))?;
    let head = cursor.next_partition().unwrap().unwrap();
    let mut unfiltereds = Vec::new();
    while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
        unfiltereds.push(unfiltered);
        if unfiltereds.len() % 64 == 0 {
            std::thread::yield_now();
        }
    }
    Some(said_by(&Partition { head, unfiltereds }, rows))
}

fn keep_reading(memtable: &Arc<Memtable>, writers: &AtomicUsize) -> usize {
    let mut reads = 0;
    let mut last = [0; PARTITIONS as usize];
    while writers.load(Ordering::Acquire) > 0 || reads == 0 {
        for number in 0..PARTITIONS {
            let reversed = ClusteringFilter {
                reversed: true,
                ..ClusteringFilter::all()
            };
            let one = ClusteringFilter {
                slices: vec![Slice::exactly(&Clustering::of([int(7)]))],
                ..ClusteringFilter::all()
            };
            for (filter, rows) in [
                (ClusteringFilter::all(), ROWS as usize),
                (reversed, ROWS as usize),
                (one, 1),
            ] {
                let said = read_slowly(memtable, number, filter, rows).unwrap_or(0);
                assert!(said >= last[number as usize], "time does not run backwards");
                last[number as usize] = said;
            }
        }
        let mut scan = memtable.cursor(KeyRange::all(), Arc::new(ClusteringFilter::all()));
        while let Some(partition) = Partition::read_next(&mut scan).unwrap() {
            said_by(&partition, ROWS as usize);
        }
        reads += 1;
    }
    reads
}

#[test]
fn readers_see_whole_mutations_only() {
    let table = parse_table("k int pk, c int ck, s bigint static, v bigint").unwrap();
    let memtable = Arc::new(Memtable::new(table.clone(), 2));
    let writers = AtomicUsize::new(3);
    let clock = AtomicI64::new(1);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..MUTATIONS {
                    memtable.apply(&say(&table, clock.fetch_add(1, Ordering::Relaxed)));
                }
                writers.fetch_sub(1, Ordering::Release);
            });
        }
        for _ in 0..2 {
            scope.spawn(|| assert!(keep_reading(&memtable, &writers) > 0));
        }
    });
    let last = clock.load(Ordering::Relaxed) - 1;
    for number in 0..PARTITIONS {
        let said = read_slowly(&memtable, number, ClusteringFilter::all(), ROWS as usize).unwrap();
        assert!(
            said > last - i64::from(PARTITIONS),
            "the newest mutation of each partition is there"
        );
    }
    assert_eq!(memtable.statistics().operations, 3 * MUTATIONS as u64);
}
