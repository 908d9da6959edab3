//! COPY TO: rows of a table to a file.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_env::{Env, WriteFile};
use ilion_protocol::Rows;
use ilion_tools::Bar;
use ilion_types::hex;

use crate::copy::export_encoder::Encoder;
use crate::copy::options::{FileFormat, Options};
use crate::copy::progress::ProgressFile;
use crate::copy::{Named, seconds};
use crate::error_text::print_failure;
use crate::session::{Body, How};
use crate::shell::Shell;

/// Called with each page, and where the next page begins.
type Take<'t, S> = dyn FnMut(&mut S, &Rows, &Next) -> Result<(), String> + 't;

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
    /// What would complete the file there, of a Parquet file; in hexadecimal digits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    footer: String,
}

/// An export that is resumed.
struct Begun {
    at: ExportAt,
    next: Next,
    footer: Vec<u8>,
}

impl Shell<'_> {
    pub(super) fn export_to_file(
        &mut self,
        path: &Path,
        named: &Named,
        options: &Options,
        format: FileFormat,
    ) -> io::Result<()> {
        let started = self.env.monotonic_nanos();
        let mut terms = options.terms();
        terms.insert("FORMAT".to_owned(), format.name().to_owned());
        terms.insert("file".to_owned(), path.display().to_string());
        terms.insert("statement".to_owned(), select(named));
        let mut progress = ProgressFile::new(self.env.clone(), progress_path(path), terms);
        let begun = format.check().and_then(|()| begin_export(&progress, options));
        let begun = match begun {
            Ok(begun) => begun,
            Err(problem) => return self.complain(&problem),
        };
        let file = match &begun {
            Some(Begun { at, .. }) => open_again(&*self.env, path, at.file_bytes),
            None => create(&*self.env, path),
        };
        let mut file = match file {
            Ok(file) => file,
            Err(problem) => return self.complain(&problem),
        };
        let (mut encoder, mut at, next) = match begun {
            Some(Begun { at, next, footer }) => {
                self.output.say(&format!("Resuming behind row {}.", at.rows))?;
                (Encoder::resume(format, options, at.file_bytes, footer), at, next)
            }
            None => {
                self.begin_anew(&progress)?;
                (
                    Encoder::new(format, options),
                    ExportAt::default(),
                    Next::default(),
                )
            }
        };
        let before = at.rows;
        let head = match next.paging_state {
            None => encoder.head(named),
            Some(_) => Vec::new(),
        };
        let mut file_bytes = at.file_bytes + head.len() as u64;
        let bar = Bar::of_operations(&named.cql(), 0);
        let exported = file.append(&head).map_err(|error| error.to_string());
        let exported = exported.and_then(|()| {
            self.export_pages(named, options, next, &mut |_, rows, next| {
                bar.of(next.rows);
                bar.at(next.rows);
                let bytes = encoder.page(rows)?;
                file.append(&bytes).map_err(|error| error.to_string())?;
                file_bytes += bytes.len() as u64;
                // After the last page there is nothing to resume.
                let Some(state) = &next.paging_state else {
                    return Ok(());
                };
                if let Some(footer) = encoder.footer()? {
                    at = ExportAt {
                        file_bytes,
                        rows: next.rows,
                        paging_state: hex::print(state),
                        footer: hex::print(&footer),
                    };
                    if progress.is_due() {
                        file.sync().map_err(|error| error.to_string())?;
                        progress.save(&at);
                    }
                }
                Ok(())
            })
        });
        drop(bar);
        let finished = exported.and_then(|count| {
            let tail = encoder.finish()?;
            let written = file.append(&tail).and_then(|()| file.sync());
            written.map(|()| count).map_err(|error| error.to_string())
        });
        match finished {
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

    /// Prints the last line of an export. Compat: the words of cqlsh.
    fn tell_exported(&mut self, count: u64, nanos: u64) -> io::Result<()> {
        let took = seconds(nanos);
        self.output
            .say(&format!("{count} rows exported to 1 files in {took}."))
    }

    /// Exports as CSV.
    pub(super) fn export_to_output(&mut self, named: &Named, options: &Options) -> io::Result<()> {
        let mut encoder = Encoder::new(FileFormat::Csv, options);
        let head = encoder.head(named);
        self.output.say_part(&String::from_utf8_lossy(&head))?;
        let exported = self.export_pages(named, options, Next::default(), &mut |shell, rows, _| {
            let lines = encoder.page(rows)?;
            let written = shell.output.say_part(&String::from_utf8_lossy(&lines));
            written.map_err(|error| error.to_string())
        });
        match exported {
            Err(problem) => self.complain(&problem),
            Ok(_) => Ok(()),
        }
    }

    /// Reads all rows from a place on, page by page; returns the number of all rows up to the end.
    fn export_pages(
        &mut self,
        named: &Named,
        options: &Options,
        mut next: Next,
        take: &mut Take<'_, Self>,
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
fn begin_export(progress: &ProgressFile, options: &Options) -> Result<Option<Begun>, String> {
    if !options.is_resumed {
        return Ok(None);
    }
    let at: ExportAt = progress.load()?;
    let state = hex::parse(&at.paging_state).filter(|state| !state.is_empty());
    let (Some(state), Some(footer)) = (state, hex::parse(&at.footer)) else {
        return Err("The progress file is damaged: copy again without RESUME.".to_owned());
    };
    let next = Next {
        rows: at.rows,
        paging_state: Some(state.into()),
    };
    Ok(Some(Begun { at, next, footer }))
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
