//! Compares Cells.db with the rows: a read with the map must return the same data as Data.db has.

use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Env;
use ilion_rows::{ClusteringFilter, Data, Row};

use super::opened::Opened;
use super::verification::Verification;
use crate::cells::{CellMap, Entry};
use crate::error::Step;
use crate::row::decode::{Head, RowFormat, Unwanted, Wanted};
use crate::tokens::fingerprint_of;
use crate::{ChunkReader, Component, DataStream, Result};

/// Checks that every entry belongs to a partition or row, and describes it correctly.
pub(super) struct CellMapCheck {
    map: CellMap,
    path: PathBuf,
    data: Arc<ChunkReader>,
    format: RowFormat,
    /// Selects no values.
    filter: ClusteringFilter,
    entries: u64,
}

impl CellMapCheck {
    /// Opens the cell map; `None` if there is none, or it cannot be read.
    pub(super) fn open(
        env: &dyn Env,
        opened: &Opened,
        verification: &mut Verification,
    ) -> Result<Option<Self>> {
        let fingerprint = fingerprint_of(&opened.statistics.stats);
        let stored_length = opened.data.stored_length();
        let map = CellMap::open(env, &opened.descriptor, fingerprint, stored_length);
        let Some(map) = verification.findings.take(map)?.flatten() else {
            return Ok(None);
        };
        Ok(Some(Self {
            map,
            path: opened.descriptor.path(&Component::Cells),
            data: opened.data.clone(),
            format: RowFormat::of(&opened.statistics.header, opened.version(), &opened.table)?,
            filter: ClusteringFilter {
                columns: Some([].into()),
                ..ClusteringFilter::all()
            },
            entries: 0,
        }))
    }

    /// Checks the partition at `start` of Data.db, which has this static row.
    pub(super) fn partition(
        &mut self,
        start: u64,
        key_length: usize,
        static_row: Option<&Row>,
        verification: &mut Verification,
    ) -> Result<()> {
        self.entry(start, verification)?;
        let Some(row) = static_row else {
            return Ok(());
        };
        let mut stream = DataStream::cached(self.data.clone(), start);
        stream.skip(2 + key_length as u64)?;
        self.format.times.partition_deletion(&mut stream)?;
        let position = stream.position();
        let Some(entry) = self.entry(position, verification)? else {
            return Ok(());
        };
        stream.lay(position, entry.head);
        let read = self.format.static_row(
            &mut stream,
            Wanted::of(&self.filter, Unwanted::Times),
            entry.parts,
        );
        self.compare(position, row, read, verification)
    }

    /// Checks the row at `position` of Data.db.
    pub(super) fn row(&mut self, position: u64, row: &Row, verification: &mut Verification) -> Result<()> {
        let Some(entry) = self.entry(position, verification)? else {
            return Ok(());
        };
        let mut stream = DataStream::cached(self.data.clone(), position);
        stream.lay(position, entry.head);
        let read = self.format.head(&mut stream).and_then(|head| match head {
            Some(Head::Row(mut head)) => {
                head.parts = entry.parts;
                let wanted = Wanted::of(&self.filter, Unwanted::Times);
                self.format.row(&mut stream, head, wanted).map(Some)
            }
            _ => Ok(None),
        });
        self.compare(position, row, read, verification)
    }

    /// The entry of a position; its first bytes must be those of Data.db.
    fn entry(&mut self, position: u64, verification: &mut Verification) -> Result<Option<Entry>> {
        let near = verification.findings.take(self.map.near(position))?;
        let Some(entry) = near.and_then(|near| near.entry) else {
            return Ok(None);
        };
        self.entries += 1;
        let there = self.data.read_at(position, entry.head.len());
        if verification
            .findings
            .take(there)?
            .is_none_or(|there| there != entry.head)
        {
            self.report(position, verification);
            return Ok(None);
        }
        Ok(Some(entry))
    }

    fn compare(
        &self,
        position: u64,
        row: &Row,
        read: Step<Option<Row>>,
        verification: &mut Verification,
    ) -> Result<()> {
        let read = read.map_err(|error| *error);
        let read = verification.findings.take(read)?.flatten();
        if read.map(without_values) != Some(without_values(row.clone())) {
            self.report(position, verification);
        }
        Ok(())
    }

    fn report(&self, position: u64, verification: &mut Verification) {
        let expected = format!("what Data.db has at byte {position}");
        verification.findings.add(&self.path, 0, expected);
    }

    pub(super) fn finish(self, verification: &mut Verification) {
        if self.entries != self.map.entry_count() {
            let expected = format!("{} entries at the starts of partitions and rows", self.entries);
            verification.findings.add(&self.path, 0, expected);
        }
    }
}

/// The row as a read that selects no columns returns it. Counters keep their values, which are always read.
fn without_values(mut row: Row) -> Row {
    for entry in &mut row.columns {
        match &mut entry.data {
            Data::Simple(cell) => cell.value = Bytes::new(),
            Data::Complex(complex) => {
                let cells = complex.cells.iter_mut();
                cells.for_each(|(_, cell)| cell.value = Bytes::new());
            }
        }
    }
    row
}
