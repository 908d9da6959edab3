//! Arguments of experiment 2.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::bench::store::StoreArgs;

/// The indexes of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Indexes {
    /// No index.
    None,
    /// One index with a hidden table.
    Table,
    /// Three indexes with hidden tables.
    Table3,
    /// One storage-attached index.
    Sai,
    /// Three storage-attached indexes.
    Sai3,
}

impl Indexes {
    /// The name in the printed table.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "no index",
            Self::Table => "1 table index",
            Self::Table3 => "3 table indexes",
            Self::Sai => "1 SAI index",
            Self::Sai3 => "3 SAI indexes",
        }
    }

    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::None => &[],
            Self::Table | Self::Sai => &["a"],
            Self::Table3 | Self::Sai3 => &["a", "b", "c"],
        }
    }

    pub fn using(self) -> &'static str {
        match self {
            Self::Sai | Self::Sai3 => " USING 'sai'",
            _ => "",
        }
    }

    pub fn table(self) -> &'static str {
        match self {
            Self::None => "e2_none",
            Self::Table => "e2_table",
            Self::Table3 => "e2_table3",
            Self::Sai => "e2_sai",
            Self::Sai3 => "e2_sai3",
        }
    }
}

/// Arguments of experiment 2.
#[derive(Clone, Debug, clap::Args)]
pub struct E2Args {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Rows of each table.
    #[arg(long, default_value_t = 200_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..=1_000_000_000))]
    pub rows: u64,
    /// Average number of rows with the same value.
    #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub per_value: u64,
    /// Bytes of the column without an index.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u32>::new().range(1..=2_000_000))]
    pub value_size: u32,
    /// Lets compactions run (SizeTieredCompactionStrategy). Otherwise all SSTables stay as they were flushed.
    #[arg(long)]
    pub compaction: bool,
    /// Number of queries of each pass.
    #[arg(long, default_value_t = 2000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub queries: u64,
    /// Connections that write, or threads when embedded.
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub clients: u16,
    /// Writes under way on each connection; queries run one at a time.
    #[arg(long, default_value_t = 16, value_parser = RangedU64ValueParser::<u16>::new().range(1..=32768))]
    pub in_flight: u16,
    /// Choices of indexes to measure; ratios are to the first.
    #[arg(long, value_delimiter = ',', default_values = ["none", "table", "table3", "sai", "sai3"])]
    pub indexes: Vec<Indexes>,
    /// Number of runs; the fastest is reported.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..))]
    pub runs: u16,
    /// Seed of the rows and of the order of queries.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
