//! `dump`: prints partitions as JSON like Cassandra's `sstabledump`, with positions and expiry; or, with `-d`, a line for each row.

use std::io::Write;
use std::sync::Arc;

use anyhow::Context as _;
use ilion_env::Env;
use ilion_rows::DecoratedKey;
use ilion_sstable::DataScan;
use ilion_sstable::dump::{Dump, DumpOptions, Layout, TimeStyle, debug_head, debug_unfiltered};

use super::arguments::DumpArguments;
use super::keys::{parse_key, print_key};
use super::progress::Progress;
use super::source::{Source, descriptors};

/// Size of the output buffer.
const TEXT_BYTES: usize = 64 << 10;

pub(super) fn run(env: &Arc<dyn Env>, arguments: &DumpArguments, out: &mut dyn Write) -> anyhow::Result<()> {
    print(env, arguments, env.now_secs(), out)
}

/// Prints partitions; cells are shown as expired if they have expired at `now_secs`.
pub(super) fn print(
    env: &Arc<dyn Env>,
    arguments: &DumpArguments,
    now_secs: i64,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    for descriptor in descriptors(env.as_ref(), &arguments.files.files)? {
        let source = Source::open(env, &descriptor)?;
        let options = DumpOptions {
            layout: if arguments.lines {
                Layout::Lines
            } else {
                Layout::Indented
            },
            times: if arguments.raw_times {
                TimeStyle::Raw
            } else {
                TimeStyle::Iso
            },
            now_secs: Some(now_secs),
        };
        let printer = Printer {
            dump: Dump::new(&source.table, options),
            scan: source.sstable.data_scan(&source.table)?,
            progress: Progress::new("dump", source.sstable.data_length()),
            source: &source,
            arguments,
            lines: String::new(),
            out,
        };
        printer.run()?;
    }
    Ok(())
}

struct Printer<'a> {
    source: &'a Source,
    arguments: &'a DumpArguments,
    scan: DataScan,
    dump: Dump,
    /// Lines of `-d` that are not written yet.
    lines: String,
    progress: Progress,
    out: &'a mut dyn Write,
}

impl Printer<'_> {
    fn run(mut self) -> anyhow::Result<()> {
        let outcome = if self.arguments.keys.is_empty() {
            self.all()
        } else {
            self.wanted()
        };
        // If an error occurred, the partitions before it are printed first.
        self.write()?;
        outcome?;
        if self.arguments.keys_only || !(self.arguments.lines || self.arguments.debug) {
            self.dump.finish();
        }
        self.write()
    }

    fn all(&mut self) -> anyhow::Result<()> {
        while self.partition()? {}
        Ok(())
    }

    /// Prints the partitions with the requested keys, in the order of the file.
    fn wanted(&mut self) -> anyhow::Result<()> {
        let mut keys = Vec::new();
        for text in &self.arguments.keys {
            let key = parse_key(&self.source.table, text)?;
            keys.push(DecoratedKey::new(self.source.partitioner, key));
        }
        keys.sort();
        keys.dedup();
        for key in keys {
            if let Some(position) = self.source.sstable.position_of(&key)? {
                self.scan.seek(position);
                let found = self.scan.next_partition()?;
                if found.is_some_and(|head| head.key == key) {
                    self.scan.seek(position);
                    self.partition()?;
                }
            }
        }
        Ok(())
    }

    /// Prints the next partition; returns false at the end.
    fn partition(&mut self) -> anyhow::Result<bool> {
        let Some(head) = self.scan.next_partition()? else {
            return Ok(false);
        };
        self.progress.at(self.scan.position());
        let excluded = &self.arguments.excluded;
        if !excluded.is_empty() && excluded.contains(&print_key(&self.source.table, &head.key.key)) {
            return Ok(true);
        }
        if self.arguments.keys_only {
            self.dump.key(&head.key);
            self.write_if_much()?;
            return Ok(true);
        }
        if self.arguments.debug {
            debug_head(&self.source.table, &head, self.scan.position(), &mut self.lines);
        } else {
            self.dump.begin(&head, Some(self.scan.position()));
        }
        loop {
            let position = self.scan.position();
            let Some(unfiltered) = self.scan.next_unfiltered()? else {
                break;
            };
            if self.arguments.debug {
                debug_unfiltered(&self.source.table, &head, &unfiltered, position, &mut self.lines);
            } else {
                self.dump.unfiltered(&unfiltered, Some(position));
            }
            self.progress.at(position);
            self.write_if_much()?;
        }
        if !self.arguments.debug {
            self.dump.end();
        }
        self.write_if_much()?;
        Ok(true)
    }

    fn write_if_much(&mut self) -> anyhow::Result<()> {
        if self.dump.text().len() + self.lines.len() >= TEXT_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> anyhow::Result<()> {
        for text in [self.dump.text(), &self.lines] {
            self.out.write_all(text.as_bytes()).context("writing to stdout")?;
        }
        self.dump.clear();
        self.lines.clear();
        Ok(())
    }
}
