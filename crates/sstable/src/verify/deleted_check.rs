//! Compares Deleted.db with the rows: each run must begin and end with a row, and have only rows that are nothing but deletions.

use std::ops::Range;
use std::path::{Path, PathBuf};

use ilion_env::Env;
use ilion_rows::Unfiltered;

use super::opened::Opened;
use super::verification::Verification;
use crate::cells::Whole;
use crate::deleted::{DeletedRuns, Run};
use crate::tokens::fingerprint_of;
use crate::{Component, Result};

/// Checks the runs along with a read of all rows.
pub(super) struct DeletedRunsCheck {
    runs: DeletedRuns,
    path: PathBuf,
    /// Index of the next run.
    next: usize,
    /// Where the next row of the current run must begin.
    goes_on_at: Option<u64>,
}

impl DeletedRunsCheck {
    /// Opens the deleted runs; `None` if there are none, or they cannot be read.
    pub(super) fn open(
        env: &dyn Env,
        opened: &Opened,
        verification: &mut Verification,
    ) -> Result<Option<Self>> {
        let whole = Whole {
            data_length: opened.data.data_length(),
            stored_length: opened.data.stored_length(),
            fingerprint: fingerprint_of(&opened.statistics.stats),
        };
        let runs = DeletedRuns::open(env, &opened.descriptor, &opened.statistics.header, whole);
        let runs = verification.findings.take(runs)?.flatten();
        Ok(runs.map(|runs| Self {
            runs,
            path: opened.descriptor.path(&Component::Deleted),
            next: 0,
            goes_on_at: None,
        }))
    }

    /// Checks the row or marker in this place of Data.db.
    pub(super) fn unfiltered(
        &mut self,
        place: Range<u64>,
        unfiltered: &Unfiltered,
        verification: &mut Verification,
    ) {
        let Some(run) = self.runs.get(self.next) else {
            return;
        };
        if place.start < run.place.start {
            return;
        }
        let begins_at = self.goes_on_at.unwrap_or(run.place.start);
        let is_last = place.end >= run.place.end;
        if place.start != begins_at || !belongs(&run, &place, unfiltered) {
            report(&self.path, &run.place, verification);
            self.next += 1;
            self.goes_on_at = None;
            // The row may belong to the next run.
            return self.unfiltered(place, unfiltered, verification);
        }
        self.goes_on_at = (!is_last).then_some(place.end);
        self.next += usize::from(is_last);
    }

    pub(super) fn finish(mut self, verification: &mut Verification) {
        while let Some(run) = self.runs.get(self.next) {
            report(&self.path, &run.place, verification);
            self.next += 1;
        }
    }
}

/// True if the unfiltered may be in the run: as its first row if it begins where the run begins, and as its last if it ends where the run
/// ends.
fn belongs(run: &Run, place: &Range<u64>, unfiltered: &Unfiltered) -> bool {
    let Unfiltered::Row(row) = unfiltered else {
        return false;
    };
    row.is_deletion()
        && place.end <= run.place.end
        && (place.start > run.place.start || row.clustering == run.first)
        && (place.end < run.place.end || row.clustering == run.last)
}

fn report(path: &Path, place: &Range<u64>, verification: &mut Verification) {
    let expected = format!(
        "deleted rows from byte {} to {} of Data.db, with the clusterings of the first and the last",
        place.start, place.end
    );
    verification.findings.add(path, 0, expected);
}
