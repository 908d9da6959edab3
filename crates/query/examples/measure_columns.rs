//! The cost of one column of many, from the prepared statement to its encoded value, on an SSTable in memory with cached
//! chunks:
//!
//! ```text
//! cargo build --release -p ilion-query --example measure_columns
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/measure_columns COLUMNS BYTES READS WANTED
//! ```
//! Rows have COLUMNS blobs of BYTES bytes, of which WANTED are read. With 0 columns, there are 100 rows with one blob each.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

mod bench;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use ilion_env::Seeded;
use ilion_query::{ExecuteOptions, Prepared};

use bench::{Bench, with};

const KEYS: u32 = 10;
const ROWS_OF_A_KEY: u32 = 100;

fn int(number: u32) -> Bytes {
    Bytes::copy_from_slice(&number.to_be_bytes())
}

fn names(columns: u32) -> Vec<String> {
    (0..columns).map(|column| format!("v{column:03}")).collect()
}

fn load(bench: &mut Bench, columns: u32, bytes: usize) {
    let mut random = Seeded::new(3);
    let mut blob = || {
        let mut blob = vec![0; bytes];
        random.fill(&mut blob);
        Bytes::from(blob)
    };
    let (rows, blobs) = match columns {
        0 => (ROWS_OF_A_KEY, 1),
        columns => (1, columns),
    };
    let names = names(blobs);
    let (declared, marks) = (names.join(" blob, "), vec!["?"; names.len()].join(", "));
    bench.run(&format!(
        "CREATE TABLE ks.t (k int, c int, {declared} blob, PRIMARY KEY (k, c))"
    ));
    let insert = format!(
        "INSERT INTO ks.t (k, c, {}) VALUES (?, ?, {marks})",
        names.join(", ")
    );
    let insert = bench.prepare(&insert);
    for (key, row) in (0..KEYS).flat_map(|key| (0..rows).map(move |row| (key, row))) {
        let mut values = vec![int(key), int(row)];
        values.extend((0..blobs).map(|_| blob()));
        bench.write(&insert, &with(values));
    }
    bench.flush();
}

#[inline(never)]
fn measured(bench: &mut Bench, selects: &[Arc<Prepared>], reads: &[ExecuteOptions]) -> usize {
    read_all(bench, selects, reads)
}

fn read_all(bench: &mut Bench, selects: &[Arc<Prepared>], reads: &[ExecuteOptions]) -> usize {
    let selects = selects.iter().cycle();
    let all = reads.iter().zip(selects);
    all.map(|(options, select)| bench.read(select, options).cells.len())
        .sum()
}

fn main() {
    let arguments: Vec<u32> = std::env::args()
        .skip(1)
        .map(|number| number.parse().unwrap())
        .collect();
    let [columns, bytes, reads, wanted] = arguments[..] else {
        panic!("COLUMNS BYTES READS WANTED");
    };
    let mut bench = Bench::open();
    load(&mut bench, columns, bytes as usize);
    let names = names(columns.max(1));
    // Several statements, so that the columns start anywhere in a chunk.
    let selects: Vec<Arc<Prepared>> = (0..10)
        .map(|number| {
            let first = number * names.len() / 10;
            let chosen: Vec<&str> = (0..wanted as usize)
                .map(|index| &*names[(first + index) % names.len()])
                .collect();
            bench.prepare(&format!(
                "SELECT {} FROM ks.t WHERE k = ? AND c = ?",
                chosen.join(", ")
            ))
        })
        .collect();
    let rows = if columns == 0 { ROWS_OF_A_KEY } else { 1 };
    let options: Vec<ExecuteOptions> = (0..reads)
        .map(|read| with(vec![int(read / 7 % KEYS), int(read * 37 % rows)]))
        .collect();
    read_all(&mut bench, &selects, &options);
    let started = Instant::now();
    let given = measured(&mut bench, &selects, &options);
    let nanos = started.elapsed().as_nanos() / u128::from(reads);
    println!(
        "{wanted} of {columns} columns: {nanos} ns a read, {} bytes a read",
        given / reads as usize
    );
}
