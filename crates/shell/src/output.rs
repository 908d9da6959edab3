//! [`Output`]: where results and messages go.

use std::io::{self, Write};
use std::path::Path;

use ilion_env::{Env, WriteFile};

use crate::cell::{Cell, Kind};

const RESET: &str = "\x1b[0m";
const RED: &str = "\x1b[0;1;31m";

/// Where results and messages go: results may be captured into a file.
pub struct Output<'a> {
    out: &'a mut dyn Write,
    errors: &'a mut dyn Write,
    has_colors: bool,
    is_terminal: bool,
    /// True if a file was written to `out`.
    has_file: bool,
    capture: Option<Capture>,
}

/// A file that results are appended to.
struct Capture {
    path: String,
    file: Box<dyn WriteFile>,
}

impl<'a> Output<'a> {
    /// Writes results and messages to `out`, errors to `errors`.
    pub fn new(out: &'a mut dyn Write, errors: &'a mut dyn Write) -> Self {
        Self {
            out,
            errors,
            has_colors: false,
            is_terminal: false,
            has_file: false,
            capture: None,
        }
    }

    /// Uses colours, for a terminal.
    #[must_use]
    pub fn with_colors(mut self) -> Self {
        self.has_colors = true;
        self
    }

    /// Says that `out` is a terminal, to which no files are written.
    #[must_use]
    pub fn on_terminal(mut self, is_terminal: bool) -> Self {
        self.is_terminal = is_terminal;
        self
    }

    /// Begins a result that is a file of its own.
    ///
    /// # Errors
    /// Results go to a terminal, or something was written there before.
    pub fn begin_file(&mut self) -> Result<(), String> {
        match &self.capture {
            Some(capture) if capture.file.position() == 0 => Ok(()),
            Some(capture) => Err(format!(
                "A Parquet or Arrow file holds one result, and '{}' is not empty: use CAPTURE OFF, and CAPTURE with another file.",
                capture.path
            )),
            None if self.is_terminal => Err(
                "Parquet and Arrow are no text for a terminal: use CAPTURE 'file', or the option -o.".to_owned(),
            ),
            None if self.has_file => Err(
                "A Parquet or Arrow file holds one result, and there was one already: use CAPTURE 'file' for each.".to_owned(),
            ),
            None => {
                self.has_file = true;
                Ok(())
            }
        }
    }

    /// Writes the next bytes of a result that is a file.
    pub fn file_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.capture {
            None => self.out.write_all(bytes),
            Some(capture) => capture.file.append(bytes).map_err(io::Error::other),
        }
    }

    /// Writes a line of a result.
    pub fn result(&mut self, line: &str) -> io::Result<()> {
        match &mut self.capture {
            None => writeln!(self.out, "{line}"),
            Some(capture) => {
                let written = capture.file.append(format!("{line}\n").as_bytes());
                written.map_err(io::Error::other)
            }
        }
    }

    /// Writes a line that is no result: it is never captured.
    pub fn say(&mut self, line: &str) -> io::Result<()> {
        writeln!(self.out, "{line}")
    }

    /// Writes text that is no result, without the end of a line.
    pub fn say_part(&mut self, text: &str) -> io::Result<()> {
        write!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Writes an error.
    pub fn error(&mut self, line: &str) -> io::Result<()> {
        // Earlier messages must appear before the error.
        self.out.flush()?;
        match self.has_colors {
            true => writeln!(self.errors, "{RED}{line}{RESET}"),
            false => writeln!(self.errors, "{line}"),
        }
    }

    /// Makes everything that was written visible.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// The text of a cell, in its colour.
    pub fn paint(&self, cell: &Cell) -> String {
        match self.has_colors && self.capture.is_none() {
            true => format!("{}{}{RESET}", color(cell.kind), cell.text),
            false => cell.text.clone(),
        }
    }

    /// The file that results are captured into.
    pub fn captured(&self) -> Option<&str> {
        self.capture.as_ref().map(|capture| capture.path.as_str())
    }

    /// Writes results to a file from now on, which is emptied.
    ///
    /// # Errors
    /// The file cannot be created.
    pub fn divert(&mut self, env: &dyn Env, path: &Path) -> ilion_env::Result<()> {
        self.capture = Some(Capture {
            path: path.display().to_string(),
            file: env.create_or_truncate(path)?,
        });
        Ok(())
    }

    /// Appends results to a file from now on.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn capture(&mut self, env: &dyn Env, path: &Path) -> ilion_env::Result<()> {
        self.capture = Some(Capture {
            path: path.display().to_string(),
            file: env.open_append(path)?,
        });
        Ok(())
    }

    /// Shows results again; returns false if they were not captured.
    pub fn end_capture(&mut self) -> bool {
        self.capture.take().is_some()
    }
}

/// Compat: the colours of cqlsh.
fn color(kind: Kind) -> &'static str {
    match kind {
        Kind::Name => "\x1b[0;1;35m",
        Kind::Null => RED,
        Kind::Text => "\x1b[0;1;33m",
        Kind::Blob => "\x1b[0;35m",
        Kind::Compound => "\x1b[0;1;34m",
        Kind::Scalar => "\x1b[0;1;32m",
    }
}
