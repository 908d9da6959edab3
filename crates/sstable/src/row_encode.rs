//! Rows and markers as Data.db stores them.
//!
//! ```text
//! partition  := key:bytes16  deletion:PDEL  [static]  unfiltered*  01          static if the header has static columns
//! row        := flags  values  body_size:uvint  previous_size:uvint  body
//! static     := flags 01       body_size:uvint  00                   body
//! marker     := 02  bound      body_size:uvint  previous_size:uvint  deletion [deletion]      a boundary: end, start
//! body       := [ts] [ttl expires:secs] [deletion] [subset] column*
//! column     := cell                                                           simple
//!             | [deletion] count:uvint (cell with path)*                       complex
//! cell       := flags [ts] [secs] [ttl] [path:bytesV] [value]
//! deletion   := ts secs
//! ts         := uvint, secs ttl := uvint32, all less the minima of the header
//! PDEL       := secs:i32 micros:i64                                            before oa
//!             | 80 | micros:i64 secs:u32                                       since oa; 80 is live
//! ```
//!
//! `body_size` counts what follows it; `previous_size` is the distance to the start of the unfiltered before (of the
//! partition, for the first one). Compat: `org.apache.cassandra.db.rows.UnfilteredSerializer`.

mod alike;
mod body;
mod cell;
mod columns;
mod entry;
mod plain;
mod sketch;
mod times;
mod usual;

use std::ops::Range;

use ilion_codec::{Append, Slab, unsigned_vint_len};
use ilion_rows::{ComplexColumn, Data, DeletionTime, Liveness, Marker, NO_TTL, PlainRow, Row};
use ilion_schema::TableSchema;

use crate::metadata_collector::MetadataCollector;
use crate::values::{Unstorable, encode_bound, encode_values};
use crate::{EncodingStats, Version};

use cell::encode_cell_head;
use columns::{ColumnLayout, StoredColumn};
use plain::{Form, PlainRows};
use times::{DELETION_BYTES_MAX, Times};

pub(crate) use body::{EncodedBody, LARGE_VALUE_BYTES};
pub(crate) use sketch::{Detail, Sketch};
pub(crate) use times::encode_deletion;

/// Bits of an unfiltered's first byte.
mod unfiltered_flag {
    pub(super) const END_OF_PARTITION: u8 = 0x01;
    pub(super) const IS_MARKER: u8 = 0x02;
    pub(super) const HAS_TIMESTAMP: u8 = 0x04;
    pub(super) const HAS_TTL: u8 = 0x08;
    pub(super) const HAS_DELETION: u8 = 0x10;
    pub(super) const HAS_ALL_COLUMNS: u8 = 0x20;
    pub(super) const HAS_COMPLEX_DELETION: u8 = 0x40;
    pub(super) const EXTENSION: u8 = 0x80;
    /// Of the second byte.
    pub(super) const EXTENDED_IS_STATIC: u8 = 0x01;
}

/// Encodes the rows and markers of one table, and tells the collector what it stored.
#[derive(Debug)]
pub(crate) struct RowEncoder {
    form: Form,
    statics: ColumnLayout,
    plain: PlainRows,
    /// The body of the row or marker at hand: its size stands before it.
    body: EncodedBody,
}

impl RowEncoder {
    pub(crate) fn new(table: &TableSchema, min: EncodingStats, version: Version) -> Self {
        let lens = table.clustering().map(|column| column.ty.fixed_len());
        Self {
            form: Form {
                clustering_lens: lens
                    .map(|len| len.and_then(|len| u32::try_from(len).ok()))
                    .collect(),
                layout: ColumnLayout::of(table, table.regulars()),
                times: Times::new(min, version),
            },
            statics: ColumnLayout::of(table, table.statics()),
            plain: PlainRows::shorter_than(LARGE_VALUE_BYTES),
            body: EncodedBody::default(),
        }
    }

    /// Has [`RowEncoder::body`] have the bodies of all rows of so many bytes, unless most of that is their clustering.
    #[must_use]
    pub(crate) fn with_bodies_from(mut self, row_bytes_min: u32) -> Self {
        self.plain = self.plain.and_shorter_than(row_bytes_min as usize / 2);
        self
    }

    /// For a file that has no static columns, whatever the table has.
    #[must_use]
    pub(crate) fn without_statics(self) -> Self {
        Self {
            statics: ColumnLayout::default(),
            ..self
        }
    }

    /// Appends the start of the static row, an empty one if there is none; nothing if the table has no static columns. True if
    /// it has something in it. Its body is [`RowEncoder::body`].
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
        let row = row.filter(|row| !is_blank(row, &self.statics));
        let flags = match row {
            Some(row) => encode_body(row, &self.statics, self.form.times, stats, &mut self.body)?,
            None => {
                self.statics.encode_empty_subset(self.body.encoded());
                0
            }
        };
        out.u8(flags | unfiltered_flag::EXTENSION);
        out.u8(unfiltered_flag::EXTENDED_IS_STATIC);
        append_sizes(0, self.body.len(), out);
        Ok(row.is_some())
    }

    /// What follows what was appended last: nothing if it was appended as well.
    #[inline]
    pub(crate) fn body(&self) -> &EncodedBody {
        &self.body
    }

    /// The body was written.
    pub(crate) fn forget_values(&mut self) {
        self.body.forget_values();
    }

    /// Describes the columns of the row that was appended last.
    pub(crate) fn sketch(
        &self,
        row: &Row,
        kind: RowKind,
        detail: Detail,
        out: &mut Sketch,
    ) -> Result<(), Unstorable> {
        let layout = match kind {
            RowKind::Static => &self.statics,
            RowKind::Regular => &self.form.layout,
        };
        let has_complex_deletion = layout.has_complex() && has_complex_deletion(row, layout);
        out.draw(row, layout, self.form.times, has_complex_deletion, detail)
    }

    /// Appends a row as most are, up to its end, and gives where its values are; nothing if it is otherwise, or `out` has no room for it:
    /// then nothing was appended.
    #[inline(always)]
    pub(crate) fn encode_usual(
        &mut self,
        row: &Row,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        self.plain
            .append_usual(row, &self.form, previous_size, stats, out)
    }

    /// Appends a row, or the start of one whose body is [`RowEncoder::body`]. Gives the place of its clustering values in `out`;
    /// nothing if the row has nothing to store.
    #[inline]
    pub(crate) fn encode_row(
        &mut self,
        row: &Row,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        if row.clustering.values().len() != self.form.clustering_lens.len() {
            return Err(Unstorable::PartialClustering);
        }
        self.body.clear();
        let appended = self.plain.append(row, &self.form, previous_size, stats, out)?;
        if appended.is_some() {
            return Ok(appended);
        }
        self.form.layout.choose(row)?;
        if is_blank(row, &self.form.layout) {
            return Ok(None);
        }
        let flags = encode_body(row, &self.form.layout, self.form.times, stats, &mut self.body)?;
        out.u8(flags);
        let start = out.len();
        encode_values(&self.form.clustering_lens, row.clustering.values(), out)?;
        let clustering = start..out.len();
        append_sizes(previous_size, self.body.len(), out);
        Ok(Some(clustering))
    }

    /// True if partitions have a static row, be it an empty one.
    #[inline]
    pub(crate) fn has_statics(&self) -> bool {
        !self.statics.is_empty()
    }

    /// Appends a row as it was shown; all of it was written at `timestamp_micros`. Gives the place of its clustering values in `out`;
    /// nothing if it is not to be written like this: nothing was appended then.
    #[inline]
    pub(crate) fn encode_shown(
        &mut self,
        row: &PlainRow<'_>,
        timestamp_micros: i64,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Option<Range<usize>> {
        let (plain, form) = (&mut self.plain, &self.form);
        plain
            .append_usual_shown(row, timestamp_micros, form, previous_size, stats, out)
            .or_else(|| plain.append_shown(row, timestamp_micros, form, previous_size, stats, out))
    }

    /// Appends the start of a marker. Gives the place of its bound in `out`. Its body is [`RowEncoder::body`].
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
            self.form.times.deletion(deletion, self.body.encoded());
            stats.deletion(deletion);
        }
        out.u8(unfiltered_flag::IS_MARKER);
        let start = out.len();
        encode_bound(&self.form.clustering_lens, &marker.bound, out)?;
        let bound = start..out.len();
        append_sizes(previous_size, self.body.len(), out);
        Ok(bound)
    }
}

/// Appends the size of what follows it, and the distance to the unfiltered before.
#[inline]
fn append_sizes(previous_size: u64, body_len: u64, out: &mut impl Append) {
    out.uvint(unsigned_vint_len(previous_size) as u64 + body_len);
    out.uvint(previous_size);
}

/// Which columns a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowKind {
    /// Those of the partition.
    Static,
    /// Its own.
    Regular,
}

/// Appends what a partition has before its static row.
#[inline(always)]
pub(crate) fn encode_partition_start(
    version: Version,
    key: &[u8],
    deletion: &DeletionTime,
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    out.bytes16(key);
    encode_deletion(version, deletion, out)
}

/// Bytes of that, at most.
#[inline]
pub(crate) fn partition_start_len_max(key: &[u8]) -> usize {
    2 + key.len() + DELETION_BYTES_MAX
}

/// The last byte of a partition.
#[inline]
pub(crate) fn encode_end_of_partition(out: &mut Slab) {
    out.u8(unfiltered_flag::END_OF_PARTITION);
}

/// True if nothing of the row would be stored: columns may have been dropped since it was written.
fn is_blank(row: &Row, layout: &ColumnLayout) -> bool {
    layout.chosen().is_empty() && row.liveness.is_none() && row.deletion.is_live()
}

/// Appends what follows the sizes, and gives the flags.
#[inline]
fn encode_body(
    row: &Row,
    layout: &ColumnLayout,
    times: Times,
    stats: &mut MetadataCollector,
    body: &mut EncodedBody,
) -> Result<u8, Unstorable> {
    let mut flags = 0;
    let out = body.encoded();
    if !row.liveness.is_none() {
        flags |= unfiltered_flag::HAS_TIMESTAMP;
        if row.liveness.ttl_secs != NO_TTL {
            flags |= unfiltered_flag::HAS_TTL;
        }
        times.liveness(&row.liveness, out);
        stats.liveness(&row.liveness);
    }
    if !row.deletion.is_live() {
        flags |= unfiltered_flag::HAS_DELETION;
        times.deletion(&row.deletion, out);
        stats.deletion(&row.deletion);
    }
    if layout.has_chosen_all() {
        flags |= unfiltered_flag::HAS_ALL_COLUMNS;
    } else {
        layout.encode_subset(out);
    }
    body.columns_at = body.encoded().len();
    let has_complex_deletion = layout.has_complex() && has_complex_deletion(row, layout);
    if has_complex_deletion {
        flags |= unfiltered_flag::HAS_COMPLEX_DELETION;
    }
    let mut columns_with_cells = 0;
    for (column, data) in layout.chosen_of(row) {
        match data {
            Data::Simple(cell) => {
                columns_with_cells += 1;
                stats.cell(cell);
                encode_cell_head(cell, column, None, &row.liveness, times, body.encoded())?;
                body.value(&cell.value);
                if column.is_counter {
                    stats.counter(cell);
                }
            }
            Data::Complex(complex) => {
                if has_complex_deletion {
                    times.deletion(&complex.deletion, body.encoded());
                }
                columns_with_cells += u64::from(!complex.cells.is_empty());
                encode_complex(complex, column, &row.liveness, times, stats, body)?;
            }
        }
    }
    stats.row(columns_with_cells);
    Ok(flags)
}

fn has_complex_deletion(row: &Row, layout: &ColumnLayout) -> bool {
    layout.chosen_of(row).any(|(_, data)| match data {
        Data::Complex(complex) => !complex.deletion.is_live(),
        Data::Simple(_) => false,
    })
}

fn encode_complex(
    complex: &ComplexColumn,
    column: &StoredColumn,
    liveness: &Liveness,
    times: Times,
    stats: &mut MetadataCollector,
    body: &mut EncodedBody,
) -> Result<(), Unstorable> {
    stats.deletion(&complex.deletion);
    body.encoded().uvint(complex.cells.len() as u64);
    for (path, cell) in &complex.cells {
        stats.cell(cell);
        encode_cell_head(cell, column, Some(path), liveness, times, body.encoded())?;
        body.value(&cell.value);
    }
    Ok(())
}
