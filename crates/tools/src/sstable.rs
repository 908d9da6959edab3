//! Offline tools for SSTable files. They need no node and no schema: the header of a file describes its columns.
//!
//! | module | what |
//! | --- | --- |
//! | `source` | the files that the user names, opened |
//! | `keys` | partition keys as text |
//! | `annotate` | every byte of Data.db with its meaning |
//! | `dump` | partitions as JSON |
//! | `metadata` | the content of Statistics.db |
//! | `verify` | checks of an SSTable |
//! | `ordered` | a scan that fails if rows are out of order |
//! | `rewrite` | new SSTables with the rows of old ones |
//! | `outputs` | the sequence of new SSTables |
//! | `scrub` | new SSTables with the readable rows of damaged ones |
//! | `bench` | the cost of reading and writing |
//! | `output_schema` | table and options of new SSTables |
//! | `output_directory` | the directory of new SSTables |
//! | `progress` | a progress bar |
//!
//! Tools never overwrite a file, and never change input files.

mod annotate;
mod bench;
mod dump;
mod keys;
mod metadata;
mod ordered;
mod output_directory;
mod output_schema;
mod outputs;
mod progress;
mod rewrite;
mod scrub;
mod source;
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
pub use output_directory::OutputFormat;
pub use scrub::salvage;

/// What to do with SSTable files.
#[derive(Subcommand)]
pub enum Command {
    /// Prints partitions as JSON, as Cassandra's sstabledump does.
    Dump(DumpArguments),
    /// Prints the content of Statistics.db, as Cassandra's sstablemetadata does (dates in UTC).
    Metadata(MetadataArguments),
    /// Checks checksums, order, counts, and every component against the others; exit code 1 if an SSTable is damaged.
    Verify(Files),
    /// Converts each SSTable to another format.
    Convert(ConvertArguments),
    /// Merges several SSTables of one table into one. Rows are reconciled, and no tombstones are purged.
    Merge(MergeArguments),
    /// Splits one SSTable into several smaller ones.
    Split(SplitArguments),
    /// Writes the readable rows of damaged SSTables to new ones, and reports what is lost.
    Scrub(ScrubArguments),
    /// Measures reading and writing of generated tables, in comparison with compression alone.
    Bench(BenchArguments),
}

/// SSTable files: a component of each, or directories of tables.
#[derive(Args)]
pub struct Files {
    /// A component of an SSTable (such as nb-1-big-Data.db), or a directory for all SSTables in it.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
}

/// Arguments of `dump`.
#[derive(Args)]
pub struct DumpArguments {
    #[command(flatten)]
    pub files: Files,
    /// Instead of JSON, prints every byte of the uncompressed Data.db: offset, length, bytes and their meaning.
    #[arg(long, conflicts_with_all = ["lines", "raw_times", "keys_only", "excluded"])]
    pub annotate: bool,
    /// Instead of JSON, prints a line for each row in the format of Cassandra's own objects, with timestamps and TTLs.
    #[arg(short = 'd', long = "debug", conflicts_with_all = ["annotate", "lines", "raw_times", "keys_only"])]
    pub debug: bool,
    /// Prints one partition per line.
    #[arg(short = 'l', long)]
    pub lines: bool,
    /// Prints times as the stored numbers.
    #[arg(short = 't', long)]
    pub raw_times: bool,
    /// Prints only the keys.
    #[arg(short = 'e', long)]
    pub keys_only: bool,
    /// Prints only this partition; may be repeated. Components of a key are joined by colons.
    #[arg(short = 'k', long = "key", value_name = "KEY")]
    pub keys: Vec<String>,
    /// Leaves out this partition; may be repeated.
    #[arg(short = 'x', long = "exclude", value_name = "KEY")]
    pub excluded: Vec<String>,
}

/// Arguments of `metadata`.
#[derive(Args)]
pub struct MetadataArguments {
    #[command(flatten)]
    pub files: Files,
    /// Grace period for the estimate of droppable tombstones.
    #[arg(short = 'g', long, default_value_t = 0, value_name = "SECONDS")]
    pub gc_grace_seconds: u64,
    /// Reads all rows; prints their number and the largest partitions.
    #[arg(short = 's', long)]
    pub scan: bool,
    /// Uses the colors of a terminal.
    #[arg(short = 'c', long)]
    pub colors: bool,
    /// Draws histograms with Unicode instead of ASCII.
    #[arg(short = 'u', long)]
    pub unicode: bool,
    /// The unit of the timestamps in the files.
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

/// Arguments of `convert`.
#[derive(Args)]
pub struct ConvertArguments {
    /// Format of the new SSTables.
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: OutputFormat,
    /// Directory of the new SSTables; created if absent.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

/// Arguments of `merge`.
#[derive(Args)]
pub struct MergeArguments {
    /// Format of the new SSTable [default: the newest of the inputs].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub to: Option<OutputFormat>,
    /// Directory of the new SSTable; created if absent.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

/// Arguments of `split`.
#[derive(Args)]
pub struct SplitArguments {
    /// Size of Data.db on disk, in MiB, at which a new SSTable begins; partitions are not cut.
    #[arg(short = 's', long = "size", value_name = "MIB", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    pub size_mib: u64,
    /// Directory of the new SSTables; created if absent.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    /// A component of the SSTable.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `scrub`.
#[derive(Args)]
pub struct ScrubArguments {
    /// Directory of the new SSTables; created if absent.
    #[arg(value_name = "OUT_DIR")]
    pub directory: PathBuf,
    #[command(flatten)]
    pub files: Files,
}

impl Command {
    /// True for tools whose only purpose is their output, as opposed to their exit code or the files that they write.
    fn only_prints(&self) -> bool {
        match self {
            Self::Dump(_) | Self::Metadata(_) | Self::Bench(_) => true,
            Self::Verify(_) | Self::Convert(_) | Self::Merge(_) | Self::Split(_) | Self::Scrub(_) => false,
        }
    }
}

/// Runs a tool; its output goes to stdout.
///
/// # Errors
/// A file is damaged, or cannot be read or written.
pub fn run(command: &Command) -> anyhow::Result<()> {
    let env: Arc<dyn Env> = RealEnv::new();
    let mut out = BufWriter::with_capacity(64 << 10, io::stdout().lock());
    let outcome = run_with(&env, command, &mut out).and_then(|()| out.flush().context("writing to stdout"));
    match outcome {
        // The reader of the pipe has closed it.
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
