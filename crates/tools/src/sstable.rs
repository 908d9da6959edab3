//! Offline tools for SSTable files: no node and no schema is needed, a file's own header says what its rows are.
//!
//! | module | what |
//! | --- | --- |
//! | `source` | the files that the user names, opened |
//! | `keys` | partition keys as text |
//! | `annotate` | every byte of Data.db with its name |
//! | `dump` | partitions as JSON |
//! | `metadata` | what Statistics.db says |
//! | `verify` | an SSTable checked against itself |
//! | `ordered` | a scan that refuses what is out of order |
//! | `rewrite` | new SSTables with the rows of old ones |
//! | `outputs` | one of them after another, each told of |
//! | `scrub` | what can be read of damaged ones, as new ones |
//! | `bench` | what reading and writing costs |
//! | `shape` | what new SSTables look like |
//! | `target` | where they go |
//! | `progress` | how far a long run is, for people |
//!
//! A file that is written to must not exist; input files are never changed.

mod annotate;
mod bench;
mod dump;
mod keys;
mod metadata;
mod ordered;
mod outputs;
mod progress;
mod rewrite;
mod scrub;
mod shape;
mod source;
mod target;
mod verify;

#[cfg(test)]
mod tests;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use ilion_env::{Env, RealEnv};

pub use metadata::TimestampUnit;

pub use bench::{BenchArguments, Shape};
pub use target::TargetFormat;

/// What to do with SSTable files.
#[derive(Subcommand)]
pub enum Command {
    /// Prints partitions as JSON, as Cassandra's sstabledump does.
    Dump(DumpArguments),
    /// Prints what Statistics.db says, as Cassandra's sstablemetadata does (dates in UTC).
    Metadata(MetadataArguments),
    /// Checks checksums, order, counts, and every component against the others; exit code 1 if something is damaged.
    Verify(Files),
    /// Writes each SSTable anew in another format.
    Convert(ConvertArguments),
    /// Writes the rows of several SSTables of one table as one, reconciled; nothing is purged.
    Merge(MergeArguments),
    /// Writes the rows of one SSTable as several smaller ones.
    Split(SplitArguments),
    /// Writes what can be read of damaged SSTables as new ones, and says what is lost.
    Scrub(ScrubArguments),
    /// Measures reading and writing of made-up tables beside compression alone.
    Bench(BenchArguments),
}

/// SSTable files: any component of each, or directories of a table.
#[derive(Args)]
pub struct Files {
    /// A component of an SSTable (such as nb-1-big-Data.db), or a directory for all SSTables in it.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// What to print of the files.
#[derive(Args)]
pub struct DumpArguments {
    #[command(flatten)]
    pub files: Files,
    /// Instead of JSON, every byte of the uncompressed Data.db: offset, length, bytes and what they are.
    #[arg(long, conflicts_with_all = ["lines", "raw_times", "keys_only", "excluded"])]
    pub annotate: bool,
    /// Instead of JSON, a line for each row as Cassandra's own objects print themselves, timestamps and TTLs included.
    #[arg(short = 'd', long = "debug", conflicts_with_all = ["annotate", "lines", "raw_times", "keys_only"])]
    pub debug: bool,
    /// One partition a line.
    #[arg(short = 'l', long)]
    pub lines: bool,
    /// Times as numbers, as they are stored.
    #[arg(short = 't', long)]
    pub raw_times: bool,
    /// Only the keys.
    #[arg(short = 'e', long)]
    pub keys_only: bool,
    /// Only this partition; may be repeated. Components of a key are joined by colons.
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    pub keys: Vec<String>,
    /// All but this partition; may be repeated.
    #[arg(short = 'x', long = "exclude", value_name = "KEY")]
    pub excluded: Vec<String>,
}

/// Of which files to print the metadata.
#[derive(Args)]
pub struct MetadataArguments {
    #[command(flatten)]
    pub files: Files,
    /// Grace period for the estimate of droppable tombstones.
    #[arg(short = 'g', long, default_value_t = 0, value_name = "SECONDS")]
    pub gc_grace_seconds: u64,
    /// Reads all rows, and says how many there are and which partitions are the largest.
    #[arg(short = 's', long)]
    pub scan: bool,
    /// With colors of a terminal.
    #[arg(short = 'c', long)]
    pub colors: bool,
    /// Histograms of finer bars, not of ASCII.
    #[arg(short = 'u', long)]
    pub unicode: bool,
    /// What the writers of the rows took for the unit of timestamps.
    #[arg(
        short = 't',
        long,
        value_enum,
        ignore_case = true,
        default_value = "MICROSECONDS",
        value_name = "UNIT"
    )]
    pub timestamp_unit: TimestampUnit,
}

/// What to write in which format.
#[derive(Args)]
pub struct ConvertArguments {
    /// Format of the new SSTables.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: TargetFormat,
    /// Directory of the new SSTables; made if it is not there.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

/// What to merge.
#[derive(Args)]
pub struct MergeArguments {
    /// Format of the new SSTable; without it, the newest of the inputs'.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<TargetFormat>,
    /// Directory of the new SSTable; made if it is not there.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

/// What to split.
#[derive(Args)]
pub struct SplitArguments {
    /// Where one SSTable ends and the next begins: at so many MiB of its Data.db on disk, behind the partition that reaches them.
    #[arg(short = 's', long = "size", value_name = "MIB", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub size_mib: u64,
    /// Directory of the new SSTables; made if it is not there.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    /// A component of the SSTable.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// What to scrub.
#[derive(Args)]
pub struct ScrubArguments {
    /// Directory of the new SSTables; made if it is not there.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

impl Command {
    /// True if it is run for what it prints alone, and not for its exit code or the files that it writes.
    fn only_prints(&self) -> bool {
        match self {
            Self::Dump(_) | Self::Metadata(_) | Self::Bench(_) => true,
            Self::Verify(_) | Self::Convert(_) | Self::Merge(_) | Self::Split(_) | Self::Scrub(_) => false,
        }
    }
}

/// Runs a tool; what it says goes to stdout.
///
/// # Errors
/// A file is damaged or cannot be read or written.
pub fn run(command: &Command) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let outcome = run_with(&env, command, &mut out).and_then(|()| out.flush().context("writing to stdout"));
    match outcome {
        // The reader of a pipe has seen enough.
        Err(error) if command.only_prints() && is_broken_pipe(&error) => Ok(()),
        outcome => outcome,
    }
}

fn run_with(env: &Arc<dyn Env>, command: &Command, out: &mut dyn Write) -> anyhow::Result<()> {
    match command {
        Command::Dump(arguments) if arguments.annotate => annotate::run(env, arguments, out),
        Command::Dump(arguments) => dump::run(env, arguments, out),
        Command::Metadata(arguments) => metadata::run(env, arguments, out),
        Command::Verify(files) => verify::run(env, files, out),
        Command::Convert(arguments) => rewrite::convert(env, arguments, out),
        Command::Merge(arguments) => rewrite::merge(env, arguments, out),
        Command::Split(arguments) => rewrite::split(env, arguments, out),
        Command::Scrub(arguments) => scrub::run(env, arguments, out),
        Command::Bench(arguments) => bench::run(env, arguments, out),
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.any(|cause| cause.kind() == io::ErrorKind::BrokenPipe)
}
