//! COPY TO: rows of a table to a file.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_env::{Env, WriteFile};
use ilion_protocol::Rows;
use ilion_tools::Bar;
use ilion_types::hex;

use crate::columnar::{Kind, PageWriter};
use crate::copy::options::Options;
use crate::copy::progress::ProgressFile;
use crate::copy::{Named, field, seconds};
use crate::error_text::print_failure;
use crate::session::{Body, How};
use crate::shell::Shell;

/// Called with each page, and where the next page begins.
type Take<'t, S, P> = dyn FnMut(&mut S, &P, &Next) -> Result<(), String> + 't;

/// The place between two pages.
#[derive(Clone, Default)]
struct Next {
    /// Rows before it.
    rows: u64,
    /// What the next page is asked with; `None` at the beginning and at the end.
    paging_state: Option<Bytes>,
}

/// How far an export has come.
#[derive(Default, serde::Serialize, serde::Deserialize)]
struct ExportAt {
    /// Bytes of the file up to there.
    file_bytes: u64,
    rows: u64,
    /// In hexadecimal digits.
    paging_state: String,
}

impl Shell<'_> {
    pub(super) fn export_to_file(&mut self, path: &Path, named: &Named, options: &Options) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let mut terms = options.terms();
        terms.insert("file".to_owned(), path.display().to_string());
        terms.insert("statement".to_owned(), select(named));
        let mut progress = ProgressFile::new(self.env.clone(), progress_path(path), terms);
        let begun = match begin_export(&progress, options) {
            Ok(begun) => begun,
            Err(problem) => return self.complain(&problem),
        };
        let file = match &begun {
            Some((at, _)) => open_again(&*self.env, path, at.file_bytes),
            None => create(&*self.env, path),
        };
        let mut file = match file {
            Ok(file) => file,
            Err(problem) => return self.complain(&problem),
        };
        match &begun {
            Some((at, _)) => self.output.say(&format!("Resuming behind row {}.", at.rows))?,
            None => self.begin_anew(&progress)?,
        }
        let (mut at, next) = begun.unwrap_or_default();
        let before = at.rows;
        let bar = Bar::of_operations(&named.cql(), 0);
        let exported = self.export(named, options, next, &mut |_, lines, next| {
            bar.of(next.rows);
            bar.at(next.rows);
            file.append(lines).map_err(|error| error.to_string())?;
            at.file_bytes += lines.len() as u64;
            at.rows = next.rows;
            // After the last page there is nothing to resume: `rows` and `paging_state` are always of the same place.
            at.paging_state = next.paging_state.as_deref().map_or_else(String::new, hex::print);
            if next.paging_state.is_some() && progress.is_due() {
                file.sync().map_err(|error| error.to_string())?;
                progress.save(&at);
            }
            Ok(())
        });
        let exported =
            exported.and_then(|count| file.sync().map(|()| count).map_err(|error| error.to_string()));
        drop(bar);
        match exported {
            Err(problem) => {
                self.complain(&format!("The file is not complete: {problem}"))?;
                match at.paging_state.as_str() {
                    "" => Ok(()),
                    _ => {
                        if let Err(error) = file.sync() {
                            progress.fail(error.to_string());
                        } else {
                            progress.save(&at);
                        }
                        self.complain(&progress.advice(&format!("behind row {}", at.rows)))
                    }
                }
            }
            Ok(count) => {
                let nanos = self.env.monotonic_nanos() - started;
                if let Err(problem) = progress.remove() {
                    self.complain(&problem)?;
                }
                self.tell_exported(count - before, nanos)
            }
        }
    }

    /// Exports to a Parquet or Arrow file, which cannot be resumed.
    pub(super) fn export_columnar(
        &mut self,
        path: &Path,
        named: &Named,
        options: &Options,
        kind: Kind,
    ) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let file = crate::columnar::check().and_then(|()| create(&*self.env, path));
        let mut file = match file {
            Ok(file) => file,
            Err(problem) => return self.complain(&problem),
        };
        let bar = Bar::of_operations(&named.cql(), 0);
        let mut writer = None;
        let exported = self.export_pages(named, options, Next::default(), &mut |_, rows, next| {
            bar.of(next.rows);
            bar.at(next.rows);
            let columns = rows.metadata.columns.as_deref().unwrap_or_default();
            let page = match &mut writer {
                Some(writer) => PageWriter::page(writer, rows)?,
                None => writer.insert(PageWriter::new(kind, columns)?).page(rows)?,
            };
            file.append(&page).map_err(|error| error.to_string())
        });
        drop(bar);
        let finished = exported.and_then(|count| {
            let tail = writer.map_or_else(|| Ok(Vec::new()), PageWriter::finish)?;
            let written = file.append(&tail).and_then(|()| file.sync());
            written.map(|()| count).map_err(|error| error.to_string())
        });
        match finished {
            Err(problem) => self.complain(&format!("The file is not complete: {problem}")),
            Ok(count) => self.tell_exported(count, self.env.monotonic_nanos() - started),
        }
    }

    /// Prints the last line of an export. Compat: the words of cqlsh.
    fn tell_exported(&mut self, count: u64, nanos: u64) -> io::Result<()> {
        let took = seconds(nanos);
        self.output
            .say(&format!("{count} rows exported to 1 files in {took}."))
    }

    pub(super) fn export_to_output(&mut self, named: &Named, options: &Options) -> io::Result<()> {
        let exported = self.export(named, options, Next::default(), &mut |shell, lines, _| {
            let text = String::from_utf8_lossy(lines);
            let written = shell.output.say_part(&text);
            written.map_err(|error| error.to_string())
        });
        match exported {
            Err(problem) => self.complain(&problem),
            Ok(_) => Ok(()),
        }
    }

    /// Reads all rows from a place on, as lines of CSV; returns the number of all rows up to the end.
    fn export(
        &mut self,
        named: &Named,
        options: &Options,
        next: Next,
        take: &mut Take<'_, Self, [u8]>,
    ) -> Result<u64, String> {
        if options.has_header && next.paging_state.is_none() {
            let names = named.columns.iter().map(String::as_str);
            let line = options.dialect.line(names);
            take(self, line.as_bytes(), &next)?;
        }
        self.export_pages(named, options, next, &mut |shell, rows, next| {
            take(shell, &lines_of(rows, options)?, next)
        })
    }

    /// Reads all rows from a place on, page by page; returns the number of all rows up to the end.
    fn export_pages(
        &mut self,
        named: &Named,
        options: &Options,
        mut next: Next,
        take: &mut Take<'_, Self, Rows>,
    ) -> Result<u64, String> {
        let cql = select(named);
        let mut how = How {
            page_size: Some(options.page_rows),
            is_traced: false,
            ..self.settings.how.clone()
        };
        loop {
            how.paging_state.clone_from(&next.paging_state);
            let answer = self
                .session
                .execute(&cql, &how)
                .map_err(|failure| print_failure(&failure))?;
            let Body::Rows(rows) = answer.body else {
                return Err("the server answered a SELECT without rows".to_owned());
            };
            next.rows += rows.row_count as u64;
            next.paging_state.clone_from(&rows.metadata.paging_state);
            take(self, &rows, &next)?;
            if next.paging_state.is_none() {
                return Ok(next.rows);
            }
        }
    }
}

fn select(named: &Named) -> String {
    format!("SELECT {} FROM {}", named.cql_columns(), named.cql())
}

/// The progress file stands beside the exported file.
fn progress_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".progress");
    path.with_file_name(name)
}

/// How far an earlier export has come, if this one resumes it.
fn begin_export(progress: &ProgressFile, options: &Options) -> Result<Option<(ExportAt, Next)>, String> {
    if !options.is_resumed {
        return Ok(None);
    }
    let at: ExportAt = progress.load()?;
    let state = hex::parse(&at.paging_state).filter(|state| !state.is_empty());
    let state = state.ok_or("The progress file is damaged: copy again without RESUME.")?;
    let next = Next {
        rows: at.rows,
        paging_state: Some(state.into()),
    };
    Ok(Some((at, next)))
}

fn create(env: &dyn Env, path: &Path) -> Result<Box<dyn WriteFile>, String> {
    env.create_or_truncate(path)
        .map_err(|error| format!("Could not open '{}': {}", path.display(), error.source))
}

/// Opens the file of an export that was interrupted, and drops what was written after its progress was saved.
fn open_again(env: &dyn Env, path: &Path, size_bytes: u64) -> Result<Box<dyn WriteFile>, String> {
    let name = path.display();
    let io = |error: ilion_env::Error| format!("Could not open '{name}': {}", error.source);
    let found = env.file_size(path).map_err(io)?;
    if found < size_bytes {
        return Err(format!(
            "'{name}' has changed since the COPY that was interrupted: it had {size_bytes} bytes and has {found}. Copy again without RESUME."
        ));
    }
    let mut file = env.open_append(path).map_err(io)?;
    file.truncate(size_bytes).map_err(io)?;
    Ok(file)
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
