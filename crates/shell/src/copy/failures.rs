//! [`Report`]: what became of the records of an import. Records that fail go into a file of their own.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, WriteFile};

use crate::copy::options::Options;
use crate::copy::seconds;
use crate::error_text::print_failure;
use crate::session::Failure;
use crate::shell::Shell;

/// Maximum number of failures that are shown; the others are only counted.
const SHOWN_MAX: u64 = 10;

/// What became of the records of an import.
pub(super) struct Report {
    /// Rows that were written.
    pub written: u64,
    /// Rows whose outcome is unknown.
    pub lost: u64,
    /// Records that failed.
    pub failures: Failures,
}

impl Report {
    /// Nothing was imported so far.
    pub fn new(failures: Failures) -> Self {
        Self {
            written: 0,
            lost: 0,
            failures,
        }
    }

    /// Why the import ends, if more records have failed than may.
    pub fn too_many(&self, options: &Options) -> Option<String> {
        let count = self.failures.count;
        let is_over = options.failures_max.is_some_and(|most| count > most);
        is_over.then(|| format!("The import ends, because {count} rows have failed."))
    }
}

impl Shell<'_> {
    /// Prints failures, and why the import has ended before its file.
    pub(super) fn tell_report(
        &mut self,
        report: &Report,
        end: Option<String>,
        failure: Option<Failure>,
    ) -> io::Result<()> {
        for problem in &report.failures.shown {
            self.complain(problem)?;
        }
        if report.failures.count > 0 {
            self.complain(&report.failures.summary())?;
        }
        if let Some(problem) = end {
            self.complain(&problem)?;
        }
        if let Some(failure) = failure {
            let (failure, lost) = (print_failure(&failure), report.lost);
            self.complain(&format!(
                "The import has stopped: {failure}. It is not known whether {lost} rows were written."
            ))?;
        }
        Ok(())
    }

    /// Prints the last line of an import. Compat: the words of cqlsh.
    pub(super) fn tell_imported(&mut self, written: u64, nanos: u64, options: &Options) -> io::Result<()> {
        let (took, skipped) = (seconds(nanos), options.skipped_rows);
        self.output.say(&format!(
            "{written} rows imported from 1 files in {took} ({skipped} skipped)."
        ))
    }
}

/// Records that failed.
pub(super) struct Failures {
    unit: &'static str,
    env: Arc<dyn Env>,
    path: PathBuf,
    file: Option<Box<dyn WriteFile>>,
    /// True if the file has records that are not synced.
    is_dirty: bool,
    count: u64,
    /// The first of them, for the user.
    shown: Vec<String>,
    /// Why the failed records could not be written to the file.
    lost: Option<String>,
}

impl Failures {
    /// None so far; they go into this file. `unit` is `line` or `row`.
    pub fn new(env: Arc<dyn Env>, path: PathBuf, unit: &'static str) -> Self {
        Self {
            unit,
            env,
            path,
            file: None,
            is_dirty: false,
            count: 0,
            shown: Vec::new(),
            lost: None,
        }
    }

    /// Adds a record with its text.
    pub fn add(&mut self, line: u64, source: &[u8], problem: &str) {
        self.count += 1;
        if self.count <= SHOWN_MAX {
            self.shown
                .push(format!("Failed to import {} {line}: {problem}", self.unit));
        }
        if let Err(error) = self.append(source) {
            self.lost.get_or_insert(error.to_string());
        }
    }

    /// Makes the failed records durable.
    pub fn sync(&mut self) -> Result<(), String> {
        if let Some(problem) = &self.lost {
            return Err(problem.clone());
        }
        if self.is_dirty
            && let Some(file) = &mut self.file
        {
            file.sync().map_err(|error| error.to_string())?;
            self.is_dirty = false;
        }
        Ok(())
    }

    fn append(&mut self, source: &[u8]) -> ilion_env::Result<()> {
        self.is_dirty = true;
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

    fn summary(&self) -> String {
        let count = self.count;
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
