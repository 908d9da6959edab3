//! Drops dead data: from what a read returns, and for good in compactions.
//!
//! A read ([`ReadPurge`]) returns live cells only. A compaction ([`CompactionPurge`]) turns expired cells into tombstones, and
//! drops tombstones that are older than gc grace and shadow no data of other sources. Compat: `Row.purge`,
//! `AbstractCell.purge`, `PurgeFunction`, and the counts of `ReadCommand` in Cassandra 5.0.

use std::collections::BTreeSet;
use std::sync::Arc;

use ilion_schema::TableSchema;

use crate::{
    Bound, Cell, Cursor, Data, DecoratedKey, DeletionTime, Direction, Liveness, Marker, PartitionHead,
    PlainRun, PlainVisitor, ReadError, Row, Unfiltered,
};

impl Row {
    /// True if a read at `now_secs` returns the row: its liveness or one of its cells is live.
    pub fn is_live(&self, now_secs: u32) -> bool {
        self.liveness.is_live(now_secs)
            || self.columns.iter().any(|entry| match &entry.data {
                Data::Simple(cell) => cell.is_live(now_secs),
                Data::Complex(complex) => complex.cells.iter().any(|(_, cell)| cell.is_live(now_secs)),
            })
    }

    /// Keeps the data that a read at `now_secs` returns, and only in columns that the table still has. Returns false if the row is
    /// empty then.
    pub fn keep_live(&mut self, now_secs: u32, table: &TableSchema) -> bool {
        self.deletion = DeletionTime::LIVE;
        if !self.liveness.is_live(now_secs) {
            self.liveness = Liveness::NONE;
            if table.has_strict_liveness {
                self.columns.clear();
            }
        }
        self.columns.retain_mut(|entry| {
            if table.column(entry.column).is_none() {
                return false;
            }
            match &mut entry.data {
                Data::Simple(cell) => cell.is_live(now_secs),
                Data::Complex(complex) => {
                    complex.deletion = DeletionTime::LIVE;
                    complex.cells.retain(|(_, cell)| cell.is_live(now_secs));
                    !complex.cells.is_empty()
                }
            }
        });
        !self.is_empty()
    }

    /// True if some part of the row has expired or is a tombstone past gc grace.
    fn has_dead(&self, law: &PurgeLaw) -> bool {
        let is_old = |deletion: DeletionTime| !deletion.is_live() && deletion.local_secs < law.gc_before_secs;
        let is_dead = |cell: &Cell| !cell.is_live(law.now_secs);
        is_old(self.deletion)
            || (self.liveness != Liveness::NONE && !self.liveness.is_live(law.now_secs))
            || self.columns.iter().any(|entry| match &entry.data {
                Data::Simple(cell) => is_dead(cell),
                Data::Complex(complex) => {
                    is_old(complex.deletion) || complex.cells.iter().any(|(_, cell)| is_dead(cell))
                }
            })
    }

    /// Drops the data that `law` allows to drop. Returns false if the row is empty then.
    pub(crate) fn purge(&mut self, law: &PurgeLaw) -> bool {
        if law.purges(self.deletion) {
            self.deletion = DeletionTime::LIVE;
        }
        let liveness = self.liveness;
        if !liveness.is_live(law.now_secs) && law.covers(liveness.timestamp_micros, liveness.expires_secs) {
            self.liveness = Liveness::NONE;
        }
        self.columns.retain_mut(|entry| match &mut entry.data {
            Data::Simple(cell) => law.keep_cell(cell),
            Data::Complex(complex) => {
                if law.purges(complex.deletion) {
                    complex.deletion = DeletionTime::LIVE;
                }
                complex.cells.retain_mut(|(_, cell)| law.keep_cell(cell));
                !complex.deletion.is_live() || !complex.cells.is_empty()
            }
        });
        !self.is_empty()
    }
}

/// Which tombstones may be dropped for good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PurgeLaw {
    /// The current time, in seconds since 1970. Cells that have expired count as tombstones.
    pub now_secs: u32,
    /// Tombstones made before this second are past gc grace.
    pub gc_before_secs: u32,
    /// Tombstones with a lower timestamp shadow no data outside of the sources that are merged.
    pub purgeable_below_micros: i64,
}

impl PurgeLaw {
    #[inline]
    fn covers(&self, timestamp_micros: i64, local_deletion_secs: u32) -> bool {
        local_deletion_secs < self.gc_before_secs && timestamp_micros < self.purgeable_below_micros
    }

    /// True if the deletion may be dropped.
    #[inline]
    pub(crate) fn purges(&self, deletion: DeletionTime) -> bool {
        !deletion.is_live() && self.covers(deletion.marked_at_micros, deletion.local_secs)
    }

    /// Turns an expired cell into a tombstone. Returns false if the cell may be dropped.
    fn keep_cell(&self, cell: &mut Cell) -> bool {
        if cell.is_live(self.now_secs) {
            return true;
        }
        if self.covers(cell.timestamp_micros, cell.local_deletion_secs) {
            return false;
        }
        if cell.is_expiring() {
            // Compat: the tombstone counts as made when the cell was written, so that TTL and gc grace do not add up.
            let written_secs = cell.local_deletion_secs.saturating_sub(cell.ttl_secs);
            *cell = Cell::tombstone(cell.timestamp_micros, written_secs);
            return !self.covers(cell.timestamp_micros, cell.local_deletion_secs);
        }
        true
    }
}

/// Numbers of tombstones above which a query gets a warning or fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TombstoneLimits {
    /// Above this number of tombstones, the client gets a warning.
    pub warn: u64,
    /// Above this number of tombstones, the read fails.
    pub fail: u64,
}

impl TombstoneLimits {
    /// No limits (internal reads).
    pub const NONE: Self = Self {
        warn: u64::MAX,
        fail: u64::MAX,
    };
}

/// Counts of a read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadCounts {
    /// Rows returned, without static rows.
    pub live_rows: u64,
    /// Tombstones met that are not past gc grace.
    pub tombstones: u64,
}

/// The time of a read, and its limits.
#[derive(Clone, Copy, Debug)]
pub struct ReadLaw {
    /// The time of the read, in seconds since 1970.
    pub now_secs: u32,
    /// Tombstones made before this second are past gc grace and are not counted.
    pub gc_before_secs: u32,
    /// Above how many tombstones the read warns or fails.
    pub limits: TombstoneLimits,
    /// Called from time to time with the number of rows and partitions read since the last call; an error ends the read.
    pub spend: fn(u32) -> Result<(), ReadError>,
}

impl ReadLaw {
    /// Returns the data that is live at this time, without limits.
    pub fn without_limits(now_secs: u32) -> Self {
        Self {
            now_secs,
            gc_before_secs: 0,
            limits: TombstoneLimits::NONE,
            spend: Self::patient,
        }
    }

    /// The `spend` of reads without a time limit: never fails.
    pub fn patient(_: u32) -> Result<(), ReadError> {
        Ok(())
    }
}

/// Leaves only live data: no deletions, no markers, no dead rows. Partitions are returned even if no row in them is live.
/// Requires: the source is merged, so that shadowed data is gone already.
pub struct ReadPurge<C> {
    source: C,
    table: Arc<TableSchema>,
    law: ReadLaw,
    counts: ReadCounts,
    /// Rows and partitions until the next call of `ReadLaw::spend`.
    until_spend: u32,
    /// How many of the last rows were only deletions, since the source was last asked to skip such rows.
    deleted_rows: u32,
}

/// After this many deleted rows, the source is asked to skip more.
const SKIP_AFTER: u32 = 4;

/// Rows and partitions between two calls of `ReadLaw::spend`.
const SPEND_EVERY: u32 = 256;

impl<C: Cursor> ReadPurge<C> {
    /// Reads `source` of `table`.
    pub fn new(source: C, table: Arc<TableSchema>, law: ReadLaw) -> Self {
        Self {
            source,
            table,
            law,
            counts: ReadCounts::default(),
            until_spend: SPEND_EVERY,
            deleted_rows: 0,
        }
    }

    #[inline]
    fn count_met(&mut self) -> Result<(), ReadError> {
        self.until_spend -= 1;
        match self.until_spend {
            0 => self.spend(),
            _ => Ok(()),
        }
    }

    #[cold]
    fn spend(&mut self) -> Result<(), ReadError> {
        self.until_spend = SPEND_EVERY;
        (self.law.spend)(SPEND_EVERY)
    }

    /// The counts so far.
    pub fn counts(&self) -> ReadCounts {
        self.counts
    }

    /// True if the read met enough tombstones for a warning to the client.
    pub fn is_worth_warning(&self) -> bool {
        self.counts.tombstones > self.law.limits.warn
    }

    fn count(&mut self, tombstones: u64) -> Result<(), ReadError> {
        self.counts.tombstones += tombstones;
        if self.counts.tombstones > self.law.limits.fail {
            return Err(ReadError::TooManyTombstones {
                tombstones: self.counts.tombstones,
            });
        }
        Ok(())
    }

    /// Called behind a row that is only a deletion.
    #[inline]
    fn pass_deleted(&mut self) -> Result<(), ReadError> {
        self.deleted_rows += 1;
        if self.deleted_rows < SKIP_AFTER {
            return Ok(());
        }
        self.deleted_rows = 0;
        self.source.skip_deleted(None)
    }

    /// Keeps the live part of a row and counts its tombstones. Returns false if the row is not live.
    fn keep_live(&mut self, row: &mut Row) -> Result<bool, ReadError> {
        let ReadLaw {
            now_secs,
            gc_before_secs,
            ..
        } = self.law;
        // Compat: an expired cell counts as a tombstone made when it was written, as in compactions.
        let is_fresh = |cell: &Cell| {
            !cell.is_live(now_secs)
                && cell.local_deletion_secs.saturating_sub(cell.ttl_secs) >= gc_before_secs
        };
        let deletes = |deletion: DeletionTime| !deletion.is_live() && deletion.local_secs >= gc_before_secs;
        let liveness = row.liveness;
        let mut is_deleted = deletes(row.deletion)
            || (!liveness.is_none()
                && !liveness.is_live(now_secs)
                && liveness.expires_secs >= gc_before_secs);
        let mut tombstones = 0;
        for entry in &row.columns {
            match &entry.data {
                Data::Simple(cell) => tombstones += u64::from(is_fresh(cell)),
                Data::Complex(complex) => {
                    is_deleted |= deletes(complex.deletion);
                    tombstones += complex.cells.iter().filter(|(_, cell)| is_fresh(cell)).count() as u64;
                }
            }
        }
        let is_left = row.keep_live(now_secs, &self.table);
        // A deleted row without tombstones among its cells counts as one tombstone.
        if !is_left && tombstones == 0 && is_deleted {
            tombstones = 1;
        }
        if tombstones > 0 {
            self.count(tombstones)?;
        }
        Ok(is_left)
    }
}

impl<C: Cursor> Cursor for ReadPurge<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.count_met()?;
        let Some(mut head) = self.source.next_partition()? else {
            return Ok(None);
        };
        head.deletion = DeletionTime::LIVE;
        if let Some(row) = &mut head.static_row
            && !self.keep_live(row)?
        {
            head.static_row = None;
        }
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while let Some(unfiltered) = self.source.next_unfiltered()? {
            self.count_met()?;
            match unfiltered {
                Unfiltered::Row(mut row) => {
                    let is_deletion = row.is_deletion();
                    if self.keep_live(&mut row)? {
                        self.counts.live_rows += 1;
                        self.deleted_rows = 0;
                        return Ok(Some(Unfiltered::Row(row)));
                    }
                    if is_deletion {
                        self.pass_deleted()?;
                    }
                }
                Unfiltered::Marker(marker) => {
                    let fresh = [marker.end, marker.start]
                        .into_iter()
                        .flatten()
                        .any(|deletion| deletion.local_secs >= self.law.gc_before_secs);
                    self.count(u64::from(fresh))?;
                }
            }
        }
        Ok(None)
    }

    /// Plain rows are live, unless the table requires a live primary key.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        if self.table.has_strict_liveness {
            return Ok(None);
        }
        let run = self.source.plain_partitions(before, visitor)?;
        self.counts.live_rows += run.as_ref().map_or(0, |run| run.count);
        Ok(run)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        if self.table.has_strict_liveness {
            return Ok(0);
        }
        let count = self.source.plain_rows(key, before, visitor)?;
        self.counts.live_rows += count;
        Ok(count)
    }

    crate::cursor_methods!(forward source: lower_bound);

    crate::cursor_methods!(without: peek skip_deleted);
}

/// Returns for a partition the timestamp below which tombstones may be dropped: the lowest timestamp that any source outside of
/// the compaction may have for it.
pub type PurgeableBelow = Box<dyn FnMut(&DecoratedKey) -> i64 + Send>;

/// Drops tombstones that are past gc grace and shadow no data elsewhere, and turns expired cells into tombstones. Partitions
/// may end up empty.
pub struct CompactionPurge<C> {
    source: C,
    law: PurgeLaw,
    has_strict_liveness: bool,
    purgeable_below: PurgeableBelow,
    /// The current partition, until `purgeable_below` is called for it. Most partitions have no tombstone, so need no call.
    pending_key: Option<DecoratedKey>,
    gc_before_secs: u32,
    /// Partitions whose tombstones are purged without waiting for gc grace.
    without_grace: Arc<BTreeSet<DecoratedKey>>,
}

impl<C: Cursor> CompactionPurge<C> {
    /// Purges `source`, which reads forwards.
    pub fn new(source: C, now_secs: u32, gc_before_secs: u32, purgeable_below: PurgeableBelow) -> Self {
        Self {
            source,
            law: PurgeLaw {
                now_secs,
                gc_before_secs,
                purgeable_below_micros: i64::MIN,
            },
            purgeable_below,
            has_strict_liveness: false,
            pending_key: None,
            gc_before_secs,
            without_grace: Arc::default(),
        }
    }

    /// Purges the tombstones of these partitions at any age.
    #[must_use]
    pub fn without_grace_of(self, keys: Arc<BTreeSet<DecoratedKey>>) -> Self {
        Self {
            without_grace: keys,
            ..self
        }
    }

    /// Applies the table's strict liveness: if the primary key liveness of a row is gone, the rest of the row is dropped, too.
    #[must_use]
    pub fn of_table(self, table: &TableSchema) -> Self {
        Self {
            has_strict_liveness: table.has_strict_liveness,
            ..self
        }
    }

    fn is_abandoned(&self, row: &Row) -> bool {
        self.has_strict_liveness && row.liveness.is_none() && row.deletion.is_live()
    }

    /// Computes the purgeable timestamp of the current partition, unless it is known already.
    #[cold]
    fn find_purgeable(&mut self) {
        if let Some(key) = self.pending_key.take() {
            self.law.purgeable_below_micros = (self.purgeable_below)(&key);
        }
    }

    fn purge_row(&mut self, row: &mut Row) -> bool {
        if !row.has_dead(&self.law) {
            return true;
        }
        self.find_purgeable();
        row.purge(&self.law)
    }

    fn purge_marker(&self, marker: Marker) -> Option<Marker> {
        let keep = |side: Option<DeletionTime>| side.filter(|deletion| !self.law.purges(*deletion));
        let (end, start) = (keep(marker.end), keep(marker.start));
        if (end, start) == (marker.end, marker.start) {
            return Some(marker);
        }
        (end.is_some() || start.is_some()).then(|| Marker::at(&marker.bound, end, start, Direction::Forward))
    }
}

impl<C: Cursor> Cursor for CompactionPurge<C> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(mut head) = self.source.next_partition()? else {
            return Ok(None);
        };
        if !self.without_grace.is_empty() {
            self.law.gc_before_secs = match self.without_grace.contains(&head.key) {
                true => u32::MAX,
                false => self.gc_before_secs,
            };
        }
        self.pending_key = Some(head.key.clone());
        if !head.deletion.is_live() {
            self.find_purgeable();
        }
        if self.law.purges(head.deletion) {
            head.deletion = DeletionTime::LIVE;
        }
        if let Some(row) = &mut head.static_row
            && !self.purge_row(row)
        {
            head.static_row = None;
        }
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        while let Some(unfiltered) = self.source.next_unfiltered()? {
            match unfiltered {
                Unfiltered::Row(mut row) => {
                    if self.purge_row(&mut row) && !self.is_abandoned(&row) {
                        return Ok(Some(Unfiltered::Row(row)));
                    }
                }
                Unfiltered::Marker(marker) => {
                    self.find_purgeable();
                    if let Some(marker) = self.purge_marker(marker) {
                        return Ok(Some(Unfiltered::Marker(marker)));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Plain rows have nothing to purge, unless the table requires a live primary key.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        if self.has_strict_liveness {
            return Ok(None);
        }
        self.source.plain_partitions(before, visitor)
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        if self.has_strict_liveness {
            return Ok(0);
        }
        self.source.plain_rows(key, before, visitor)
    }

    crate::cursor_methods!(forward source: lower_bound);

    crate::cursor_methods!(without: peek skip_deleted);
}
