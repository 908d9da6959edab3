//! Offline tools for SSTable files. They need no node and no schema: the header of a file describes its columns.
//!
//! | module | what |
//! | --- | --- |
//! | `arguments` | arguments of the tools on the command line |
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
mod arguments;
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
use std::sync::Arc;

use anyhow::Context as _;
use clap::Subcommand;
use ilion_env::{Env, RealEnv};

pub use arguments::{
    ConvertArguments, DumpArguments, Files, MergeArguments, MetadataArguments, ScrubArguments, SplitArguments,
};
pub use bench::{BenchArguments, Shape};
pub use metadata::units::TimestampUnit;
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
        // The program that reads the output has closed the pipe.
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
