//! Ilion and cqlite-core read the same SSTable front to back, in one run: rows, time, rows a second, and the ratio.
//!
//! `cargo run --release --manifest-path benches/cqlite/Cargo.toml -- --schema TABLE.cql .../nb-1-big-Data.db`; `ilion sstable bench
//! --keep DIR` makes files. Both read through their own readers of one SSTable, without CQL, and give out decoded rows: Ilion's cells
//! share the bytes of a chunk, cqlite-core's are values of their types. Ilion reads on one thread; cqlite-core decompresses on
//! another than it decodes on, so CPU time is told as well. Rounds take turns; the best counts.

mod cqlite_reader;
mod ilion_reader;

use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context as _, ensure};
use clap::Parser;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ilion and cqlite-core read the same SSTable.
#[derive(Parser)]
struct Arguments {
    /// CREATE TABLE of the table, for cqlite-core; Ilion goes by Statistics.db.
    #[arg(long, value_name = "FILE")]
    schema: PathBuf,
    /// Times that each reads it.
    #[arg(long, default_value_t = 5)]
    rounds: u32,
    /// Data.db.
    data: PathBuf,
}

/// What one reading came to.
struct Reading {
    rows: u64,
    secs: f64,
    cpu_secs: f64,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let schema = std::fs::read_to_string(&arguments.schema)?;
    let cqlite = cqlite_reader::Reader::open(&arguments.data, &schema).context("cqlite-core opens it")?;
    let ilion = ilion_reader::Reader::open(&arguments.data).context("Ilion opens it")?;
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..arguments.rounds {
        ours.push(timed(|| ilion.read()).context("Ilion reads it")?);
        theirs.push(timed(|| cqlite.read()).context("cqlite-core reads it")?);
    }
    let (ours, theirs) = (best(ours)?, best(theirs)?);
    print("Ilion", &ours);
    print("cqlite-core 0.18", &theirs);
    println!(
        "Ilion reads {:.1} times as many rows a second, with {:.3} of the CPU time",
        rate(&ours) / rate(&theirs),
        ours.cpu_secs / theirs.cpu_secs
    );
    ensure!(
        ours.rows == theirs.rows,
        "they do not see the same number of rows"
    );
    Ok(())
}

fn timed(read: impl FnOnce() -> anyhow::Result<u64>) -> anyhow::Result<Reading> {
    let (started, cpu_before) = (Instant::now(), cpu_secs()?);
    let rows = read()?;
    Ok(Reading {
        rows,
        secs: started.elapsed().as_secs_f64(),
        cpu_secs: cpu_secs()? - cpu_before,
    })
}

/// Time of all threads on a CPU.
fn cpu_secs() -> anyhow::Result<f64> {
    let mut nanos = 0.0;
    for thread in std::fs::read_dir("/proc/self/task")? {
        // A thread may end meanwhile; pools of both keep theirs.
        let Ok(text) = std::fs::read_to_string(thread?.path().join("schedstat")) else {
            continue;
        };
        nanos += text.split_whitespace().next().unwrap_or("0").parse::<f64>()?;
    }
    Ok(nanos / 1e9)
}

fn best(readings: Vec<Reading>) -> anyhow::Result<Reading> {
    let best = readings.into_iter().min_by(|a, b| a.secs.total_cmp(&b.secs));
    best.context("at least one round is needed")
}

fn rate(reading: &Reading) -> f64 {
    reading.rows as f64 / reading.secs
}

fn print(name: &str, reading: &Reading) {
    println!(
        "{name}: {} rows in {:.3} s ({:.3} s of CPU): {:.0} rows/s",
        reading.rows,
        reading.secs,
        reading.cpu_secs,
        rate(reading)
    );
}
