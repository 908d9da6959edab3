//! `convert`, `merge` and `split`: new SSTables with the rows of old ones. Nothing is purged.

use std::io::Write;
use std::sync::Arc;

use anyhow::bail;
use ilion_env::Env;
use ilion_rows::{Cursor, Direction, MergeCursor};
use ilion_sstable::{Component, Descriptor};

use super::ordered::OrderedScan;
use super::progress::Progress;
use super::shape::Shape;
use super::source::{Source, descriptors, read_statistics};
use super::target::{Output, Target, TargetFormat};
use super::{ConvertArguments, MergeArguments, SplitArguments};

/// Rows between two looks at the progress.
const PROGRESS_EVERY: u64 = 256;

/// Each input as a file of the other format.
pub(super) fn convert(
    env: &Arc<dyn Env>,
    arguments: &ConvertArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), &arguments.files.files)?;
    let mut target = Target::open(env, &arguments.directory, &inputs)?;
    for input in &inputs {
        let statistics = read_statistics(env.as_ref(), input)?;
        let shape = Shape::of(env.as_ref(), &[(input, &statistics)])?;
        let source = Source::open(env, input)?;
        let mut output = target.begin(arguments.to, &shape)?;
        let mut scan = OrderedScan::new(&source, &shape)?;
        let mut progress = Progress::new("convert", scan.data_length());
        while copy_partition(&mut scan, &mut output, &mut progress)? {}
        drop(progress);
        tell(std::slice::from_ref(input), output, out)?;
    }
    Ok(())
}

/// All inputs as one file.
pub(super) fn merge(
    env: &Arc<dyn Env>,
    arguments: &MergeArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), &arguments.files.files)?;
    let mut target = Target::open(env, &arguments.directory, &inputs)?;
    let mut statistics = Vec::new();
    for input in &inputs {
        statistics.push(read_statistics(env.as_ref(), input)?);
    }
    let sources: Vec<_> = inputs.iter().zip(&statistics).collect();
    let shape = Shape::of(env.as_ref(), &sources)?;
    let mut cursors: Vec<Box<dyn Cursor>> = Vec::new();
    let mut bytes = 0;
    for input in &inputs {
        let scan = OrderedScan::new(&Source::open(env, input)?, &shape)?;
        bytes += scan.data_length();
        cursors.push(Box::new(scan));
    }
    let format = arguments.to.unwrap_or_else(|| newest_format(&inputs));
    let mut output = target.begin(format, &shape)?;
    let mut cursor = MergeCursor::new(cursors, shape.table.clone(), Direction::Forward);
    let mut progress = Progress::new("merge", bytes);
    while let Some(head) = cursor.next_partition()? {
        output.begin_partition(&head)?;
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            output.add(&unfiltered)?;
        }
        output.finish_partition()?;
        progress.at(output.data_bytes());
    }
    drop(progress);
    tell(&inputs, output, out)
}

/// A format that holds what all inputs hold.
fn newest_format(inputs: &[Descriptor]) -> TargetFormat {
    let formats = inputs.iter().map(TargetFormat::like);
    formats
        .max_by_key(|format| *format as u8)
        .unwrap_or(TargetFormat::Nb)
}

/// The input as several files, each of about the size that was asked for.
pub(super) fn split(
    env: &Arc<dyn Env>,
    arguments: &SplitArguments,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), std::slice::from_ref(&arguments.file))?;
    let [input] = &inputs[..] else {
        bail!("{}: one SSTable is split at a time", arguments.file.display());
    };
    let mut target = Target::open(env, &arguments.directory, &inputs)?;
    let statistics = read_statistics(env.as_ref(), input)?;
    let mut shape = Shape::of(env.as_ref(), &[(input, &statistics)])?;
    let source = Source::open(env, input)?;
    let size_bytes = arguments.size_mib.saturating_mul(1 << 20);
    let stored = env.file_size(&input.path(&Component::Data))?;
    let pieces = stored.div_ceil(size_bytes.max(1)).max(1);
    shape.options.estimated_partitions = shape.options.estimated_partitions.div_ceil(pieces) * 5 / 4;
    let mut scan = OrderedScan::new(&source, &shape)?;
    let mut progress = Progress::new("split", scan.data_length());
    let format = TargetFormat::like(input);
    let mut output = target.begin(format, &shape)?;
    while copy_partition(&mut scan, &mut output, &mut progress)? {
        if output.stored_bytes() >= size_bytes {
            let full = std::mem::replace(&mut output, target.begin(format, &shape)?);
            tell(&inputs, full, out)?;
        }
    }
    drop(progress);
    if output.partitions() > 0 {
        tell(&inputs, output, out)?;
    }
    Ok(())
}

/// Copies the next partition; false at the end.
fn copy_partition(
    scan: &mut OrderedScan,
    output: &mut Output,
    progress: &mut Progress,
) -> anyhow::Result<bool> {
    let Some(head) = scan.next_partition()? else {
        return Ok(false);
    };
    output.begin_partition(&head)?;
    let mut rows = 0u64;
    while let Some(unfiltered) = scan.next_unfiltered()? {
        output.add(&unfiltered)?;
        rows += 1;
        if rows.is_multiple_of(PROGRESS_EVERY) {
            progress.at(scan.position());
        }
    }
    output.finish_partition()?;
    progress.at(scan.position());
    Ok(true)
}

/// Finishes the file and says what it is.
fn tell(inputs: &[Descriptor], output: Output, out: &mut dyn Write) -> anyhow::Result<()> {
    let names: Vec<String> = inputs.iter().map(ToString::to_string).collect();
    let partitions = output.partitions();
    match output.finish()? {
        Some(descriptor) => writeln!(
            out,
            "{}: {partitions} partitions in {descriptor}",
            names.join(", ")
        )?,
        None => writeln!(out, "{}: no partitions, nothing was written", names.join(", "))?,
    }
    Ok(())
}
