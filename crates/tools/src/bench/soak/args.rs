//! Arguments of the soak.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::bench::store::StoreArgs;

/// The mixes of YCSB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Mix {
    /// Half reads, half updates; zipfian.
    A,
    /// 95 % reads, 5 % updates; zipfian.
    B,
    /// Reads; zipfian.
    C,
    /// 95 % reads, 5 % inserts; the newest rows most often.
    D,
    /// 95 % scans of 1 to 100 rows, 5 % inserts; zipfian.
    E,
    /// Half reads, half reads followed by an update of the row; zipfian.
    F,
}

/// How rows are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// Few rows are chosen often, spread over all keys.
    Zipfian,
    /// The newest rows are chosen most often.
    Latest,
    /// All alike.
    Uniform,
}

/// Arguments of the soak.
#[derive(Clone, Debug, clap::Args)]
pub struct SoakArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// The mix of YCSB.
    #[arg(long, value_enum, default_value_t = Mix::A)]
    pub mix: Mix,
    /// How rows are chosen [default: as the mix has it].
    #[arg(long, value_enum)]
    pub spread: Option<Spread>,
    /// Rows that are inserted first.
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub rows: u64,
    /// The rows are there from an earlier soak with the same seed, size and number of them. Rows that it inserted in mixes D and E are
    /// not read.
    #[arg(long)]
    pub keep: bool,
    /// Bytes of each of the five values of a row.
    #[arg(long, default_value_t = 34, value_parser = RangedU64ValueParser::<u32>::new().range(8..=2_000_000))]
    pub value_size: u32,
    /// Seconds of the mix.
    #[arg(long, default_value_t = 60, value_parser = RangedU64ValueParser::<u64>::new().range(1..=2_678_400))]
    pub secs: u64,
    /// Operations a second. Times then count from when an operation was due, so that waits of the store are not hidden by those of
    /// clients. Without it, clients ask as soon as they are answered.
    #[arg(long, value_parser = RangedU64ValueParser::<u64>::new().range(1..=100_000_000))]
    pub rate: Option<u64>,
    /// Connections, or threads when embedded.
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub clients: u16,
    /// Requests under way on each connection.
    #[arg(long, default_value_t = 16, value_parser = RangedU64ValueParser::<u16>::new().range(1..=32768))]
    pub in_flight: u16,
    /// Options of the table, as after WITH.
    #[arg(long, value_name = "CQL")]
    pub with: Option<String>,
    /// Seed of the rows and of their choice.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the result, with all seconds, as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl SoakArgs {
    /// How rows are chosen.
    pub fn spread(&self) -> Spread {
        let usual = match self.mix {
            Mix::D => Spread::Latest,
            _ => Spread::Zipfian,
        };
        self.spread.unwrap_or(usual)
    }
}
