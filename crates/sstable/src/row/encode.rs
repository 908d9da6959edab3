//! Encodes rows and markers, as [`super::format`] describes them.
//!
//! A row is encoded in one of two ways, with the same result. [`usual`] encodes a row in one pass, if the row has the usual
//! form. The general way, here, handles every row ([`RowSource`]). It first chooses the columns to store, which gives an upper bound
//! of the row's size. A short row is then written in place, with space reserved for its size. The body of a long row is
//! collected separately ([`EncodedBody`]), so that large values need not be copied, and the cell map can describe it
//! ([`Sketch`]).

mod body;
mod cell;
mod columns;
mod sketch;
mod source;
#[cfg(test)]
mod tests;
mod usual;

use std::ops::Range;

use ilion_codec::{Append, Slab, unsigned_vint_len};
use ilion_rows::{CellRef, ComplexColumn, DeletionTime, Liveness, Marker, PlainRow, Row};
use ilion_schema::TableSchema;

use super::format::state::{RowFlags, RowState};
use super::format::times::{PARTITION_DELETION_BYTES_MAX, Times, encode_partition_deletion};
use super::format::values::{FixedLen, Unstorable, encode_bound, encode_values};
use super::format::{VINT_BYTES_MAX, unfiltered_flag};
use crate::metadata_collector::MetadataCollector;
use crate::{EncodingStats, Version};

use body::BodySink;
use cell::encode_cell_head;
use columns::{ColumnLayout, StoredColumn};
use source::{Content, SeenRow};

pub(crate) use body::{EncodedBody, LARGE_VALUE_BYTES};
pub(crate) use sketch::{Detail, Sketch};
pub(crate) use source::RowSource;

/// Encodes the rows and markers of one table, and adds them to the statistics.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    clustering_lens: Vec<FixedLen>,
    regulars: ColumnLayout,
    statics: ColumnLayout,
    times: Times,
    /// Bodies whose upper bound of the size is below this are written in place.
    short_bytes_max: usize,
    /// Length of the size field of the last row. The next row reserves as many bytes: rows of a table have similar sizes.
    size_len: usize,
    /// The body of the current long row, static row or marker; its size comes first.
    body: EncodedBody,
}

/// How the body of a row is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fit {
    /// The row is not written: all its columns were dropped since it was written.
    Blank,
    /// The row is written in place; the value is an upper bound of its size.
    Short(usize),
    /// The body is collected separately.
    Long,
}

/// Maximum size of a body before its columns: the state of the row, a bitmap of columns.
const BODY_HEAD_BYTES_MAX: usize = RowState::BYTES_MAX + VINT_BYTES_MAX;

impl RowEncoder {
    pub(crate) fn new(table: &TableSchema, least: EncodingStats, version: Version) -> Self {
        let lens = table.clustering().map(|column| column.ty.fixed_len());
        Self {
            clustering_lens: lens
                .map(|len| len.and_then(|len| u32::try_from(len).ok()))
                .collect(),
            regulars: ColumnLayout::of(table, table.regulars()),
            statics: ColumnLayout::of(table, table.statics()),
            times: Times::new(least, version),
            short_bytes_max: LARGE_VALUE_BYTES,
            size_len: 1,
            body: EncodedBody::default(),
        }
    }

    /// Treats rows of at least `row_bytes_min` bytes as long, so that the cell map can describe their [`RowEncoder::body`]. A row
    /// that consists mostly of its clustering may stay short.
    #[must_use]
    pub(crate) fn with_bodies_from(self, row_bytes_min: u32) -> Self {
        Self {
            short_bytes_max: self.short_bytes_max.min(row_bytes_min as usize / 2),
            ..self
        }
    }

    /// For a file without static columns, even if the table has some.
    #[must_use]
    pub(crate) fn without_statics(self) -> Self {
        Self {
            statics: ColumnLayout::default(),
            ..self
        }
    }

    /// True if partitions have a static row, which may be empty.
    #[inline]
    pub(crate) fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    /// The rest of the last unfiltered; empty if the whole unfiltered was appended.
    #[inline]
    pub(crate) fn body(&self) -> &EncodedBody {
        &self.body
    }

    /// Drops the values of the body, after it was written.
    pub(crate) fn forget_values(&mut self) {
        self.body.forget_values();
    }

    /// Appends the start of the static row; `None` is an empty row. Appends no bytes if the table has no static columns.
    /// Returns true if the row is not empty; [`RowEncoder::body`] then has its body.
    #[inline]
    pub(crate) fn encode_static(
        &mut self,
        row: Option<&Row>,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<bool, Unstorable> {
        self.body.clear();
        match self.statics.is_empty() {
            true => Ok(false),
            false => self.encode_static_row(row, stats, out),
        }
    }

    fn encode_static_row(
        &mut self,
        row: Option<&Row>,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<bool, Unstorable> {
        if let Some(row) = row {
            self.statics.choose(row)?;
        }
        let row = row.filter(|row| !is_blank(*row, &self.statics));
        let flags = match row {
            Some(row) => {
                let flags = flags_of(row, &self.statics);
                encode_body(row, flags, &self.statics, &self.times, stats, &mut self.body)?;
                flags
            }
            None => {
                self.statics.encode_empty_subset(&mut self.body);
                RowState::NONE.flags()
            }
        };
        flags.of_static().encode(out);
        append_sizes(0, self.body.len(), out);
        Ok(row.is_some())
    }

    /// Describes the columns of the last row for the cell map.
    pub(crate) fn sketch(
        &self,
        row: &Row,
        kind: RowKind,
        detail: Detail,
        out: &mut Sketch,
    ) -> Result<(), Unstorable> {
        let layout = match kind {
            RowKind::Static => &self.statics,
            RowKind::Regular => &self.regulars,
        };
        let has_complex_deletion = has_complex_deletion(row, layout);
        out.draw(row, layout, &self.times, has_complex_deletion, detail)
    }

    /// Appends a row, or the start of a row whose body is [`RowEncoder::body`]. Returns the range of its clustering values in
    /// `out`; `None` if the row is empty.
    #[inline]
    pub(crate) fn encode_row(
        &mut self,
        row: &Row,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        match self.fit(row)? {
            Fit::Blank => Ok(None),
            Fit::Short(most) => self.encode_short(row, most, previous_size, stats, out).map(Some),
            Fit::Long => self.encode_long(row, previous_size, stats, out).map(Some),
        }
    }

    /// Appends a plain row that was written at `written_micros`, in one of the two ways. Returns the range of its clustering
    /// values in `out`; `None`, without appending, if the row is long and must be encoded as a [`Row`].
    #[inline(always)]
    pub(crate) fn encode_seen(
        &mut self,
        row: &PlainRow<'_>,
        written_micros: i64,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        match self.encode_usual_seen(row, written_micros, previous_size, stats, out) {
            Some(clustering) => Ok(Some(clustering)),
            None => self.encode_if_short(&SeenRow { row, written_micros }, previous_size, stats, out),
        }
    }

    /// Appends a row if it is short and not empty. Returns the range of its clustering values in `out`; `None`, without
    /// appending, if it must be encoded as a [`Row`].
    #[inline(never)]
    pub(crate) fn encode_if_short(
        &mut self,
        row: &impl RowSource,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        match self.fit(row)? {
            Fit::Short(most) => self.encode_short(row, most, previous_size, stats, out).map(Some),
            Fit::Blank | Fit::Long => Ok(None),
        }
    }

    /// Chooses the columns to store; returns how to write the row.
    #[inline]
    fn fit(&mut self, row: &impl RowSource) -> Result<Fit, Unstorable> {
        if row.clustering().len() != self.clustering_lens.len() {
            return Err(Unstorable::PartialClustering);
        }
        self.body.clear();
        let most = BODY_HEAD_BYTES_MAX + self.regulars.choose(row)?;
        if is_blank(row, &self.regulars) {
            return Ok(Fit::Blank);
        }
        let is_short = most < self.short_bytes_max && self.regulars.has_bitmap();
        Ok(if is_short { Fit::Short(most) } else { Fit::Long })
    }

    /// Appends a whole row. Requires: its columns are chosen; `most` is an upper bound of its size.
    #[inline]
    fn encode_short(
        &mut self,
        row: &impl RowSource,
        most: usize,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Range<usize>, Unstorable> {
        let flags = flags_of(row, &self.regulars);
        flags.encode(out);
        let start = out.len();
        encode_values(&self.clustering_lens, row.clustering(), out)?;
        let size_at = out.len();
        out.room(self.size_len);
        let from = out.len();
        out.uvint(previous_size);
        let (layout, times) = (&self.regulars, &self.times);
        out.fill(most, |out| encode_body(row, flags, layout, times, stats, out))?;
        let size = (out.len() - from) as u64;
        self.put_size(size_at, size, out);
        Ok(start..size_at)
    }

    /// Writes the size into the reserved space; the next row reserves the same length.
    #[inline]
    fn put_size(&mut self, at: usize, size: u64, out: &mut Slab) {
        self.size_len = out.uvint_at(at, self.size_len, size);
    }

    /// Appends the start of a row. Requires: its columns are chosen. [`RowEncoder::body`] has the rest.
    fn encode_long(
        &mut self,
        row: &Row,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Range<usize>, Unstorable> {
        let flags = flags_of(row, &self.regulars);
        encode_body(row, flags, &self.regulars, &self.times, stats, &mut self.body)?;
        flags.encode(out);
        let start = out.len();
        encode_values(&self.clustering_lens, row.clustering.values(), out)?;
        let clustering = start..out.len();
        append_sizes(previous_size, self.body.len(), out);
        Ok(clustering)
    }

    /// Appends the start of a marker; its body is [`RowEncoder::body`]. Returns the range of its bound in `out`.
    pub(crate) fn encode_marker(
        &mut self,
        marker: &Marker,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Range<usize>, Unstorable> {
        let kind = marker.bound.kind;
        let needs_end = kind.is_end() || kind.is_boundary();
        let needs_start = kind.is_start() || kind.is_boundary();
        if marker.end.is_some() != needs_end || marker.start.is_some() != needs_start {
            return Err(Unstorable::MarkerSides);
        }
        self.body.clear();
        for deletion in marker.end.iter().chain(&marker.start) {
            self.times.encode_deletion(deletion, &mut self.body);
            stats.deletion(deletion);
        }
        out.u8(unfiltered_flag::IS_MARKER);
        let start = out.len();
        encode_bound(&self.clustering_lens, &marker.bound, out)?;
        let bound = start..out.len();
        append_sizes(previous_size, self.body.len(), out);
        Ok(bound)
    }
}

/// Appends the number of bytes that follow the size field in the unfiltered, and the distance to the previous unfiltered.
#[inline]
fn append_sizes(previous_size: u64, body_len: u64, out: &mut impl Append) {
    out.uvint(unsigned_vint_len(previous_size) as u64 + body_len);
    out.uvint(previous_size);
}

/// The kind of a row, which determines its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// The static row of a partition.
    Static,
    /// A row with a clustering.
    Regular,
}

/// Appends the start of a partition, before its static row.
#[inline]
pub(crate) fn encode_partition_start(
    version: Version,
    key: &[u8],
    deletion: &DeletionTime,
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    out.bytes16(key);
    encode_partition_deletion(version, deletion, out)
}

/// Maximum length of the start of a partition.
#[inline]
pub(crate) fn partition_start_len_max(key: &[u8]) -> usize {
    2 + key.len() + PARTITION_DELETION_BYTES_MAX
}

/// Appends the end of a partition.
#[inline]
pub(crate) fn encode_end_of_partition(out: &mut Slab) {
    out.u8(unfiltered_flag::END_OF_PARTITION);
}

/// True if the row is empty. Requires: its columns are chosen.
fn is_blank(row: &impl RowSource, layout: &ColumnLayout) -> bool {
    layout.chosen().is_empty() && row.state().is_none()
}

/// The flags of a row. Requires: its columns are chosen.
#[inline]
fn flags_of(row: &impl RowSource, layout: &ColumnLayout) -> RowFlags {
    let mut flags = row.state().flags();
    if layout.has_chosen_all() {
        flags = flags.with_all_columns();
    }
    if has_complex_deletion(row, layout) {
        flags = flags.with_complex_deletions();
    }
    flags
}

#[inline]
fn has_complex_deletion(row: &impl RowSource, layout: &ColumnLayout) -> bool {
    layout.has_complex()
        && layout.chosen_of(row).any(|(_, content)| match content {
            Content::Complex(complex) => !complex.deletion.is_live(),
            Content::Simple(..) => false,
        })
}

/// Appends the part of a row behind its sizes. Requires: its columns are chosen; `flags` are its flags.
#[inline]
fn encode_body(
    row: &impl RowSource,
    flags: RowFlags,
    layout: &ColumnLayout,
    times: &Times,
    stats: &mut MetadataCollector,
    out: &mut impl BodySink,
) -> Result<(), Unstorable> {
    let state = row.state();
    let liveness = state.liveness;
    state.encode(times, out);
    if !liveness.is_none() {
        stats.liveness(&liveness);
    }
    if !state.deletion.is_live() {
        stats.deletion(&state.deletion);
    }
    if !layout.has_chosen_all() {
        layout.encode_subset(out);
    }
    out.begin_columns();
    let has_complex_deletion = flags.has_complex_deletions();
    let (mut columns_with_cells, mut cells_as_row) = (0, 0);
    for (column, content) in layout.chosen_of(row) {
        match content {
            Content::Simple(cell, shared) => {
                columns_with_cells += 1;
                match has_times_of(&cell, &liveness) {
                    true => cells_as_row += 1,
                    false => stats.cell(&cell),
                }
                encode_cell_head(&cell, column, None, &liveness, times, out)?;
                out.value(cell.value, shared);
                if column.is_counter {
                    stats.counter(cell.value);
                }
            }
            Content::Complex(complex) => {
                if has_complex_deletion {
                    times.encode_deletion(&complex.deletion, out);
                }
                columns_with_cells += u64::from(!complex.cells.is_empty());
                encode_complex(complex, column, &liveness, times, stats, out)?;
            }
        }
    }
    stats.cells_as_row(cells_as_row, &liveness);
    stats.row(columns_with_cells);
    Ok(())
}

/// True if the row has a liveness, and the cell has the same times.
#[inline]
fn has_times_of(cell: &CellRef<'_>, liveness: &Liveness) -> bool {
    cell.timestamp_micros == liveness.timestamp_micros
        && cell.ttl_secs == liveness.ttl_secs
        && cell.local_deletion_secs == liveness.expires_secs
        && !liveness.is_none()
}

fn encode_complex(
    complex: &ComplexColumn,
    column: &StoredColumn,
    liveness: &Liveness,
    times: &Times,
    stats: &mut MetadataCollector,
    out: &mut impl BodySink,
) -> Result<(), Unstorable> {
    stats.deletion(&complex.deletion);
    out.uvint(complex.cells.len() as u64);
    for (path, cell) in &complex.cells {
        let head = cell.into();
        stats.cell(&head);
        encode_cell_head(&head, column, Some(path), liveness, times, out)?;
        out.value(&cell.value, Some(&cell.value));
    }
    Ok(())
}
