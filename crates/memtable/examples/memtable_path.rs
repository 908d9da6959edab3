//! The hot paths of a memtable, to count their instructions:
//!
//! ```text
//! cargo build --release -p ilion-memtable --example memtable_path
//! for path in insert update wide point slice scan; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*memtable_path::measured*' \
//!         target/release/examples/memtable_path $path 20000
//! done
//! ```
//! Instructions collected, divided by the count, are those of one operation. `memtable_path memory [count]` prints the resident memory
//! and the accounted size of a row of 186 bytes; `memtable_path time [count]` prints how long an insert and a read by key take.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::{LogPosition, Memtable};
use ilion_rows::{
    Bound, BoundKind, Cell, Clustering, ClusteringFilter, ColumnData, Cursor, Data, DecoratedKey, KeyRange,
    Liveness, Mutation, PartitionUpdate, Row, Slice,
};
use ilion_schema::{ClusteringOrder, TableBuilder, TableId, TableSchema};
use ilion_types::{CqlType, Partitioner, Uuid};

const VALUES: usize = 5;

fn table() -> Arc<TableSchema> {
    let mut table = TableBuilder::new("ks", "t", TableId(Uuid::nil()))
        .partition_key("k", CqlType::BigInt)
        .clustering("c", CqlType::BigInt, ClusteringOrder::Asc);
    for index in 0..VALUES {
        table = table.regular(format!("v{index}"), CqlType::Blob);
    }
    table.build()
}

fn number(value: u64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

fn key(value: u64) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, number(value))
}

/// An INSERT of a row with five values of 34 bytes, as YCSB has them.
fn insert(table: &Arc<TableSchema>, k: u64, c: u64, timestamp: i64) -> Mutation {
    let columns = table.regulars().map(|column| ColumnData {
        column: column.id,
        data: Data::Simple(Cell::live(timestamp, Bytes::from(vec![7; 34]))),
    });
    let row = Row {
        liveness: Liveness::live(timestamp),
        columns: columns.collect(),
        ..Row::empty(Clustering::of([number(c)]))
    };
    Mutation {
        table: table.clone(),
        key: key(k),
        update: PartitionUpdate {
            rows: vec![row],
            ..PartitionUpdate::default()
        },
    }
}

#[inline(never)]
fn measured_apply(memtable: &Memtable, mutation: &Mutation) {
    let position = LogPosition {
        segment: 1,
        offset: 1,
    };
    black_box(memtable.apply_logged(mutation, position));
}

#[inline(never)]
fn measured_point(memtable: &Arc<Memtable>, key: &DecoratedKey, filter: &Arc<ClusteringFilter>) {
    let mut cursor = memtable.partition(key, filter).unwrap();
    drain(&mut cursor);
}

#[inline(never)]
fn measured_scan(memtable: &Arc<Memtable>) {
    let mut cursor = memtable.cursor(KeyRange::all(), Arc::new(ClusteringFilter::all()));
    drain(&mut cursor);
}

fn drain(cursor: &mut dyn Cursor) {
    while let Some(head) = cursor.next_partition().unwrap() {
        black_box(head);
        while let Some(unfiltered) = cursor.next_unfiltered().unwrap() {
            black_box(unfiltered);
        }
    }
}

/// Spreads numbers over the ring and over clusterings.
fn scatter(index: u64, count: u64) -> u64 {
    index * 7919 % count
}

/// Memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

fn print_memory(memtable: &Memtable, count: u64, fill: impl Fn(i64)) {
    let before = resident_bytes();
    for round in 1..=2 {
        fill(round);
        println!(
            "written {round} times: {} bytes resident, {} accounted",
            (resident_bytes() - before) / count,
            memtable.size_bytes() as u64 / count
        );
    }
}

/// Nanoseconds of an insert and of a read by key, on one thread, with `count` partitions of one row.
fn print_times(memtable: &Arc<Memtable>, table: &Arc<TableSchema>, count: u64) {
    const ROUND: u64 = 1000;
    let mut elapsed = std::time::Duration::ZERO;
    for round in (0..count).step_by(ROUND as usize) {
        let round: Vec<Mutation> = (round..count.min(round + ROUND))
            .map(|index| insert(table, index, 1, 1))
            .collect();
        let start = std::time::Instant::now();
        round
            .iter()
            .for_each(|mutation| measured_apply(memtable, mutation));
        elapsed += start.elapsed();
    }
    println!("insert: {} ns", elapsed.as_nanos() / u128::from(count));
    let all = Arc::new(ClusteringFilter::all());
    let start = std::time::Instant::now();
    (0..count).for_each(|index| measured_point(memtable, &key(index), &all));
    println!("point: {} ns", start.elapsed().as_nanos() / u128::from(count));
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_default();
    let count: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(20_000);
    let table = table();
    let memtable = Arc::new(Memtable::new(table.clone(), 8));
    let is_wide = matches!(path.as_str(), "wide" | "slice");
    let at = |index: u64| match is_wide {
        true => (1, scatter(index, count)),
        false => (index, 1),
    };
    let fill = |timestamp: i64| {
        for index in 0..count {
            memtable.apply(&insert(&table, at(index).0, at(index).1, timestamp));
        }
    };
    let measure = |timestamp: i64| {
        for index in 0..count {
            measured_apply(&memtable, &insert(&table, at(index).0, at(index).1, timestamp));
        }
    };
    let all = Arc::new(ClusteringFilter::all());
    match path.as_str() {
        "insert" | "wide" => measure(1),
        "update" => {
            fill(1);
            measure(2);
        }
        "point" => {
            fill(1);
            (0..count).for_each(|index| measured_point(&memtable, &key(index), &all));
        }
        "slice" => {
            fill(1);
            for index in 0..count {
                let start = scatter(index, count);
                let bound = |kind, value| Bound::new(kind, [Some(number(value))].into());
                let filter = ClusteringFilter {
                    slices: vec![Slice {
                        start: bound(BoundKind::InclStart, start),
                        end: bound(BoundKind::ExclEnd, start + 10),
                    }],
                    ..ClusteringFilter::all()
                };
                measured_point(&memtable, &key(1), &Arc::new(filter));
            }
        }
        "memory" => print_memory(&memtable, count, fill),
        "time" => print_times(&memtable, &table, count),
        "scan" => {
            fill(1);
            measured_scan(&memtable);
        }
        _ => eprintln!("memtable_path insert|update|wide|point|slice|scan|memory|time [count]"),
    }
}
