//! COPY FROM: records of a CSV file into a table, many at a time.

use std::io;
use std::path::{Path, PathBuf};

use ilion_codec::crc32_extend;
use ilion_env::ReadFile;
use ilion_protocol::{ColumnSpec, Value, Values, ValuesBuilder};
use ilion_tools::Bar;

use crate::copy::acknowledged::{Acknowledged, Mark};
use crate::copy::failures::{Failures, Report};
use crate::copy::options::Options;
use crate::copy::progress::ProgressFile;
use crate::copy::{Named, field};
use crate::csv::{Place, Reader, Record};
use crate::error_text::print_failure;
use crate::paths::FileReader;
use crate::session::{Failure, How, RowFeed, WriteRow};
use crate::shell::Shell;

/// Records between two updates of the bar.
const BAR_STRIDE: u64 = 256;
/// Finished records between two looks at the clock.
const SAVE_STRIDE: u64 = 1024;
/// Bytes that are read at once to check the source of a resumed import.
const CRC_BYTES: usize = 256 << 10;

impl Shell<'_> {
    pub(super) fn import(&mut self, path: &Path, named: &Named, options: &Options) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let file = match self.env.open_read(path) {
            Ok(file) => file,
            Err(error) => {
                return self.complain(&format!("Could not open '{}': {}", path.display(), error.source));
            }
        };
        let statement = insert(named, options);
        let columns = match self.session.prepare(&statement) {
            Ok(columns) => columns,
            Err(failure) => return self.complain_of(&failure),
        };
        let error_file = named.error_file(options);
        let mut terms = options.terms();
        terms.insert("file".to_owned(), path.display().to_string());
        terms.insert("statement".to_owned(), statement);
        let progress = ProgressFile::new(self.env.clone(), progress_path(&error_file, named, path), terms);
        let begun = match self.begin_import(&progress, &*file, options) {
            Ok(begun) => begun,
            Err(problem) => return self.complain(&problem),
        };
        if let Some(mark) = begun {
            self.output
                .say(&format!("Resuming behind line {}.", mark.place.line - 1))?;
        } else {
            self.begin_anew(&progress)?;
        }
        let source_bytes = file.size_bytes();
        let bar = Bar::of_bytes(&named.cql(), source_bytes);
        let mark = begun.unwrap_or(Mark {
            place: Place::START,
            read: 0,
        });
        let mut records = Records {
            reader: Reader::new(
                options.dialect,
                FileReader::new(file, mark.place.offset),
                mark.place,
            ),
            record: Record::default(),
            options,
            columns: &columns[..named.columns.len().min(columns.len())],
            bar,
            read: mark.read,
            finished: 0,
            is_complete: false,
            report: Report::new(Failures::new(self.env.clone(), error_file, "line")),
            acknowledged: Acknowledged::new(mark),
            source_bytes,
            progress,
            end: None,
        };
        let how = How {
            is_traced: false,
            ..self.settings.how.clone()
        };
        let packing = named.packing(&columns, options);
        let ready = match begun {
            Some(_) => Ok(()),
            None => records.begin(named),
        };
        let outcome = match ready {
            Ok(()) => self.session.write_rows(&how, &packing, &mut records),
            Err(problem) => {
                drop(records);
                return self.complain(&problem);
            }
        };
        let is_complete = records.is_complete && outcome.is_ok();
        if !is_complete {
            records.save();
        }
        let Records {
            report,
            acknowledged,
            progress,
            end,
            bar,
            ..
        } = records;
        drop(bar);
        let nanos = self.env.monotonic_nanos() - started;
        self.tell_report(&report, end, outcome.err())?;
        if is_complete {
            if let Err(problem) = progress.remove() {
                self.complain(&problem)?;
            }
        } else {
            let line = acknowledged.mark().place.line - 1;
            self.complain(&progress.advice(&format!("behind line {line}")))?;
        }
        self.tell_imported(report.written, nanos, options)
    }

    /// How far an earlier import has come, if this one resumes it.
    fn begin_import(
        &self,
        progress: &ProgressFile,
        file: &dyn ReadFile,
        options: &Options,
    ) -> Result<Option<Mark>, String> {
        if !options.is_resumed {
            return Ok(None);
        }
        let at: ImportAt = progress.load()?;
        let name = file.path().display();
        let refuse = |change: &str| {
            format!(
                "'{name}' has changed since the COPY that was interrupted: {change}. Copy again without RESUME."
            )
        };
        let (before, now) = (at.source_bytes, file.size_bytes());
        if before != now {
            return Err(refuse(&format!("it had {before} bytes and has {now}")));
        }
        let place = at.mark.place;
        let crc = crc_of_start(file, place.offset).map_err(|error| error.to_string())?;
        if crc != place.crc || place.line == 0 {
            let line = place.line.saturating_sub(1);
            return Err(refuse(&format!("its first {line} lines are not the same")));
        }
        Ok(Some(at.mark))
    }
}

/// How far an import has come.
#[derive(serde::Serialize, serde::Deserialize)]
struct ImportAt {
    source_bytes: u64,
    #[serde(flatten)]
    mark: Mark,
}

/// The progress file stands beside the file of failed rows. Two files can be imported into one table at the same time.
fn progress_path(error_file: &Path, named: &Named, source: &Path) -> PathBuf {
    let source = source.file_name().unwrap_or_default().to_string_lossy();
    error_file.with_file_name(format!(
        "import_{}_{}_{source}.progress",
        named.keyspace, named.table
    ))
}

/// The CRC-32 of the first bytes of a file.
fn crc_of_start(file: &dyn ReadFile, size_bytes: u64) -> ilion_env::Result<u32> {
    let mut buffer = vec![0; CRC_BYTES];
    let (mut crc, mut offset) = (0, 0);
    while offset < size_bytes {
        let most = usize::try_from(size_bytes - offset).map_or(CRC_BYTES, |left| left.min(CRC_BYTES));
        let count = file.read_at(offset, &mut buffer[..most])?;
        if count == 0 {
            break;
        }
        crc = crc32_extend(crc, &buffer[..count]);
        offset += count as u64;
    }
    Ok(crc)
}

pub(super) fn insert(named: &Named, options: &Options) -> String {
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
    /// The record that was read last.
    record: Record,
    options: &'a Options,
    columns: &'a [ColumnSpec],
    bar: Bar,
    /// Records that were read, without header and skipped ones.
    read: u64,
    /// Records that were written or kept as failed.
    finished: u64,
    /// True if no record is left to import.
    is_complete: bool,
    report: Report,
    acknowledged: Acknowledged,
    source_bytes: u64,
    progress: ProgressFile,
    /// Why the import ends before the file does.
    end: Option<String>,
}

impl Records<'_> {
    /// Passes over the header and the rows to skip. Compat: the names in the header are not used; only their number is checked.
    fn begin(&mut self, named: &Named) -> Result<(), String> {
        if self.options.has_header {
            let names = match self.read_record()? {
                true => self.record.fields().len(),
                false => named.columns.len(),
            };
            if names != named.columns.len() {
                return Err(format!(
                    "The header has {names} names, but {} columns are imported: name them behind the table, in the order of the file.",
                    named.columns.len()
                ));
            }
        }
        for _ in 0..self.options.skipped_rows {
            self.read_record()?;
        }
        self.acknowledged = Acknowledged::new(self.end_of_record());
        Ok(())
    }

    /// Reads the next record; false at the end of the file.
    fn read_record(&mut self) -> Result<bool, String> {
        self.reader
            .next(&mut self.record)
            .map_err(|error| error.to_string())
    }

    /// The place behind the record that was read last.
    fn end_of_record(&self) -> Mark {
        Mark {
            place: self.reader.place(),
            read: self.read,
        }
    }

    fn finish(&mut self, number: u64) {
        self.acknowledged.finish(number);
        self.finished += 1;
        if self.finished.is_multiple_of(SAVE_STRIDE) && self.progress.is_due() {
            self.save();
        }
    }

    /// Saves the progress, after the failed records before it.
    fn save(&mut self) {
        match self.report.failures.sync() {
            Ok(()) => self.progress.save(&ImportAt {
                source_bytes: self.source_bytes,
                mark: self.acknowledged.mark(),
            }),
            Err(problem) => self.progress.fail(problem),
        }
    }

    /// The values of the record that was read last.
    fn values(&self) -> Result<Values, String> {
        let (found, wanted) = (self.record.fields().len(), self.columns.len());
        if found != wanted {
            return Err(format!("the record has {found} fields instead of {wanted}"));
        }
        // Few values are longer than their text.
        let mut values = ValuesBuilder::with_capacity(self.record.source.len());
        for (bytes, column) in self.record.fields().zip(self.columns) {
            let text =
                std::str::from_utf8(bytes).map_err(|_| format!("{}: this is not UTF-8", column.name))?;
            if text == self.options.null {
                values.push(Value::Null);
                continue;
            }
            let value = field::parse(&column.cql_type, text);
            let value = value.map_err(|problem| format!("{}: {problem}", column.name))?;
            values.push(Value::Bytes(&value));
        }
        Ok(values.build())
    }
}

impl RowFeed for Records<'_> {
    fn next(&mut self) -> Option<WriteRow> {
        loop {
            if self.end.is_some() {
                return None;
            }
            if self.options.rows_max.is_some_and(|most| self.read >= most) {
                self.is_complete = true;
                return None;
            }
            self.end = self.report.too_many(self.options);
            if self.end.is_some() {
                return None;
            }
            match self.read_record() {
                Ok(true) => {}
                Ok(false) => {
                    self.is_complete = true;
                    return None;
                }
                Err(error) => {
                    self.end = Some(format!("The file cannot be read: {error}"));
                    return None;
                }
            }
            self.read += 1;
            if self.read.is_multiple_of(BAR_STRIDE) {
                self.bar.at(self.reader.place().offset);
            }
            let number = self.acknowledged.take(self.end_of_record());
            let Record { source, line, .. } = &self.record;
            match self.values() {
                Ok(values) => {
                    return Some(WriteRow {
                        values,
                        source: source.clone(),
                        line: *line,
                        number,
                    });
                }
                Err(problem) => {
                    self.report.failures.add(*line, source, &problem);
                    self.finish(number);
                }
            }
        }
    }

    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => self.report.written += 1,
            Err(failure) => {
                let failures = &mut self.report.failures;
                failures.add(row.line, &row.source, &print_failure(&failure));
            }
        }
        self.finish(row.number);
    }

    fn lost(&mut self, _row: WriteRow) {
        // Not a failed row: resuming reads its record again.
        self.report.lost += 1;
    }
}
