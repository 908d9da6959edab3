//! `scrub`: writes the readable rows of a damaged SSTable to a new one.
//!
//! Data.db is read from start to end. After an error, the index gives the start of the next partition, or of the next block of rows
//! in a wide partition. Lost partitions are reported by key, if the index has the key. Partitions that are out of order are written to
//! further SSTables. The damaged file is not changed.

mod damaged;
mod entries;
mod rows;

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use ilion_env::Env;
use ilion_rows::{ClusteringComparator, DecoratedKey, PartitionHead};
use ilion_sstable::{DataScan, Descriptor, Error, IndexedPartition};

use super::arguments::ScrubArguments;
use super::keys::print_key;
use super::output_directory::{Output, OutputDirectory, OutputFormat};
use super::progress::Progress;
use super::source::descriptors;
use damaged::Damaged;
use entries::Entries;
use rows::Rows;

pub(super) fn run(env: &Arc<dyn Env>, arguments: &ScrubArguments, out: &mut dyn Write) -> anyhow::Result<()> {
    let inputs = descriptors(env.as_ref(), &arguments.files.files)?;
    let mut directory = OutputDirectory::open(env, &arguments.directory, &inputs)?;
    let mut unreadable = 0;
    for input in &inputs {
        let damaged = Damaged::open(env.as_ref(), input, out)?;
        let progress = Progress::new("scrub", damaged.data.data_length());
        let scrub = Scrub::new(env.as_ref(), &damaged, progress, out)?;
        unreadable += usize::from(!scrub.run(&mut directory)?);
    }
    if unreadable > 0 {
        out.flush()?;
        bail!(
            "nothing could be read of {unreadable} of {} SSTables",
            inputs.len()
        );
    }
    Ok(())
}

/// Writes the readable rows of the SSTable with this Data.db to new SSTables in a directory. Returns the lines that the command would
/// print.
///
/// # Errors
/// The files cannot be opened at all, or the new ones cannot be written.
pub fn salvage(env: &Arc<dyn Env>, data: &Path, directory: &Path) -> anyhow::Result<Vec<String>> {
    let (input, _) =
        Descriptor::from_path(data).with_context(|| format!("{}: no SSTable", data.display()))?;
    let input = &input;
    let mut directory = OutputDirectory::open(env, directory, std::slice::from_ref(input))?;
    let mut out = Vec::new();
    let damaged = Damaged::open(env.as_ref(), input, &mut out)?;
    // Without a bar: this runs in a node, whose stderr is the log.
    Scrub::new(env.as_ref(), &damaged, Progress::none(), &mut out)?.run(&mut directory)?;
    let text = String::from_utf8_lossy(&out);
    Ok(text.lines().map(str::to_owned).collect())
}

/// Where a partition ends.
enum End {
    /// At this position.
    At(u64),
    /// Its end is unknown.
    Unknown,
    /// The end of Data.db was reached.
    OfData,
}

struct Scrub<'a> {
    damaged: &'a Damaged,
    scan: DataScan,
    entries: Entries,
    comparator: ClusteringComparator,
    progress: Progress,
    out: &'a mut dyn Write,
    last_key: Option<DecoratedKey>,
    /// Keys and positions of partitions that were out of order.
    misplaced: Vec<(DecoratedKey, u64)>,
    lost_partitions: u64,
    lost_in_part: u64,
}

impl<'a> Scrub<'a> {
    fn new(
        env: &dyn Env,
        damaged: &'a Damaged,
        progress: Progress,
        out: &'a mut dyn Write,
    ) -> anyhow::Result<Self> {
        let entries = Entries::open(env, damaged);
        if let Some(reason) = entries.trouble() {
            writeln!(out, "{}: the index is damaged, too: {reason}", damaged.descriptor)?;
        }
        Ok(Self {
            scan: damaged.scan()?,
            entries,
            comparator: ClusteringComparator::of(&damaged.schema.table),
            progress,
            damaged,
            out,
            last_key: None,
            misplaced: Vec::new(),
            lost_partitions: 0,
            lost_in_part: 0,
        })
    }

    /// Scrubs the SSTable. Returns false if no partition could be read.
    fn run(mut self, directory: &mut OutputDirectory) -> anyhow::Result<bool> {
        let format = OutputFormat::like(&self.damaged.descriptor);
        let mut output = directory.begin(format, &self.damaged.schema)?;
        self.all(&mut output)?;
        let mut saved = output.partitions();
        let mut written: Vec<String> = output.finish()?.iter().map(ToString::to_string).collect();
        while !self.misplaced.is_empty() {
            let mut output = directory.begin(format, &self.damaged.schema)?;
            self.sorted(&mut output)?;
            let partitions = output.partitions();
            saved += partitions;
            if let Some(descriptor) = output.finish()? {
                written.push(format!("{descriptor} ({partitions} that were out of order)"));
            }
        }
        let written = match &written[..] {
            [] => "nothing was written".to_owned(),
            written => format!("written to {}", written.join(", ")),
        };
        writeln!(
            self.out,
            "{}: {saved} partitions saved, {} of them in part; {} lost; {written}",
            self.damaged.descriptor, self.lost_in_part, self.lost_partitions
        )?;
        Ok(saved > 0)
    }

    /// Writes all partitions, in the order of Data.db.
    fn all(&mut self, output: &mut Output) -> anyhow::Result<()> {
        let data_length = self.damaged.data.data_length();
        let mut position = 0;
        while position < data_length {
            self.progress.at(position);
            let entry = self.entries.take_at(position);
            let end = match self.partition(position, entry.as_ref(), output)? {
                End::At(end) => end,
                End::OfData => break,
                End::Unknown => match self.entries.position_after(position) {
                    Some(next) => next,
                    None => {
                        self.tell_rest(position, data_length)?;
                        break;
                    }
                },
            };
            position = end.max(position + 1);
        }
        Ok(())
    }

    /// Reports the loss of all partitions after damage, if the index has no further entry.
    fn tell_rest(&mut self, position: u64, data_length: u64) -> anyhow::Result<()> {
        if self.entries.trouble().is_some() {
            writeln!(
                self.out,
                "  lost: all partitions after byte {position} of Data.db, up to byte {data_length}"
            )?;
        }
        Ok(())
    }

    /// Writes the partitions that were out of order, ascending. Those with equal keys wait for the next SSTable.
    fn sorted(&mut self, output: &mut Output) -> anyhow::Result<()> {
        let mut misplaced = std::mem::take(&mut self.misplaced);
        misplaced.sort();
        self.last_key = None;
        for (_, position) in misplaced {
            self.partition(position, None, output)?;
        }
        Ok(())
    }

    fn partition(
        &mut self,
        position: u64,
        entry: Option<&IndexedPartition>,
        output: &mut Output,
    ) -> anyhow::Result<End> {
        self.scan.seek(position);
        let head = match self.scan.next_partition() {
            Ok(Some(head)) => self.with_right_key(head, entry),
            Ok(None) => return Ok(End::OfData),
            Err(error) => {
                self.lost_partitions += 1;
                let key = entry
                    .and_then(|entry| entry.key.as_ref())
                    .map(|key| self.name(key));
                let key = key.unwrap_or_else(|| "with an unknown key".to_owned());
                writeln!(
                    self.out,
                    "  lost: the partition {key} at byte {position}: {error}"
                )?;
                return Ok(End::Unknown);
            }
        };
        if self.last_key.as_ref().is_some_and(|last| *last >= head.key) {
            self.misplaced.push((head.key, position));
            return Ok(self.pass());
        }
        let mut key = head.key.clone();
        // Copied, since a slice would keep its chunk in memory.
        key.key = bytes::Bytes::copy_from_slice(&key.key);
        self.last_key = Some(key);
        output.begin_partition(&head)?;
        let end = self.rows(&head.key, entry, output);
        output.finish_partition()?;
        end
    }

    /// Moves to the end of the partition.
    fn pass(&mut self) -> End {
        loop {
            match self.scan.next_unfiltered() {
                Ok(Some(_)) => {}
                Ok(None) => return End::At(self.scan.position()),
                Err(_) => return End::Unknown,
            }
        }
    }

    /// Writes the rows that can be read.
    fn rows(
        &mut self,
        key: &DecoratedKey,
        entry: Option<&IndexedPartition>,
        output: &mut Output,
    ) -> anyhow::Result<End> {
        let mut rows = Rows::new(self.comparator.clone());
        let mut is_whole = true;
        loop {
            let position = self.scan.position();
            let read = self.scan.next_unfiltered();
            self.progress.at(position);
            let trouble = match read {
                Ok(None) if rows.is_closed() => {
                    rows.finish(output)?;
                    return Ok(End::At(self.scan.position()));
                }
                Ok(None) => "a deleted range is open at the end of the partition".to_owned(),
                Ok(Some(unfiltered)) => match rows.take(unfiltered, output)? {
                    Ok(()) => continue,
                    Err(expected) => expected.to_owned(),
                },
                Err(error) => describe(&error),
            };
            self.lost_in_part += u64::from(std::mem::replace(&mut is_whole, false));
            let next = self.entries.block_after(entry, position);
            let until = match &next {
                Some(block) => format!("byte {}", block.position),
                None => "its end".to_owned(),
            };
            let key = self.name(&key.key);
            writeln!(
                self.out,
                "  lost: of the partition {key}, from byte {position} to {until}: {trouble}"
            )?;
            match next {
                Some(block) => {
                    rows.resume(block.open, output)?;
                    self.scan.seek_within(block.position);
                }
                None => {
                    rows.cut(output)?;
                    rows.finish(output)?;
                    return Ok(End::Unknown);
                }
            }
        }
    }

    /// Chooses between the key in Data.db and the one in the index if they differ. Without checksums, either may be damaged: the one that
    /// is in order is taken.
    fn with_right_key(&self, mut head: PartitionHead, entry: Option<&IndexedPartition>) -> PartitionHead {
        let Some(indexed) = entry.and_then(|entry| entry.key.clone()) else {
            return head;
        };
        let indexed = DecoratedKey::new(self.damaged.partitioner, indexed);
        let follows = |key: &DecoratedKey| self.last_key.as_ref().is_none_or(|last| last < key);
        let next = self
            .entries
            .next_key()
            .map(|key| DecoratedKey::new(self.damaged.partitioner, key));
        let is_in_order = |key: &DecoratedKey| follows(key) && next.as_ref().is_none_or(|next| key < next);
        if indexed != head.key
            && !self.damaged.is_protected
            && !is_in_order(&head.key)
            && is_in_order(&indexed)
        {
            head.key = indexed;
        }
        head
    }

    fn name(&self, key: &[u8]) -> String {
        format!("{:?}", print_key(&self.damaged.schema.table, key))
    }
}

fn describe(error: &Error) -> String {
    match error {
        Error::Corrupt { offset, expected, .. } => format!("at byte {offset}: expected {expected}"),
        error => error.to_string(),
    }
}
