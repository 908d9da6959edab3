//! Writes the graphs of an SSTable.
//!
//! A graph is built in memory, so the vectors of a large SSTable are split into *segments*, one file each. The last segment is
//! marked as such, and has the number of rows of the SSTable.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, WriteFile};
use ilion_rows::{DecoratedKey, Row};
use ilion_vector::write;

use super::gathered::Gathered;
use super::values::Values;
use crate::paged::temporary_of;
use crate::{Error, SSTableIndexWriter};

/// Memory for the graph of a segment.
pub(super) const SEGMENT_BYTES: usize = 512 << 20;

/// The file of a segment, counted from 1; `base` is the start of the SSTable's component paths.
pub(super) fn path_of(base: &str, index: &str, segment: u32) -> PathBuf {
    match segment {
        0 | 1 => PathBuf::from(format!("{base}Index+{index}+Vectors.db")),
        more => PathBuf::from(format!("{base}Index+{index}+Vectors-{more}.db")),
    }
}

/// The label in a segment's file; only the last segment has `rows`.
pub(super) fn label_of(values: &Values, segment: u32, rows: Option<u32>) -> String {
    let last = rows.map_or_else(|| "more".to_owned(), |rows| format!("last of {rows} rows"));
    format!("{} segment {segment} {last}", values.words())
}

/// Collects the vectors of the rows.
pub(super) struct VectorsWriter {
    env: Arc<dyn Env>,
    base: String,
    index: String,
    values: Arc<Values>,
    segment_bytes: usize,
    gathered: Gathered,
    /// Number of written segments, which have temporary names.
    written: u32,
    rows: u32,
}

impl VectorsWriter {
    pub(super) fn new(
        env: &Arc<dyn Env>,
        base: &str,
        index: &str,
        values: &Arc<Values>,
        gathered: Gathered,
        segment_bytes: usize,
    ) -> Self {
        Self {
            env: env.clone(),
            base: base.to_owned(),
            index: index.to_owned(),
            values: values.clone(),
            segment_bytes,
            gathered,
            written: 0,
            rows: 0,
        }
    }

    fn path(&self, segment: u32) -> PathBuf {
        path_of(&self.base, &self.index, segment)
    }

    /// Writes the graph as the next segment, and starts a new graph.
    fn write_segment(&mut self, rows: Option<u32>) -> Result<(), Error> {
        let segment = self.written + 1;
        let path = self.path(segment);
        let file = self.env.create_or_truncate(&temporary_of(&path))?;
        self.written = segment;
        let label = label_of(&self.values, segment, rows);
        let mut out = BufWriter::with_capacity(1 << 18, Output(file));
        let written = write(&self.gathered.take(), label.as_bytes(), &mut out);
        let failed = |error: ilion_vector::Error| match error {
            ilion_vector::Error::Io(source) => ilion_env::Error::new("write", &path, source).into(),
            other => Error::Invalid(other.to_string()),
        };
        written.map_err(failed)?;
        let flushed = out.into_inner().map_err(io::IntoInnerError::into_error);
        let mut file = flushed.map_err(|source| ilion_env::Error::new("write", &path, source))?;
        file.0.sync()?;
        Ok(())
    }
}

impl SSTableIndexWriter for VectorsWriter {
    fn add(&mut self, number: u32, _key: &DecoratedKey, row: &Row) -> Result<(), Error> {
        self.rows = number.saturating_add(1);
        let Some(vector) = self.values.of_row(row) else {
            return Ok(());
        };
        self.gathered.add(number, vector);
        if self.gathered.memory_bytes() >= self.segment_bytes {
            self.write_segment(None)?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        let written = self.write_segment(Some(self.rows));
        if let Err(error) = written {
            self.abandon();
            return Err(error);
        }
        for segment in 1..=self.written {
            let path = self.path(segment);
            self.env.rename(&temporary_of(&path), &path)?;
        }
        Ok(())
    }

    fn abandon(self: Box<Self>) {
        for segment in 1..=self.written {
            if let Err(error) = self.env.remove_file_if_any(&temporary_of(&self.path(segment))) {
                tracing::warn!(%error, "cannot remove an unused file");
            }
        }
    }
}

/// Adapts a file to `std::io::Write`.
struct Output(Box<dyn WriteFile>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes).map_err(|error| error.source)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
