//! Finds the deleted runs while an SSTable is written. At most [`RUNS_MAX`] runs are in memory.

use ilion_codec::{Writer, crc32};

use super::{CLUSTERING_LEN_MAX, RUN_ROWS_MIN, RUNS_MAX, head_of};
use crate::cells::Whole;

/// A run that is complete.
#[derive(Debug)]
struct Ended {
    start: u64,
    end: u64,
    rows: u64,
    /// The clusterings of the first and the last row, as in Data.db.
    first: Box<[u8]>,
    last: Box<[u8]>,
}

/// The run that may go on with the next row.
#[derive(Debug)]
struct Open {
    start: u64,
    rows: u64,
}

/// Collects the deleted runs of one SSTable.
#[derive(Debug)]
pub(crate) struct DeletedRunsWriter {
    open: Option<Open>,
    /// The clustering of the first row of the open run.
    first: Vec<u8>,
    ended: Vec<Ended>,
    /// Shorter runs are left out.
    rows_min: u64,
}

impl Default for DeletedRunsWriter {
    fn default() -> Self {
        Self {
            open: None,
            first: Vec::new(),
            ended: Vec::new(),
            rows_min: RUN_ROWS_MIN,
        }
    }
}

impl DeletedRunsWriter {
    /// Adds a row at `position` that is only a deletion, with its clustering as in Data.db. Requires: positions ascend.
    pub(crate) fn add(&mut self, position: u64, clustering: &[u8]) {
        match &mut self.open {
            Some(open) => open.rows += 1,
            None => {
                self.first.clear();
                self.first.extend_from_slice(clustering);
                self.open = Some(Open {
                    start: position,
                    rows: 1,
                });
            }
        }
    }

    /// Ends the run, if one is open: at `end`, the partition ends or goes on with something else. `last` is the clustering of the last row,
    /// as in Data.db.
    #[inline]
    pub(crate) fn end(&mut self, end: u64, last: &[u8]) {
        if self.open.is_some() {
            self.end_open(end, last);
        }
    }

    #[cold]
    fn end_open(&mut self, end: u64, last: &[u8]) {
        let Some(Open { start, rows }) = self.open.take() else {
            return;
        };
        if rows < self.rows_min || last.len().max(self.first.len()) > CLUSTERING_LEN_MAX {
            return;
        }
        self.ended.push(Ended {
            start,
            end,
            rows,
            first: self.first.as_slice().into(),
            last: last.into(),
        });
        while self.ended.len() > RUNS_MAX {
            self.rows_min *= 2;
            self.ended.retain(|run| run.rows >= self.rows_min);
        }
    }

    /// The file; `None` if there are no runs.
    pub(crate) fn finish(self, whole: Whole) -> Option<Vec<u8>> {
        if self.ended.is_empty() {
            return None;
        }
        let mut out = Writer::from_vec(head_of(whole));
        out.uvint(self.ended.len() as u64);
        let mut before = 0;
        for run in &self.ended {
            out.uvint(run.start - before);
            out.uvint(run.end - run.start);
            for clustering in [&run.first, &run.last] {
                out.uvint(clustering.len() as u64);
                out.bytes(clustering);
            }
            before = run.end;
        }
        let crc = crc32(out.as_slice());
        out.u32_le(crc);
        Some(out.into_vec())
    }
}
