//! Ilion and RocksDB on the same data, embedded, in one run: load, reads by key, short and long ranges, and the ratios.
//!
//! `cargo run --release --manifest-path benches/rocksdb/Cargo.toml -- --data DIR`. The crate compiles its own RocksDB, for which
//! it needs a C++ compiler and libclang; with Debian's `librocksdb-dev` and `ROCKSDB_LIB_DIR=/usr/lib/x86_64-linux-gnu
//! ROCKSDB_INCLUDE_DIR=/usr/include` it takes that one, in seconds.
//!
//! Both write a log that is not synced at every write (Ilion: `commitlog_sync: periodic`), compress with LZ4, and have the same
//! memory for memtables and blocks. Ilion is asked as its users ask it, by prepared CQL statements. Reads are measured when
//! flushes and compactions are done, in turn, several times, each time after the files have been read once; the median counts.

mod ilion_store;
mod measure;
mod page_cache;
mod report;
mod rocksdb_store;
mod rows;
mod store;

use std::path::PathBuf;

use clap::Parser;

use crate::ilion_store::IlionStore;
use crate::measure::{Kind, loaded, rate};
use crate::report::{Loaded, Report, Round};
use crate::rocksdb_store::RocksDbStore;
use crate::rows::Rows;
use crate::store::{Memory, Store};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Ilion and RocksDB on the same data, embedded.
#[derive(Parser)]
struct Arguments {
    /// Rows to load.
    #[arg(long, default_value_t = 10_000_000)]
    rows: u64,
    /// Bytes of a value; half of them can be compressed away. A key has 16.
    #[arg(long, default_value_t = 100)]
    value_size: usize,
    /// Threads that load and read.
    #[arg(long, default_value_t = 1)]
    threads: u64,
    /// How long each kind of read is measured, each time.
    #[arg(long, default_value_t = 5.0)]
    secs: f64,
    /// Times that each kind of read is measured.
    #[arg(long, default_value_t = 3)]
    rounds: u32,
    /// MiB for memtables, for each store.
    #[arg(long, default_value_t = 512)]
    memtable_mib: u64,
    /// MiB for blocks, for each store.
    #[arg(long, default_value_t = 512)]
    cache_mib: u64,
    /// How Ilion orders the rows; ByteOrderedPartitioner orders them as RocksDB does.
    #[arg(long, default_value = "Murmur3Partitioner")]
    partitioner: String,
    /// A new directory for both.
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let rows = Rows::new(arguments.rows, arguments.value_size);
    let memory = Memory {
        memtables_mib: arguments.memtable_mib,
        blocks_mib: arguments.cache_mib,
    };
    std::fs::create_dir_all(&arguments.data)?;
    let ilion = IlionStore::open(&arguments.data.join("ilion"), &memory, &arguments.partitioner)?;
    let rocksdb = RocksDbStore::open(&arguments.data.join("rocksdb"), &memory)?;
    let stores: [&dyn Store; 2] = [&ilion, &rocksdb];

    let mut report = Report::new(&arguments);
    for store in stores {
        eprintln!("{}: loading", store.name());
        report.loads.push(load(store, &rows, arguments.threads)?);
    }
    for kind in Kind::ALL {
        for _ in 0..arguments.rounds {
            for store in stores {
                page_cache::fill(&arguments.data.join(store.name().to_lowercase()))?;
                eprintln!("{}: {}", store.name(), kind.name());
                let disk_before = page_cache::read_from_disk();
                let per_sec = rate(store, &rows, kind, &arguments)?;
                let from_disk = disk_before.zip(page_cache::read_from_disk());
                let from_disk = from_disk.map(|(before, after)| after - before);
                report.add(kind, store.name(), Round { per_sec, from_disk });
            }
        }
    }
    println!("{}", report.print());
    if let Some(path) = &arguments.json {
        std::fs::write(path, serde_json::to_vec_pretty(&report)?)?;
    }
    Ok(())
}

fn load(store: &dyn Store, rows: &Rows, threads: u64) -> anyhow::Result<Loaded> {
    let secs = loaded(store, rows, threads)?;
    let begin = std::time::Instant::now();
    store.settle()?;
    Ok(Loaded {
        store: store.name(),
        rows_per_sec: rows.count as f64 / secs,
        settled_after_secs: begin.elapsed().as_secs_f64(),
        files: store.files()?,
    })
}
