//! [`Import`]: a COPY FROM that is under way, whatever its file is. [`ImportProgress`]: how far it has come, and the file that says so.

use std::io;
use std::path::{Path, PathBuf};

use ilion_codec::crc32_extend;
use ilion_env::ReadFile;
use ilion_tools::Bar;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::copy::Named;
use crate::copy::acknowledged::Acknowledged;
use crate::copy::failures::{Failures, Report};
use crate::copy::options::Options;
use crate::copy::progress::ProgressFile;
use crate::session::Failure;
use crate::shell::Shell;

/// Finished records between two looks at the clock.
const SAVE_STRIDE: u64 = 1024;
/// Bytes that are read at once for a CRC.
const CRC_BYTES: usize = 256 << 10;

/// By what a file is recognized. Its imported part is compared, too, where a place in it has a CRC.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    #[serde(rename = "source_bytes")]
    size_bytes: u64,
    /// The CRC-32 of the footer, of a Parquet file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    footer_crc: Option<u32>,
}

impl Source {
    /// A CSV file.
    pub fn of_csv(file: &dyn ReadFile) -> Self {
        Self {
            size_bytes: file.size_bytes(),
            footer_crc: None,
        }
    }

    /// A Parquet file. Its footer has the place, the size and mostly the least and the greatest value of each column chunk, and ends with its
    /// own size and a magic number.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn of_parquet(file: &dyn ReadFile) -> ilion_env::Result<Self> {
        let size_bytes = file.size_bytes();
        let mut tail = [0; 8];
        let tail_offset = size_bytes.saturating_sub(tail.len() as u64);
        file.read_at(tail_offset, &mut tail)?;
        let [a, b, c, d, ..] = tail;
        let footer_bytes = u32::from_le_bytes([a, b, c, d]);
        let crc = crc_of(file, tail_offset.saturating_sub(footer_bytes.into()), size_bytes)?;
        Ok(Self {
            size_bytes,
            footer_crc: Some(crc),
        })
    }

    /// How this file differs from an earlier one.
    fn change_from(&self, before: &Self) -> Option<String> {
        let (was, is) = (before.size_bytes, self.size_bytes);
        if was != is {
            Some(format!("it had {was} bytes and has {is}"))
        } else if before != self {
            Some("its footer is not the same".to_owned())
        } else {
            None
        }
    }
}

/// How far an import has come; `Mark` is a place in the source.
pub(super) struct ImportProgress<Mark> {
    file: ProgressFile,
    source: Source,
    acknowledged: Acknowledged<Mark>,
    /// Records that were written or kept as failed.
    finished: u64,
}

/// An import that is under way: what it has in common with those of other kinds of files.
pub(super) struct Import<Mark> {
    pub bar: Bar,
    pub report: Report,
    pub progress: ImportProgress<Mark>,
    /// True if no record is left.
    is_complete: bool,
    /// Why it ends before the file does.
    end: Option<String>,
}

/// The contents of the file.
#[derive(Serialize, Deserialize)]
struct ImportAt<Mark> {
    #[serde(flatten)]
    source: Source,
    #[serde(flatten)]
    mark: Mark,
}

impl<Mark: Copy + Serialize> ImportProgress<Mark> {
    /// An import that begins at this place.
    pub fn new(file: ProgressFile, source: Source, mark: Mark) -> Self {
        Self {
            file,
            source,
            acknowledged: Acknowledged::new(mark),
            finished: 0,
        }
    }

    /// Moves the beginning. Requires: no record was taken.
    pub fn begin_at(&mut self, mark: Mark) {
        self.acknowledged = Acknowledged::new(mark);
    }

    /// Adds the next record, which ends here; returns its number.
    pub fn take(&mut self, end: Mark) -> u64 {
        self.acknowledged.take(end)
    }

    fn finish(&mut self, number: u64, failures: &mut Failures) {
        self.acknowledged.finish(number);
        self.finished += 1;
        if self.finished.is_multiple_of(SAVE_STRIDE) && self.file.is_due() {
            self.save(failures);
        }
    }

    /// Saves the progress, after the failed records before it.
    fn save(&mut self, failures: &mut Failures) {
        match failures.sync() {
            Ok(()) => self.file.save(&ImportAt {
                source: self.source.clone(),
                mark: self.acknowledged.mark(),
            }),
            Err(problem) => self.file.fail(problem),
        }
    }
}

impl<Mark: Copy + Serialize> Import<Mark> {
    pub fn new(bar: Bar, report: Report, progress: ImportProgress<Mark>) -> Self {
        Self {
            bar,
            report,
            progress,
            is_complete: false,
            end: None,
        }
    }

    /// True if the options let it take another record, after this many.
    pub fn may_take(&mut self, taken: u64, options: &Options) -> bool {
        if self.end.is_some() {
            return false;
        }
        if options.rows_max.is_some_and(|most| taken >= most) {
            self.is_complete = true;
            return false;
        }
        self.end = self.report.too_many(options);
        self.end.is_none()
    }

    /// Notes what the file has next: a record, or `None` at its end. Returns the record.
    pub fn note_read<T>(&mut self, read: Result<Option<T>, String>) -> Option<T> {
        match read {
            Ok(Some(record)) => return Some(record),
            Ok(None) => self.is_complete = true,
            Err(problem) => self.end = Some(format!("The file cannot be read: {problem}")),
        }
        None
    }

    /// Marks a record as finished. Saves the progress once a second.
    pub fn finish(&mut self, number: u64) {
        self.progress.finish(number, &mut self.report.failures);
    }
}

impl Shell<'_> {
    /// The progress file of an import.
    pub(super) fn progress_file(
        &self,
        source: &Path,
        named: &Named,
        options: &Options,
        statement: String,
    ) -> ProgressFile {
        let mut terms = options.terms();
        terms.insert("file".to_owned(), source.display().to_string());
        terms.insert("statement".to_owned(), statement);
        ProgressFile::new(
            self.env.clone(),
            path_beside(&named.error_file(options), named, source),
            terms,
        )
    }

    /// Ends an import, whose session failed if there is a failure, and prints what became of it. Saves its progress, or removes the file if it
    /// is complete; `place_of` is a place in words.
    pub(super) fn end_import<Mark: Copy + Serialize>(
        &mut self,
        import: Import<Mark>,
        failure: Option<Failure>,
        started_nanos: u64,
        place_of: impl Fn(Mark) -> String,
        options: &Options,
    ) -> io::Result<()> {
        let Import {
            bar,
            mut report,
            mut progress,
            is_complete,
            end,
        } = import;
        drop(bar);
        let is_complete = is_complete && failure.is_none();
        if !is_complete {
            progress.save(&mut report.failures);
        }
        let nanos = self.env.monotonic_nanos() - started_nanos;
        self.tell_report(&report, end, failure)?;
        if !is_complete {
            let place = place_of(progress.acknowledged.mark());
            self.complain(&progress.file.advice(&place))?;
        } else if let Err(problem) = progress.file.remove() {
            self.complain(&problem)?;
        }
        self.tell_imported(report.written, nanos, options)
    }
}

/// How far an earlier import of the same source has come.
///
/// # Errors
/// There was none, it was another one, or the source at this path has changed.
pub(super) fn load<Mark: DeserializeOwned>(
    file: &ProgressFile,
    path: &Path,
    source: &Source,
) -> Result<Mark, String> {
    let at: ImportAt<Mark> = file.load()?;
    match source.change_from(&at.source) {
        None => Ok(at.mark),
        Some(change) => Err(has_changed(path, &change)),
    }
}

pub(super) fn has_changed(path: &Path, change: &str) -> String {
    let path = path.display();
    format!("'{path}' has changed since the COPY that was interrupted: {change}. Copy again without RESUME.")
}

/// The progress file stands beside the file of failed rows. Two files can be imported into one table at the same time.
fn path_beside(error_file: &Path, named: &Named, source: &Path) -> PathBuf {
    let source = source.file_name().unwrap_or_default().to_string_lossy();
    error_file.with_file_name(format!(
        "import_{}_{}_{source}.progress",
        named.keyspace, named.table
    ))
}

/// The CRC-32 of a part of a file.
pub(super) fn crc_of(file: &dyn ReadFile, mut offset: u64, end: u64) -> ilion_env::Result<u32> {
    let mut buffer = vec![0; CRC_BYTES];
    let mut crc = 0;
    while offset < end {
        let most = usize::try_from(end - offset).map_or(CRC_BYTES, |left| left.min(CRC_BYTES));
        let count = file.read_at(offset, &mut buffer[..most])?;
        if count == 0 {
            break;
        }
        crc = crc32_extend(crc, &buffer[..count]);
        offset += count as u64;
    }
    Ok(crc)
}
