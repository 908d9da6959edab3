//! What a SELECT costs from the prepared statement to its encoded rows, on SSTables in memory:
//!
//! ```text
//! cargo build --release -p ilion-query --example measure_selects
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/measure_selects ROWS SSTABLES LIMIT READS
//! ```
//! Rows have a key of 16 bytes and a value of 100. LIMIT 0 reads rows by their keys, any other number so many rows behind a token.
//! Every row is in one of the SSTables; with a fifth argument, so many SSTables have each row. With a sixth one, partitions have so many
//! rows each.

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

/// `width`: rows of a partition; nothing: the table has no clustering.
fn load(bench: &mut Bench, rows: u64, sstables: u64, copies: u64, width: Option<u64>) {
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
            let value = [row.to_be_bytes().repeat(6), vec![7; 52]].concat();
            let mut values = vec![key(row / width.unwrap_or(1)), Bytes::from(value)];
            values.extend(width.map(|width| Bytes::copy_from_slice(&(row % width).to_be_bytes())));
            bench.write(&insert, &with(values));
        }
        bench.flush();
    }
}

#[inline(never)]
fn measured(bench: &mut Bench, select: &Arc<Prepared>, reads: &[ExecuteOptions]) -> u64 {
    read_all(bench, select, reads)
}

fn read_all(bench: &mut Bench, select: &Arc<Prepared>, reads: &[ExecuteOptions]) -> u64 {
    let counts = reads.iter().map(|options| bench.read(select, options).row_count);
    counts.map(u64::from).sum()
}

fn main() {
    let arguments: Vec<u64> = std::env::args()
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect();
    let [rows, sstables, limit, reads, ref rest @ ..] = arguments[..] else {
        panic!("ROWS SSTABLES LIMIT READS [COPIES [ROWS A PARTITION]]");
    };
    let mut bench = Bench::open();
    let (copies, width) = (rest.first().copied().unwrap_or(1), rest.get(1).copied());
    load(&mut bench, rows, sstables, copies, width);
    let select = match (limit, width) {
        (0, _) => "SELECT v FROM ks.t WHERE k = ?",
        (_, None) => "SELECT k, v FROM ks.t WHERE token(k) >= ? LIMIT ?",
        (_, Some(_)) => "SELECT k, c, v FROM ks.t WHERE token(k) >= ? LIMIT ?",
    };
    let select = bench.prepare(select);
    let values = |read: u64| {
        let key = key(read.wrapping_mul(0x2545_F491) % rows / width.unwrap_or(1));
        let token = Bytes::from(Partitioner::Murmur3.token(&key).to_bytes());
        let limit = u32::try_from(limit).unwrap();
        match limit {
            0 => with(vec![key]),
            _ => with(vec![token, Bytes::copy_from_slice(&limit.to_be_bytes())]),
        }
    };
    let options: Vec<ExecuteOptions> = (0..reads).map(values).collect();
    read_all(&mut bench, &select, &options);
    let started = Instant::now();
    let count = measured(&mut bench, &select, &options);
    let nanos = started.elapsed().as_nanos();
    println!(
        "{sstables} SSTables: {} ns a read, {} ns a row ({count} rows)",
        nanos / u128::from(reads),
        nanos / u128::from(count.max(1)),
    );
}
