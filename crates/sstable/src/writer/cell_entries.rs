//! Decides which rows get an entry in the cell map, and writes these entries.
//!
//! The start of a partition gets an entry if its static row or its first row has one: then a read of that row needs only the
//! selected values from Data.db.

use std::sync::Arc;

use ilion_env::Env;
use ilion_rows::{Row, Unfiltered};

use super::CellMapLimits;
use crate::cells::{CellMapWriter, Whole};
use crate::row::encode::{Detail, RowEncoder, RowKind, Sketch};
use crate::{Component, Descriptor, Result};

/// Longer starts of partitions get no entry; they are read from Data.db.
const HEAD_BYTES_MAX: usize = 512;
/// Size of an entry's position and lengths, without its other bytes.
const ENTRY_OVERHEAD_BYTES: u64 = 10;

/// Writes the entries of one SSTable.
pub(super) struct CellEntries {
    map: CellMapWriter,
    limits: CellMapLimits,
    sketch: Sketch,
    /// True if the start of the partition has an entry, because its static row is large.
    has_head: bool,
}

/// A row that may get an entry.
struct Candidate<'r> {
    row: &'r Row,
    kind: RowKind,
    position: u64,
    /// The bytes of the partition before the row, if the start of the partition may get an entry.
    before: Option<&'r [u8]>,
    /// The bytes of the row before its body.
    head: &'r [u8],
}

impl CellEntries {
    pub(super) fn new(env: &Arc<dyn Env>, descriptor: &Descriptor, limits: CellMapLimits) -> Self {
        Self {
            map: CellMapWriter::new(env.clone(), descriptor.path(&Component::Cells)),
            limits,
            sketch: Sketch::default(),
            has_head: false,
        }
    }

    /// Starts a partition.
    #[inline]
    pub(super) fn begin_partition(&mut self) {
        self.has_head = false;
    }

    /// Adds an entry for a static row if it is large enough. The partition starts at `position` with these bytes; its static row
    /// starts at `static_at` in them, and the encoder has the row's body.
    pub(super) fn static_row(
        &mut self,
        position: u64,
        bytes: &[u8],
        static_at: usize,
        row: &Row,
        encoder: &RowEncoder,
    ) -> Result<()> {
        let (before, head) = bytes.split_at(static_at);
        let candidate = Candidate {
            row,
            kind: RowKind::Static,
            position: position + static_at as u64,
            before: Some(before).filter(|before| before.len() <= HEAD_BYTES_MAX),
            head,
        };
        self.has_head = self.consider(&candidate, encoder)?;
        Ok(())
    }

    /// Adds an entry for a row if it is large enough. The row or marker starts at `position`, and at `at` of the last bytes written; the
    /// encoder has its body. For the first unfiltered of a partition, the number of the partition's bytes before it is given.
    #[inline]
    pub(super) fn unfiltered(
        &mut self,
        unfiltered: &Unfiltered,
        position: u64,
        before_first: Option<u64>,
        bytes: &[u8],
        at: usize,
        encoder: &RowEncoder,
    ) -> Result<()> {
        let body_length = encoder.body().len();
        if let Unfiltered::Row(row) = unfiltered
            && body_length > 0
            && body_length + (bytes.len() - at) as u64 >= u64::from(self.limits.row_bytes_min)
        {
            let (before, head) = bytes.split_at(at);
            let before_first = before_first.filter(|_| !self.has_head);
            let before_first = before_first.and_then(|length| usize::try_from(length).ok());
            let length = before_first.filter(|length| *length <= HEAD_BYTES_MAX);
            let candidate = Candidate {
                row,
                kind: RowKind::Regular,
                position,
                before: length.and_then(|length| before.get(at.checked_sub(length)?..)),
                head,
            };
            self.consider(&candidate, encoder)?;
        }
        Ok(())
    }

    /// Adds an entry for the row if it is large enough. Returns true if it was added.
    fn consider(&mut self, candidate: &Candidate<'_>, encoder: &RowEncoder) -> Result<bool> {
        let length = candidate.head.len() as u64 + encoder.body().len();
        if length < u64::from(self.limits.row_bytes_min) {
            return Ok(false);
        }
        let budget = match self.limits.row_bytes_per_map_byte {
            0 => u64::MAX,
            bytes => length / u64::from(bytes),
        };
        let before_columns = encoder.body().before_columns();
        for detail in [Detail::Fine, Detail::Coarse] {
            let drawn = encoder.sketch(candidate.row, candidate.kind, detail, &mut self.sketch);
            let parts = self.sketch.parts();
            let entry = candidate.head.len() + before_columns.len() + parts.len();
            let cost = entry as u64 + ENTRY_OVERHEAD_BYTES;
            if drawn.is_err() || parts.is_empty() || cost > budget {
                continue;
            }
            if let Some(before) = candidate.before
                && cost + before.len() as u64 + ENTRY_OVERHEAD_BYTES <= budget
            {
                let at = candidate.position - before.len() as u64;
                self.map.add(at, &[before], &[])?;
            }
            self.map
                .add(candidate.position, &[candidate.head, before_columns], parts)?;
            return Ok(true);
        }
        Ok(false)
    }

    pub(super) fn finish(self, whole: Whole) -> Result<()> {
        self.map.finish(whole)?;
        Ok(())
    }
}
