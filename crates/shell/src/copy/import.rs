//! COPY FROM: records of a CSV file into a table, many at a time. Records that fail go into a file of their own.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, WriteFile};
use ilion_protocol::ColumnSpec;
use ilion_tools::Bar;

use crate::copy::options::Options;
use crate::copy::{Named, field, seconds};
use crate::csv::{Reader, Record};
use crate::error_text::print_failure;
use crate::paths::{FileReader, expand};
use crate::session::{Failure, How, RowFeed, WriteRow};
use crate::shell::Shell;

/// Maximum number of failures that are shown; the others are only counted.
const SHOWN_MAX: u64 = 10;
/// Records between two updates of the bar.
const BAR_STRIDE: u64 = 256;

impl Shell<'_> {
    pub(super) fn import(&mut self, path: &Path, named: &Named, options: &Options) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let file = match self.env.open_read(path) {
            Ok(file) => file,
            Err(error) => {
                return self.complain(&format!("Could not open '{}': {}", path.display(), error.source));
            }
        };
        let columns = match self.session.prepare(&insert(named, options)) {
            Ok(columns) => columns,
            Err(failure) => return self.complain_of(&failure),
        };
        let error_file = options.error_file.clone();
        let error_file =
            error_file.unwrap_or_else(|| format!("import_{}_{}.err", named.keyspace, named.table));
        let bar = Bar::of_bytes(&named.cql(), file.size_bytes());
        let mut records = Records {
            reader: Reader::new(options.dialect, FileReader::new(file)),
            options,
            columns: &columns[..named.columns.len().min(columns.len())],
            bar,
            read: 0,
            written: 0,
            failures: Failures::new(self.env.clone(), expand(&error_file)),
            end: None,
        };
        let how = How {
            is_traced: false,
            ..self.settings.how.clone()
        };
        let outcome = match records.begin(named) {
            Ok(()) => self.session.write_rows(&how, options.in_flight, &mut records),
            Err(problem) => {
                drop(records);
                return self.complain(&problem);
            }
        };
        let Records {
            written,
            failures,
            end,
            bar,
            ..
        } = records;
        drop(bar);
        let took = seconds(self.env.monotonic_nanos() - started);
        for problem in &failures.shown {
            self.complain(problem)?;
        }
        if failures.count > 0 {
            let count = failures.count;
            self.complain(&failures.summary(count))?;
        }
        if let Some(problem) = end {
            self.complain(&problem)?;
        }
        if let Err(failure) = outcome {
            self.complain(&format!("The import has stopped: {}", print_failure(&failure)))?;
        }
        let skipped = options.skipped_rows;
        self.output.say(&format!(
            "{written} rows imported from 1 files in {took} ({skipped} skipped)."
        ))
    }
}

fn insert(named: &Named, options: &Options) -> String {
    let markers = vec!["?"; named.columns.len()].join(", ");
    let ttl = options
        .ttl_secs
        .map_or_else(String::new, |secs| format!(" USING TTL {secs}"));
    format!(
        "INSERT INTO {} ({}) VALUES ({markers}){ttl}",
        named.cql(),
        named.cql_columns()
    )
}

/// The records of a file as rows.
struct Records<'a> {
    reader: Reader<FileReader>,
    options: &'a Options,
    columns: &'a [ColumnSpec],
    bar: Bar,
    /// Records that were read, without header and skipped ones.
    read: u64,
    written: u64,
    failures: Failures,
    /// Why the import ends before the file does.
    end: Option<String>,
}

impl Records<'_> {
    /// Passes over the header and the rows to skip. Compat: the names in the header are not used; only their number is checked.
    fn begin(&mut self, named: &Named) -> Result<(), String> {
        if self.options.has_header {
            let header = self.reader.next().map_err(|error| error.to_string())?;
            let names = header.map_or(named.columns.len(), |header| header.fields.len());
            if names != named.columns.len() {
                return Err(format!(
                    "The header has {names} names, but {} columns are imported: name them behind the table, in the order of the file.",
                    named.columns.len()
                ));
            }
        }
        for _ in 0..self.options.skipped_rows {
            self.reader.next().map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// The values of a record.
    fn values(&self, record: &Record) -> Result<Vec<Option<Vec<u8>>>, String> {
        let (found, wanted) = (record.fields.len(), self.columns.len());
        if found != wanted {
            return Err(format!("the record has {found} fields instead of {wanted}"));
        }
        let value = |(bytes, column): (&Vec<u8>, &ColumnSpec)| {
            let text =
                std::str::from_utf8(bytes).map_err(|_| format!("{}: this is not UTF-8", column.name))?;
            if text == self.options.null {
                return Ok(None);
            }
            let value = field::parse(&column.cql_type, text);
            value
                .map(Some)
                .map_err(|problem| format!("{}: {problem}", column.name))
        };
        record.fields.iter().zip(self.columns).map(value).collect()
    }

    fn has_failed_enough(&self) -> bool {
        self.options
            .failures_max
            .is_some_and(|most| self.failures.count > most)
    }
}

impl RowFeed for Records<'_> {
    fn next(&mut self) -> Option<WriteRow> {
        loop {
            if self.end.is_some() || self.options.rows_max.is_some_and(|most| self.read >= most) {
                return None;
            }
            if self.has_failed_enough() {
                self.end = Some(format!(
                    "The import ends, because {} rows have failed.",
                    self.failures.count
                ));
                return None;
            }
            let record = match self.reader.next() {
                Ok(Some(record)) => record,
                Ok(None) => return None,
                Err(error) => {
                    self.end = Some(format!("The file cannot be read: {error}"));
                    return None;
                }
            };
            self.read += 1;
            if self.read.is_multiple_of(BAR_STRIDE) {
                self.bar.at(self.reader.offset());
            }
            match self.values(&record) {
                Ok(values) => {
                    return Some(WriteRow {
                        values,
                        source: record.source,
                        line: record.line,
                    });
                }
                Err(problem) => self.failures.add(record.line, &record.source, &problem),
            }
        }
    }

    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => self.written += 1,
            Err(failure) => self.failures.add(row.line, &row.source, &print_failure(&failure)),
        }
    }
}

/// Records that failed.
struct Failures {
    env: Arc<dyn Env>,
    path: PathBuf,
    file: Option<Box<dyn WriteFile>>,
    count: u64,
    /// The first of them, for the user.
    shown: Vec<String>,
    /// Why the failed records could not be written to the file.
    lost: Option<String>,
}

impl Failures {
    fn new(env: Arc<dyn Env>, path: PathBuf) -> Self {
        Self {
            env,
            path,
            file: None,
            count: 0,
            shown: Vec::new(),
            lost: None,
        }
    }

    fn add(&mut self, line: u64, source: &[u8], problem: &str) {
        self.count += 1;
        if self.count <= SHOWN_MAX {
            self.shown
                .push(format!("Failed to import line {line}: {problem}"));
        }
        if let Err(error) = self.append(source) {
            self.lost.get_or_insert(error.to_string());
        }
    }

    fn append(&mut self, source: &[u8]) -> ilion_env::Result<()> {
        match &mut self.file {
            Some(file) => file.append(source),
            None => {
                let mut file = self.env.open_append(&self.path)?;
                file.append(source)?;
                self.file = Some(file);
                Ok(())
            }
        }
    }

    fn summary(&self, count: u64) -> String {
        match &self.lost {
            None => format!(
                "Failed to import {count} rows; they were appended to {}",
                self.path.display()
            ),
            Some(problem) => {
                format!("Failed to import {count} rows, and could not keep all of them: {problem}")
            }
        }
    }
}
