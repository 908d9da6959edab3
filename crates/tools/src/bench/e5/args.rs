//! Arguments of experiment 5.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::bench::store::StoreArgs;

/// Arguments of experiment 5.
#[derive(Clone, Debug, clap::Args)]
pub struct E5Args {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Numbers of blobs in a row, separated by commas.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100], value_parser = RangedU64ValueParser::<u16>::new().range(1..=1000))]
    pub columns: Vec<u16>,
    /// Bytes of a blob, which are incompressible.
    #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<u32>::new().range(1..=8_000_000))]
    pub value_size: u32,
    /// Rows of each table; partitions in the other schema.
    #[arg(long, default_value_t = 200, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub rows: u64,
    /// How often each row is read.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub passes: u64,
    /// Connections, or threads when embedded.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub clients: u16,
    /// Options of the tables, as after WITH.
    #[arg(long, value_name = "CQL")]
    pub with: Option<String>,
    /// Does not drop the page cache of the tables' files; without it, --data is required, and it is dropped before each measurement.
    #[arg(long)]
    pub keep_cache: bool,
    /// Seed of the rows and of the order of reads.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
