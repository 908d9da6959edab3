//! The cost of an INSERT with change data capture, from the prepared statement to the memtable, on a disk in memory:
//!
//! ```text
//! cargo build --release -p ilion-query --example measure_captured
//! valgrind --tool=callgrind --toggle-collect='*measured*' target/release/examples/measure_captured CAPTURE CDC WRITES
//! ```
//! CAPTURE is on or off (`cdc_enabled`), CDC true or false (of the table). Rows have a key of 16 bytes and a value of 100.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a tool for developers")]

mod bench;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_commitlog::{Capture, Mode, WhenFull};
use ilion_engine::EngineOptions;
use ilion_query::{ExecuteOptions, Prepared};

use bench::{Bench, with};

#[inline(never)]
fn measured(bench: &mut Bench, insert: &Arc<Prepared>, writes: &[ExecuteOptions]) {
    for options in writes {
        bench.write(insert, options);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [capture, cdc, writes] = &arguments[..] else {
        println!("measure_captured on|off true|false WRITES");
        return;
    };
    let mut options = EngineOptions::below(Path::new("/ilion"));
    options.commit_log.mode = Mode::Periodic {
        period_millis: 10_000,
    };
    options.commit_log.capture = (capture == "on").then(|| Capture {
        dir: "/ilion/cdc_raw".into(),
        bytes_max: 4 << 30,
        excess_bytes: 0,
        when_full: WhenFull::Block,
        check_interval_millis: 250,
    });
    let mut bench = Bench::open_with(options);
    bench.run(&format!(
        "CREATE TABLE ks.t (k blob PRIMARY KEY, v blob) WITH cdc = {cdc}"
    ));
    let insert = bench.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)");
    let row = |number: u64| {
        let key = Bytes::from(format!("{:016x}", number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        with(vec![key, Bytes::from(vec![7; 100])])
    };
    let writes: Vec<ExecuteOptions> = (0..writes.parse().unwrap()).map(row).collect();
    measured(&mut bench, &insert, &writes);
    println!("{} writes", writes.len());
}
