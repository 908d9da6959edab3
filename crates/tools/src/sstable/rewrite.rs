//! `convert`, `merge` and `split`: new SSTables with the rows of old ones. No tombstones are purged.
//!
//! They are compactions without a purge: plain rows are copied from the bytes of the old files.

use std::io::Write;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_compaction::{Watched, merge_into};
use ilion_env::Env;
use ilion_rows::{Cursor, Direction, MergeCursor};
use ilion_sstable::{Component, Descriptor};

use super::arguments::{ConvertArguments, MergeArguments, SplitArguments};
use super::ordered::OrderedScan;
use super::output_directory::{OutputDirectory, OutputFormat};
use super::output_schema::OutputSchema;
use super::outputs::Outputs;
use super::progress::{Progress, SharedProgress};
use super::source::{Source, descriptors, read_statistics};

/// Converts each input to a file of the other format.
pub(super) fn convert(
    env: &Arc<dyn Env>,
    arguments: &ConvertArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), &arguments.files.files)?;
    let mut directory = OutputDirectory::open(env, &arguments.directory, &inputs)?;
    for input in &inputs {
        let statistics = read_statistics(env.as_ref(), input)?;
        let schema = OutputSchema::of(env.as_ref(), &[(input, &statistics)])?;
        let source = one(env, "convert", input, &schema)?;
        let inputs = std::slice::from_ref(input);
        let outputs = Outputs::whole(&mut directory, arguments.to, &schema, inputs, out);
        write(source, outputs).with_context(|| input.to_string())?;
    }
    Ok(())
}

/// Merges all inputs into one file.
pub(super) fn merge(
    env: &Arc<dyn Env>,
    arguments: &MergeArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), &arguments.files.files)?;
    let mut directory = OutputDirectory::open(env, &arguments.directory, &inputs)?;
    let mut statistics = Vec::new();
    for input in &inputs {
        statistics.push(read_statistics(env.as_ref(), input)?);
    }
    let sources: Vec<_> = inputs.iter().zip(&statistics).collect();
    let schema = OutputSchema::of(env.as_ref(), &sources)?;
    let mut scans = Vec::new();
    for input in &inputs {
        scans.push(OrderedScan::new(&Source::open(env, input)?, &schema)?);
    }
    let bytes = scans.iter().map(OrderedScan::data_length);
    let bytes = bytes.fold(0, u64::saturating_add);
    let progress = SharedProgress::new(Progress::new("merge", bytes));
    let watched = |scan| Box::new(watched(scan, &progress)) as Box<dyn Cursor>;
    let cursors = scans.into_iter().map(watched).collect();
    let merged = MergeCursor::new(cursors, schema.table.clone(), Direction::Forward);
    let format = arguments.to.unwrap_or_else(|| newest_format(&inputs));
    let outputs = Outputs::whole(&mut directory, format, &schema, &inputs, out);
    let outputs = outputs.of_partitions(schema.options.estimated_partitions);
    write(merged, outputs)
}

/// The newest format of the inputs, which can store the rows of all inputs.
fn newest_format(inputs: &[Descriptor]) -> OutputFormat {
    let formats = inputs.iter().map(OutputFormat::like);
    formats
        .max_by_key(|format| *format as u8)
        .unwrap_or(OutputFormat::Nb)
}

/// Splits the input into several files, each of about the requested size.
pub(super) fn split(
    env: &Arc<dyn Env>,
    arguments: &SplitArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), std::slice::from_ref(&arguments.file))?;
    let [input] = &inputs[..] else {
        bail!("{}: one SSTable is split at a time", arguments.file.display());
    };
    let mut directory = OutputDirectory::open(env, &arguments.directory, &inputs)?;
    let statistics = read_statistics(env.as_ref(), input)?;
    let mut schema = OutputSchema::of(env.as_ref(), &[(input, &statistics)])?;
    let size_bytes = arguments.size_mib.saturating_mul(1 << 20);
    let stored = env.file_size(&input.path(&Component::Data))?;
    let pieces = stored.div_ceil(size_bytes.max(1)).max(1);
    let of_piece = schema.options.estimated_partitions.div_ceil(pieces);
    schema.options.estimated_partitions = of_piece.saturating_mul(5) / 4;
    let source = one(env, "split", input, &schema)?;
    let format = OutputFormat::like(input);
    let outputs = Outputs::whole(&mut directory, format, &schema, &inputs, out);
    write(source, outputs.cut_at(size_bytes))
}

/// The rows of one SSTable, with a progress bar.
fn one(
    env: &Arc<dyn Env>,
    label: &str,
    input: &Descriptor,
    schema: &OutputSchema,
) -> anyhow::Result<impl Cursor> {
    let scan = OrderedScan::new(&Source::open(env, input)?, schema)?;
    let progress = SharedProgress::new(Progress::new(label, scan.data_length()));
    Ok(watched(scan, &progress))
}

/// A scan that reports its progress.
fn watched(scan: OrderedScan, progress: &SharedProgress) -> Watched<OrderedScan, SharedProgress> {
    let (bytes, items) = (scan.data_length(), scan.items());
    Watched::new(scan, progress.clone(), bytes, items)
}

/// Writes all rows of the source, then removes its progress bar.
fn write(mut source: impl Cursor, mut outputs: Outputs<'_>) -> anyhow::Result<()> {
    merge_into(&mut source, &mut outputs)?;
    drop(source);
    outputs.finish()
}
