//! COPY FROM a Parquet file: its columns are found by name. Rows that fail go into a file of their own, as CSV.

use std::io;
use std::path::Path;
use std::vec;

use ilion_protocol::{ColumnSpec, Value, Values};
use ilion_tools::Bar;

use crate::columnar::{FileCell, ParquetFile};
use crate::copy::failures::{Failures, Report};
use crate::copy::import::insert;
use crate::copy::import_progress::{Import, ImportProgress, Source, load};
use crate::copy::options::Options;
use crate::copy::{Named, field};
use crate::error_text::print_failure;
use crate::session::{Failure, How, RowFeed, WriteRow};
use crate::shell::Shell;

/// Rows between two updates of the bar.
const BAR_STRIDE: u64 = 256;

/// A Parquet file that was opened.
pub(super) struct ParquetSource {
    rows: ParquetFile,
    source: Source,
}

/// A place in a Parquet file.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
struct Mark {
    /// Rows before it, skipped ones included.
    row: u64,
}

impl Shell<'_> {
    /// Opens a file whose columns become those of the COPY, unless the COPY names its columns.
    pub(super) fn open_parquet(
        &self,
        path: &Path,
        named: &mut Named,
        names_columns: bool,
    ) -> Result<ParquetSource, String> {
        let refuse = |problem: &str| format!("Could not read '{}': {problem}", path.display());
        crate::columnar::check()?;
        let file = self.env.open_read(path);
        let file = file.map_err(|error| refuse(&error.source.to_string()))?;
        let rows = ParquetFile::open(file.clone()).map_err(|problem| refuse(&problem))?;
        let source = Source::of_parquet(&*file).map_err(|error| refuse(&error.source.to_string()))?;
        if !names_columns {
            let found = rows.column_names();
            if let Some(unknown) = found.iter().find(|name| !named.columns.contains(name)) {
                return Err(format!(
                    "{}.{} has no column {unknown}, which is in the file: name the columns to import behind the table.",
                    named.keyspace, named.table
                ));
            }
            named.columns = found;
        }
        Ok(ParquetSource { rows, source })
    }

    pub(super) fn import_parquet(
        &mut self,
        path: &Path,
        file: ParquetSource,
        named: &Named,
        options: &Options,
    ) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let ParquetSource { mut rows, source } = file;
        let statement = insert(named, options);
        let columns = match self.session.prepare(&statement) {
            Ok(columns) => columns,
            Err(failure) => return self.complain_of(&failure),
        };
        let columns = &columns[..named.columns.len().min(columns.len())];
        let progress = self.progress_file(path, named, options, statement);
        let mark = if options.is_resumed {
            match load(&progress, path, &source) {
                Ok(mark) => mark,
                Err(problem) => return self.complain(&problem),
            }
        } else {
            Mark {
                row: options.skipped_rows,
            }
        };
        let bar = Bar::of_operations(&named.cql(), rows.row_count());
        if let Err(problem) = rows.begin(columns, mark.row) {
            return self.complain(&problem);
        }
        if options.is_resumed {
            self.output.say(&format!("Resuming behind row {}.", mark.row))?;
        } else {
            self.begin_anew(&progress)?;
        }
        let mut records = Records {
            rows,
            page: Vec::new().into_iter(),
            options,
            columns,
            line: mark.row,
            import: Import::new(
                bar,
                Report::new(Failures::new(self.env.clone(), named.error_file(options), "row")),
                ImportProgress::new(progress, source, mark),
            ),
        };
        let how = How {
            is_traced: false,
            ..self.settings.how.clone()
        };
        let outcome = self
            .session
            .write_rows(&how, &named.packing(columns, options), &mut records);
        let place_of = |mark: Mark| format!("behind row {}", mark.row);
        self.end_import(records.import, outcome.err(), started, place_of, options)
    }
}

/// The rows of a file.
struct Records<'a> {
    rows: ParquetFile,
    /// The rows that were read and not taken.
    page: vec::IntoIter<Vec<FileCell>>,
    options: &'a Options,
    columns: &'a [ColumnSpec],
    /// Rows that were taken, skipped ones included.
    line: u64,
    import: Import<Mark>,
}

impl Records<'_> {
    fn next_row(&mut self) -> Option<Vec<FileCell>> {
        loop {
            if let Some(row) = self.page.next() {
                self.line += 1;
                return Some(row);
            }
            let page = self.import.note_read(self.rows.next_rows())?;
            self.page = page.into_iter();
        }
    }

    fn fail(&mut self, row: WriteRow, problem: &str) {
        let cell = |value| match value {
            Value::Bytes(bytes) => Ok(Some(bytes.to_vec())),
            Value::Null | Value::Unset => Ok(None),
        };
        let cells: Vec<FileCell> = row.values.iter().map(cell).collect();
        let source = self.source(&cells);
        self.import.report.failures.add(row.line, &source, problem);
    }

    /// The values of a row. Fails with the first problem of one of them.
    fn values(&self, row: &[FileCell]) -> Result<Values, String> {
        let cells = row.iter().zip(self.columns);
        cells
            .map(|(cell, column)| match cell {
                Ok(Some(bytes)) => Ok(Value::Bytes(bytes)),
                Ok(None) => Ok(Value::Null),
                Err((_, problem)) => Err(format!("{}: {problem}", column.name)),
            })
            .collect()
    }

    /// A row as CSV, as far as its values could be read.
    fn source(&self, row: &[FileCell]) -> Vec<u8> {
        let text = |(cell, column): (&FileCell, &ColumnSpec)| match cell {
            Ok(None) => self.options.null.clone(),
            Ok(Some(bytes)) => field::print(&column.cql_type, bytes).unwrap_or_default(),
            Err((text, _)) => text.clone(),
        };
        let fields: Vec<String> = row.iter().zip(self.columns).map(text).collect();
        let line = self.options.dialect.line(fields.iter().map(String::as_str));
        line.into_bytes()
    }
}

impl RowFeed for Records<'_> {
    fn next(&mut self) -> Option<WriteRow> {
        loop {
            let taken = self.line.saturating_sub(self.options.skipped_rows);
            if !self.import.may_take(taken, self.options) {
                return None;
            }
            let row = self.next_row()?;
            if self.line.is_multiple_of(BAR_STRIDE) {
                self.import.bar.at(self.line);
            }
            let number = self.import.progress.take(Mark { row: self.line });
            match self.values(&row) {
                Err(problem) => {
                    let source = self.source(&row);
                    self.import.report.failures.add(self.line, &source, &problem);
                    self.import.finish(number);
                }
                Ok(values) => {
                    return Some(WriteRow {
                        values,
                        source: Vec::new(),
                        line: self.line,
                        number,
                    });
                }
            }
        }
    }

    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
        let number = row.number;
        match outcome {
            Ok(()) => self.import.report.written += 1,
            Err(failure) => self.fail(row, &print_failure(&failure)),
        }
        self.import.finish(number);
    }

    fn lost(&mut self, _row: WriteRow) {
        // Not a failed row: resuming reads it again.
        self.import.report.lost += 1;
    }
}
