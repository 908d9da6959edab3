//! Writes with indexes, to count their instructions:
//!
//! ```text
//! cargo build --release -p ilion-server --example index_cost
//! for indexes in none table table3 sai sai3; do
//!     valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect='*index_cost::measured*' \
//!         target/release/examples/index_cost $indexes 30000
//! done
//! ```
//! The collected instructions, divided by the count, are those of one row. The third argument chooses the operation:
//!
//! | | |
//! | --- | --- |
//! | `insert` (the default) | one INSERT of a new row |
//! | `update` | one INSERT that changes the indexed values of a row in memory |
//! | `flush` | a flush of new rows |
//! | `flush-update` | a flush of rows whose indexed values were changed in memory |
//! | `compact` | a compaction of four SSTables of different rows, hidden tables too |
//! | `compact-update` | a compaction of four SSTables that have the same rows with other values; per row of the inputs |
//!
//! Also prints how many pages were touched for the first time.

#![expect(clippy::unwrap_used, reason = "a tool for developers")]

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::MemEnv;
use ilion_query::{ClientState, ExecuteOptions, Value, Values};
use ilion_server::ServerNode;
use ilion_settings::{CommitLogSync, Settings};

const ROWS_OF_A_VALUE: u64 = 10;
const SSTABLES: u64 = 4;

fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ (mixed >> 31)
}

fn row(number: u64, count: u64, generation: u64) -> Values {
    let bytes = |bytes: &[u8]| Value::Bytes(Bytes::copy_from_slice(bytes));
    let value = |column: u64| {
        let value = mixed(number * 3 + column + generation * count * 3) % (count / ROWS_OF_A_VALUE).max(1);
        bytes(&u32::try_from(value).unwrap().to_be_bytes())
    };
    let mut key = [0; 10];
    key[2..].copy_from_slice(&mixed(number).to_be_bytes());
    Values::Positional(vec![
        bytes(&key),
        value(0),
        value(1),
        value(2),
        Value::Bytes(Bytes::from_static(&[7; 100])),
    ])
}

/// The measured operation, a function of its own so that callgrind can select it. Returns how many pages were touched for the
/// first time.
#[inline(never)]
fn measured(act: impl FnOnce()) -> u64 {
    let before = page_faults();
    act();
    page_faults() - before
}

fn page_faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap();
    fields.split_whitespace().nth(7).unwrap().parse().unwrap()
}

#[expect(clippy::print_stdout, reason = "this is what it is for")]
fn main() {
    let mut arguments = std::env::args().skip(1);
    let indexes = arguments.next().unwrap_or_else(|| "none".to_owned());
    let count: u64 = arguments.next().map_or(30_000, |count| count.parse().unwrap());
    let what = arguments.next().unwrap_or_else(|| "insert".to_owned());
    let settings = Settings {
        directory: "/ilion".into(),
        commitlog_sync: CommitLogSync::Periodic,
        ..Settings::default()
    };
    let node = ServerNode::open(Arc::new(MemEnv::new(1)), &settings).unwrap();
    let processor = node.processor();
    let mut client = ClientState::default();
    let mut run = |text: &str| {
        let result = processor.query(&mut client, text, &ExecuteOptions::default());
        result.unwrap();
    };
    run("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    run(
        "CREATE TABLE ks.t (k blob PRIMARY KEY, a int, b int, c int, v blob) \
         WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}",
    );
    let columns = if indexes.ends_with('3') {
        &["a", "b", "c"][..]
    } else {
        &["a"]
    };
    let using = if indexes.starts_with("sai") {
        " USING 'sai'"
    } else {
        ""
    };
    for column in columns.iter().filter(|_| indexes != "none") {
        run(&format!("CREATE INDEX ON ks.t ({column}){using}"));
    }
    let insert = "INSERT INTO ks.t (k, a, b, c, v) VALUES (?, ?, ?, ?, ?)";
    let insert = processor.prepare(&client, insert, None).unwrap();
    let rows = |numbers: Range<u64>, generation| -> Vec<ExecuteOptions> {
        let with = |number| ExecuteOptions {
            values: row(number, count, generation),
            ..ExecuteOptions::default()
        };
        numbers.map(with).collect()
    };
    let engine = node.engine();
    let table = engine.schema().table("ks", "t").unwrap().id;
    let mut write = |all: &[ExecuteOptions]| {
        for options in all {
            processor.execute(&mut client, &insert, options).unwrap();
        }
    };
    let part = count / SSTABLES;
    let mut sstables = |rows: &dyn Fn(u64) -> Vec<ExecuteOptions>| {
        for number in 0..SSTABLES {
            write(&rows(number));
            engine.flush(table).unwrap();
        }
    };
    let faults = match &*what {
        "insert" => {
            let all = rows(0..count, 0);
            measured(|| write(&all))
        }
        "update" => {
            write(&rows(0..count, 0));
            let all = rows(0..count, 1);
            measured(|| write(&all))
        }
        "flush" => {
            write(&rows(0..count, 0));
            measured(|| engine.flush(table).unwrap())
        }
        "flush-update" => {
            write(&rows(0..count, 0));
            write(&rows(0..count, 1));
            measured(|| engine.flush(table).unwrap())
        }
        "compact" => {
            sstables(&|number| rows(number * part..(number + 1) * part, 0));
            measured(|| engine.compact(table).unwrap())
        }
        "compact-update" => {
            sstables(&|number| rows(0..part, number));
            measured(|| engine.compact(table).unwrap())
        }
        other => return println!("{other} is not known"),
    };
    let faults = faults as f64 / count as f64;
    println!("{indexes} {what}: {count} rows, {faults:.3} page faults each");
}
