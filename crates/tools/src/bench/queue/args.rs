//! Arguments of the queue experiment.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;

use crate::bench::queue::consumer::Finding;
use crate::bench::store::StoreArgs;

/// Arguments of the queue experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct QueueArgs {
    #[command(flatten)]
    pub store: StoreArgs,
    /// Cycles of all queues together: an entry is inserted, one that waits is read, and then taken out.
    #[arg(long, default_value_t = 1_000_000, value_parser = RangedU64ValueParser::<u64>::new().range(10..))]
    pub cycles: u64,
    /// How a waiting entry is found, and taken out.
    #[arg(long, value_enum, default_value_t = Finding::Partition)]
    pub find_by: Finding,
    /// Entries that wait in each queue.
    #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub depth: u64,
    /// Queues: each has a connection of its own, or a thread when embedded.
    #[arg(long, default_value_t = 1, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub queues: u16,
    /// Bytes of an entry, which are incompressible.
    #[arg(long, default_value_t = 100, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    pub value_size: u32,
    /// Options of the table, as after WITH.
    #[arg(long, value_name = "CQL")]
    pub with: Option<String>,
    /// Seed of the entries.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Writes the result as JSON.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}
