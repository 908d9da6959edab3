//! The cost of a SELECT, from the prepared statement to its encoded rows, on SSTables in memory:
//!
//! ```text
//! cargo build --release -p ilion-query --example measure_selects
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/measure_selects ROWS SSTABLES LIMIT READS
//! ```
//! Rows have a key of 16 bytes and a value of 100. LIMIT 0 reads rows by key; any other number reads this many rows from a token
//! on. Every row is in one of the SSTables; with a fifth argument, in this many. A sixth argument is the number of rows per
//! partition. A seventh one selects aggregates of all rows: 0 `count(*)`, 1 `sum(c), max(v)`, 2 `k, count(v), avg(c)` of each
//! partition; the value is then a blob of 1 to 17 bytes.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

mod bench;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_query::{ExecuteOptions, Prepared};
use ilion_types::Partitioner;

use bench::{Bench, with};

fn key(row: u64) -> Bytes {
    let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    Bytes::from(format!("{mixed:016x}"))
}

/// Aggregates of all rows in a table with clustering.
const AGGREGATES: [&str; 3] = [
    "SELECT count(*) FROM ks.t",
    "SELECT sum(c), max(v) FROM ks.t",
    "SELECT k, count(v), avg(c) FROM ks.t GROUP BY k",
];

/// The form of a row's value.
#[derive(Clone, Copy)]
enum ValueShape {
    Wide,
    /// Of various lengths.
    Short,
}

fn value(row: u64, shape: ValueShape) -> Bytes {
    match shape {
        ValueShape::Wide => Bytes::from([row.to_be_bytes().repeat(6), vec![7; 52]].concat()),
        ValueShape::Short => {
            let mixed = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            let len = 1 + usize::try_from(mixed % 17).unwrap();
            Bytes::from(format!("{mixed:017}")).slice(..len)
        }
    }
}

/// `width` is the number of rows per partition; `None` makes a table without clustering.
fn load(bench: &mut Bench, rows: u64, sstables: u64, copies: u64, width: Option<u64>, shape: ValueShape) {
    let (create, insert) = match width {
        None => (
            "CREATE TABLE ks.t (k blob PRIMARY KEY, v blob)",
            "INSERT INTO ks.t (k, v) VALUES (?, ?)",
        ),
        Some(_) => (
            "CREATE TABLE ks.t (k blob, c bigint, v blob, PRIMARY KEY (k, c))",
            "INSERT INTO ks.t (k, v, c) VALUES (?, ?, ?)",
        ),
    };
    bench.run(create);
    let insert = bench.prepare(insert);
    for part in 0..sstables {
        for row in (0..rows).filter(|row| (row + sstables - part) % sstables < copies) {
            let mut values = vec![key(row / width.unwrap_or(1)), value(row, shape)];
            values.extend(width.map(|width| Bytes::copy_from_slice(&(row % width).to_be_bytes())));
            bench.write(&insert, &with(values));
        }
        bench.flush();
    }
    bench.sort();
}

#[inline(never)]
fn measured(bench: &mut Bench, select: &Arc<Prepared>, reads: &[ExecuteOptions]) -> u64 {
    bench.read_all(select, reads)
}

fn main() {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect();
    let [rows, sstables, limit, reads, ref rest @ ..] = arguments[..] else {
        panic!("ROWS SSTABLES LIMIT READS [COPIES [ROWS A PARTITION [AGGREGATES]]]");
    };
    let mut bench = Bench::open();
    let (copies, width) = (rest.first().copied().unwrap_or(1), rest.get(1).copied());
    let aggregates = rest.get(2).map(|number| usize::try_from(*number).unwrap());
    let shape = aggregates.map_or(ValueShape::Wide, |_| ValueShape::Short);
    load(&mut bench, rows, sstables, copies, width, shape);
    let select = bench.prepare(match (aggregates, limit, width) {
        (Some(number), ..) => AGGREGATES[number],
        (_, 0, _) => "SELECT v FROM ks.t WHERE k = ?",
        (_, _, None) => "SELECT k, v FROM ks.t WHERE token(k) >= ? LIMIT ?",
        (_, _, Some(_)) => "SELECT k, c, v FROM ks.t WHERE token(k) >= ? LIMIT ?",
    });
    let values = |read: u64| {
        let key = key(read.wrapping_mul(0x2545_F491) % rows / width.unwrap_or(1));
        let token = Bytes::from(Partitioner::Murmur3.token(&key).to_bytes());
        let limit = u32::try_from(limit).unwrap();
        match (aggregates, limit) {
            (Some(_), _) => ExecuteOptions::default(),
            (None, 0) => with(vec![key]),
            (None, _) => with(vec![token, Bytes::copy_from_slice(&limit.to_be_bytes())]),
        }
    };
    let options: Vec<ExecuteOptions> = (0..reads).map(values).collect();
    bench.read_all(&select, &options);
    let started = Instant::now();
    let mut count = measured(&mut bench, &select, &options);
    if aggregates.is_some() {
        count = rows * reads;
    }
    let nanos = started.elapsed().as_nanos();
    println!(
        "{sstables} SSTables: {} ns a read, {} ns a row ({count} rows)",
        nanos / u128::from(reads),
        nanos / u128::from(count.max(1)),
    );
}
