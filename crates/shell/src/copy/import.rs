//! COPY FROM: records of a CSV file into a table, many at a time.

use std::io;
use std::path::Path;

use ilion_env::ReadFile;
use ilion_protocol::{ColumnSpec, Value, Values, ValuesBuilder};
use ilion_tools::Bar;

use crate::copy::failures::{Failures, Report};
use crate::copy::import_progress::{Import, ImportProgress, Source, crc_of, has_changed, load};
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

/// A place in a CSV file.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Mark {
    #[serde(flatten)]
    place: Place,
    /// Records before it, without header and skipped ones.
    read: u64,
}

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
        let source = Source::of_csv(&*file);
        let progress = self.progress_file(path, named, options, statement);
        let begun = match begin(&progress, &*file, path, &source, options) {
            Ok(begun) => begun,
            Err(problem) => return self.complain(&problem),
        };
        if let Some(mark) = begun {
            self.output
                .say(&format!("Resuming behind line {}.", mark.place.line - 1))?;
        } else {
            self.begin_anew(&progress)?;
        }
        let bar = Bar::of_bytes(&named.cql(), file.size_bytes());
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
            read: mark.read,
            import: Import::new(
                bar,
                Report::new(Failures::new(self.env.clone(), named.error_file(options), "line")),
                ImportProgress::new(progress, source, mark),
            ),
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
        let place_of = |mark: Mark| format!("behind line {}", mark.place.line - 1);
        self.end_import(records.import, outcome.err(), started, place_of, options)
    }
}

/// How far an earlier import has come, if this one resumes it.
fn begin(
    progress: &ProgressFile,
    file: &dyn ReadFile,
    path: &Path,
    source: &Source,
    options: &Options,
) -> Result<Option<Mark>, String> {
    if !options.is_resumed {
        return Ok(None);
    }
    let mark: Mark = load(progress, path, source)?;
    let place = mark.place;
    let crc = crc_of(file, 0, place.offset).map_err(|error| error.to_string())?;
    if crc != place.crc || place.line == 0 {
        let line = place.line.saturating_sub(1);
        return Err(has_changed(
            path,
            &format!("its first {line} lines are not the same"),
        ));
    }
    Ok(Some(mark))
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
    /// Records that were read, without header and skipped ones.
    read: u64,
    import: Import<Mark>,
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
        self.import.progress.begin_at(self.end_of_record());
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
            if !self.import.may_take(self.read, self.options) {
                return None;
            }
            let read = self.read_record();
            self.import
                .note_read(read.map(|is_there| is_there.then_some(())))?;
            self.read += 1;
            if self.read.is_multiple_of(BAR_STRIDE) {
                self.import.bar.at(self.reader.place().offset);
            }
            let number = self.import.progress.take(self.end_of_record());
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
                    self.import.report.failures.add(*line, source, &problem);
                    self.import.finish(number);
                }
            }
        }
    }

    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
        match outcome {
            Ok(()) => self.import.report.written += 1,
            Err(failure) => {
                let failures = &mut self.import.report.failures;
                failures.add(row.line, &row.source, &print_failure(&failure));
            }
        }
        self.import.finish(row.number);
    }

    fn lost(&mut self, _row: WriteRow) {
        // Not a failed row: resuming reads its record again.
        self.import.report.lost += 1;
    }
}
