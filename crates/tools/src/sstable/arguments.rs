//! The arguments of the tools on the command line.

use std::path::PathBuf;

use clap::Args;

use super::metadata::units::TimestampUnit;
use super::output_directory::OutputFormat;

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
