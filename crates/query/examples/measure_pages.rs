//! The cost of the newest rows of a partition that lies in many SSTables, from the prepared statement to the encoded rows:
//!
//! ```text
//! cargo build --release -p ilion-query --example measure_pages
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/measure_pages SSTABLES LIMIT READS [mixed]
//! ```
//! 20 partitions of 4,000 rows, written in the order of time, so that each SSTable has a stretch of each partition. With `mixed`, each
//! SSTable has rows of all times.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

mod bench;

use std::sync::Arc;

use bytes::Bytes;
use ilion_query::{ExecuteOptions, Prepared};

use bench::{Bench, with};

const PARTITIONS: u64 = 20;
const ROWS: u64 = 4000;

fn key(partition: u64) -> Bytes {
    Bytes::from(format!("sensor {partition:05}"))
}

fn load(bench: &mut Bench, sstables: u64, is_mixed: bool) {
    bench.run("CREATE TABLE ks.t (k blob, c bigint, v blob, PRIMARY KEY (k, c))");
    let insert = bench.prepare("INSERT INTO ks.t (k, c, v) VALUES (?, ?, ?)");
    for part in 0..sstables {
        for row in 0..ROWS {
            let of_part = if is_mixed {
                row % sstables
            } else {
                row * sstables / ROWS
            };
            if of_part != part {
                continue;
            }
            for partition in 0..PARTITIONS {
                let (time, value) = (row.to_be_bytes(), row.to_be_bytes().repeat(5));
                let values = vec![key(partition), Bytes::copy_from_slice(&time), value.into()];
                bench.write(&insert, &with(values));
            }
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
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [sstables, limit, reads, rest @ ..] = &arguments[..] else {
        panic!("SSTABLES LIMIT READS [mixed]");
    };
    let is_mixed = rest.first().is_some_and(|word| word == "mixed");
    let mut bench = Bench::open();
    load(&mut bench, sstables.parse().unwrap(), is_mixed);
    let select = bench.prepare(&format!(
        "SELECT c, v FROM ks.t WHERE k = ? ORDER BY c DESC LIMIT {limit}"
    ));
    let reads: u64 = reads.parse().unwrap();
    let options: Vec<ExecuteOptions> = (0..reads)
        .map(|read| with(vec![key(read % PARTITIONS)]))
        .collect();
    bench.read_all(&select, &options);
    println!("{} rows", measured(&mut bench, &select, &options));
}
