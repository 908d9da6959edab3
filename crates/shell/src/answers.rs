//! Executing a statement of CQL, and printing its answer page by page.

use std::io;

use bytes::Bytes;
use ilion_cql::{Class, outline};
use ilion_protocol::Rows;

use crate::columnar::{Kind, PageWriter};
use crate::explain::explain_tree;
use crate::format::{Before, Format, print_page};
use crate::session::{Body, Failure, How};
use crate::shell::Shell;

impl Shell<'_> {
    /// Executes a statement and prints its answer.
    pub(crate) fn run_cql(&mut self, cql: &str) -> io::Result<()> {
        let answer = match self.session.execute(cql, &self.settings.how) {
            Ok(answer) => answer,
            Err(failure) => return self.complain_of(&failure),
        };
        match answer.body {
            Body::Done => {}
            Body::SchemaChanged => self.has_new_schema = true,
            Body::Keyspace(keyspace) => {
                self.keyspace = Some(keyspace);
                // Other clients may have changed the schema meanwhile.
                self.has_new_schema = true;
            }
            Body::Rows(rows) if let Some(kind) = self.settings.format.columnar() => {
                self.write_result(kind, cql, rows)?;
            }
            Body::Rows(rows) if begins_with(cql, &["explain"]) && self.settings.format == Format::Table => {
                self.output.result("")?;
                let steps = pairs_of(&rows);
                explain_tree(&steps)
                    .iter()
                    .try_for_each(|line| self.output.result(line))?;
                self.output.result("")?;
            }
            Body::Rows(rows) if begins_with(cql, &["select", "list", "explain"]) => {
                self.print_pages(cql, rows)?
            }
            Body::Rows(rows) => {
                if self.settings.format == Format::Table {
                    self.output.result("")?;
                }
                let before = Before {
                    rows: 0,
                    with_header: true,
                };
                print_page(self.settings.format, &rows, before, &mut self.output)?;
                if self.settings.is_interactive {
                    self.output.result("")?;
                }
            }
        }
        self.warn(&answer.warnings)?;
        match answer.trace {
            Some(trace) => self.show_trace(trace),
            None => Ok(()),
        }
    }

    pub(crate) fn warn(&mut self, warnings: &[String]) -> io::Result<()> {
        if warnings.is_empty() {
            return Ok(());
        }
        let is_for_people = matches!(self.settings.format, Format::Table | Format::Vertical);
        if !is_for_people {
            return warnings.iter().try_for_each(|warning| self.output.error(warning));
        }
        self.output.result("")?;
        self.output.result("Warnings :")?;
        for warning in warnings {
            self.output.result(warning)?;
            self.output.result("")?;
        }
        Ok(())
    }

    /// Writes all pages of a result, whose first one is `rows`, as a file.
    fn write_result(&mut self, kind: Kind, cql: &str, mut rows: Rows) -> io::Result<()> {
        if let Err(problem) = self.output.begin_file() {
            return self.complain(&problem);
        }
        let columns = rows.metadata.columns.clone().unwrap_or_default();
        let mut writer = match PageWriter::new(kind, &columns) {
            Ok(writer) => writer,
            Err(problem) => return self.complain(&problem),
        };
        loop {
            match writer.page(&rows) {
                Ok(bytes) => self.output.file_part(&bytes)?,
                Err(problem) => return self.complain(&problem),
            }
            let Some(paging_state) = rows.metadata.paging_state.take() else {
                break;
            };
            rows = match self.page_at(cql, paging_state) {
                Ok(Some(rows)) => rows,
                Ok(None) => break,
                // Without its end, nobody takes the file for a complete one.
                Err(failure) => return self.complain_of(&failure),
            };
        }
        match writer.finish() {
            Ok(bytes) => self.output.file_part(&bytes),
            Err(problem) => self.complain(&problem),
        }
    }

    /// The page of a result that begins at this paging state; `None` if the server answers without rows.
    fn page_at(&mut self, cql: &str, paging_state: Bytes) -> Result<Option<Rows>, Failure> {
        let how = How {
            paging_state: Some(paging_state),
            ..self.settings.how.clone()
        };
        match self.session.execute(cql, &how)?.body {
            Body::Rows(rows) => Ok(Some(rows)),
            _ => Ok(None),
        }
    }

    /// Prints all pages of a result, whose first one is `rows`.
    fn print_pages(&mut self, cql: &str, mut rows: Rows) -> io::Result<()> {
        let is_for_people = matches!(self.settings.format, Format::Table | Format::Vertical);
        let is_interactive = self.settings.is_interactive;
        if is_for_people {
            self.output.result("")?;
        }
        let (mut count, mut is_first) = (0, true);
        loop {
            if rows.row_count > 0 || is_first {
                let before = Before {
                    rows: count,
                    with_header: is_first || is_interactive,
                };
                print_page(self.settings.format, &rows, before, &mut self.output)?;
                if is_interactive && self.settings.format == Format::Table && rows.row_count > 0 {
                    self.output.result("")?;
                }
                count += rows.row_count;
                is_first = false;
            }
            let Some(paging_state) = rows.metadata.paging_state.take() else {
                break;
            };
            if is_interactive && self.output.captured().is_none() && !self.wants_more()? {
                break;
            }
            rows = match self.page_at(cql, paging_state) {
                Ok(Some(rows)) => rows,
                Ok(None) => break,
                Err(failure) => {
                    self.complain_of(&failure)?;
                    break;
                }
            };
        }
        if !is_for_people {
            return Ok(());
        }
        if !is_interactive {
            self.output.result("")?;
        }
        self.output.result(&format!("({count} rows)"))
    }

    /// Waits for a key before the next page.
    fn wants_more(&mut self) -> io::Result<bool> {
        self.output.say_part("---MORE---")?;
        let mut line = String::new();
        io::stdin().read_line(&mut line)?;
        Ok(!line.trim().eq_ignore_ascii_case("q"))
    }
}

/// True if the first word of a statement is one of these.
fn begins_with(cql: &str, words: &[&str]) -> bool {
    let first = outline(cql).find(|piece| !matches!(piece.class, Class::Space | Class::Comment));
    let first = first.and_then(|piece| cql.get(piece.range)).unwrap_or_default();
    words.iter().any(|word| first.eq_ignore_ascii_case(word))
}

/// The first two columns as texts.
fn pairs_of(rows: &Rows) -> Vec<(String, String)> {
    let text = |cell: Option<&Option<&[u8]>>| {
        let bytes = cell.copied().flatten().unwrap_or_default();
        String::from_utf8_lossy(bytes).into_owned()
    };
    rows.rows()
        .map(|row| (text(row.first()), text(row.get(1))))
        .collect()
}
