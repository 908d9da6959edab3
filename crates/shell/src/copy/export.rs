//! COPY TO: rows of a table to a CSV file.

use std::io;
use std::path::Path;

use ilion_protocol::Rows;
use ilion_tools::Bar;

use crate::copy::options::Options;
use crate::copy::{Named, field, seconds};
use crate::error_text::print_failure;
use crate::session::{Body, How};
use crate::shell::Shell;

/// Called with the lines of each page, and the number of rows so far.
type Take<'t, S> = dyn FnMut(&mut S, &[u8], u64) -> Result<(), String> + 't;

impl Shell<'_> {
    pub(super) fn export_to_file(&mut self, path: &Path, named: &Named, options: &Options) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let mut file = match self.env.create_or_truncate(path) {
            Ok(file) => file,
            Err(error) => {
                return self.complain(&format!("Could not open '{}': {}", path.display(), error.source));
            }
        };
        let bar = Bar::of_operations(&named.cql(), 0);
        let exported = self.export(named, options, &mut |_, lines, count| {
            bar.of(count);
            bar.at(count);
            file.append(lines).map_err(|error| error.to_string())
        });
        let exported =
            exported.and_then(|count| file.sync().map(|()| count).map_err(|error| error.to_string()));
        drop(bar);
        match exported {
            Err(problem) => self.complain(&format!("The file is not complete: {problem}")),
            Ok(count) => {
                let took = seconds(self.env.monotonic_nanos() - started);
                self.output
                    .say(&format!("{count} rows exported to 1 files in {took}."))
            }
        }
    }

    pub(super) fn export_to_output(&mut self, named: &Named, options: &Options) -> io::Result<()> {
        let exported = self.export(named, options, &mut |shell, lines, _| {
            let text = String::from_utf8_lossy(lines);
            let written = shell.output.say_part(&text);
            written.map_err(|error| error.to_string())
        });
        match exported {
            Err(problem) => self.complain(&problem),
            Ok(_) => Ok(()),
        }
    }

    /// Reads all rows, page by page; returns their number.
    fn export(&mut self, named: &Named, options: &Options, take: &mut Take<'_, Self>) -> Result<u64, String> {
        if options.has_header {
            let names = named.columns.iter().map(String::as_str);
            let line = options.dialect.line(names);
            take(self, line.as_bytes(), 0)?;
        }
        let cql = format!("SELECT {} FROM {}", named.cql_columns(), named.cql());
        let mut how = How {
            page_size: Some(options.page_rows),
            is_traced: false,
            ..self.settings.how.clone()
        };
        let mut count = 0;
        loop {
            let answer = self
                .session
                .execute(&cql, &how)
                .map_err(|failure| print_failure(&failure))?;
            let Body::Rows(rows) = answer.body else {
                return Err("the server answered a SELECT without rows".to_owned());
            };
            count += rows.row_count as u64;
            let lines = lines_of(&rows, options)?;
            take(self, &lines, count)?;
            how.paging_state = rows.metadata.paging_state;
            if how.paging_state.is_none() {
                return Ok(count);
            }
        }
    }
}

fn lines_of(rows: &Rows, options: &Options) -> Result<Vec<u8>, String> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    let mut lines = Vec::new();
    for row in rows.rows() {
        let mut fields = Vec::with_capacity(row.len());
        for (cell, column) in row.iter().zip(columns) {
            let field = cell.map_or_else(
                || Ok(options.null.clone()),
                |bytes| field::print(&column.cql_type, bytes),
            );
            fields.push(field.map_err(|error| format!("{}: {error}", column.name))?);
        }
        let line = options.dialect.line(fields.iter().map(String::as_str));
        lines.extend_from_slice(line.as_bytes());
    }
    Ok(lines)
}
