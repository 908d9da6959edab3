//! Arguments of experiment 4.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::bench::store::StoreArgs;

/// Arguments of experiment 4.
#[derive(Clone, Debug, clap::Args)]
pub struct E4Args {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Rows to insert.
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub rows: u64,
    /// Bytes of the value of a row; its key has ten.
    #[arg(long, default_value_t = 40, value_parser = RangedU64ValueParser::<u32>::new().range(1..=2_000_000))]
    pub value_size: u32,
    /// Connections, or threads when embedded.
    #[arg(long, default_value_t = 8, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub clients: u16,
    /// Requests under way on each connection.
    #[arg(long, default_value_t = 16, value_parser = RangedU64ValueParser::<u16>::new().range(1..=32768))]
    pub in_flight: u16,
    /// Rows of a range read.
    #[arg(long, default_value_t = 2, value_parser = RangedU64ValueParser::<u32>::new().range(1..=5000))]
    pub range_rows: u32,
    /// Seconds for which each kind of read is measured.
    #[arg(long, default_value_t = 10.0)]
    pub secs: f64,
    /// Seconds between the reads directly after the burst and the next ones; 0 leaves these out.
    #[arg(long, default_value_t = 60)]
    pub pause: u64,
    /// Creates this many SSTables: compaction is off, and the memtable is flushed after each part of the rows.
    #[arg(long, value_name = "COUNT", value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub sstables: Option<u64>,
    /// Options of the table, as after WITH.
    #[arg(long, value_name = "CQL")]
    pub with: Option<String>,
    /// Drops the page cache of the table's files (in --data) before each measurement; without it, the files are read once before,
    /// if --data is given.
    #[arg(long)]
    pub drop_cache: bool,
    /// Seed of the rows and of the order of reads.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
