//! The parts of an entry, which describe the columns of a row in stored order.
//!
//! ```text
//! part := columns << 2 | 0  times_length:uvint  times  length:uvint    simple columns with these times
//!       | columns << 2 | 1  length:uvint                              the same times as the part of kind 0 or 1 before
//!       | columns << 2 | 2  length:uvint                              columns that are always read in Data.db
//!       | 1 << 2 | 3  cells_length:uvint  cells  length:uvint          a complex column, its cells without their values
//! ```
//!
//! `length` is the size of the columns in Data.db. `times` is the start of a cell as in Data.db: flags and times. `cells` is
//! the column as in Data.db, without its values.

use std::ops::Range;

use ilion_codec::{Reader, Writer};

use crate::row::read_uvint;

const KIND_BITS: u32 = 2;
const KIND_MASK: u64 = (1 << KIND_BITS) - 1;
const RUN: u64 = 0;
const SAME: u64 = 1;
/// The tag of a part of kind [`SAME`] with one column.
const ONE_SAME: u8 = 1 << KIND_BITS | 1;
const READ: u64 = 2;
const COMPLEX: u64 = 3;

/// Describes some columns. `times` and `cells` are ranges of the encoded parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Simple columns whose cells have the same times.
    Run {
        columns: usize,
        times: Range<usize>,
        length: u64,
    },
    /// Columns that must be read from Data.db, even if they are not selected.
    Read { columns: usize, length: u64 },
    /// A complex column.
    Complex { cells: Range<usize>, length: u64 },
}

impl Part {
    pub(crate) fn columns(&self) -> usize {
        match self {
            Self::Run { columns, .. } | Self::Read { columns, .. } => *columns,
            Self::Complex { .. } => 1,
        }
    }

    /// Size of the columns in Data.db.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Run { length, .. } | Self::Read { length, .. } | Self::Complex { length, .. } => *length,
        }
    }
}

/// Iterates over the parts of a row.
pub(crate) struct Parts<'b> {
    input: Reader<'b>,
    last_times: Option<Range<usize>>,
    columns_left: usize,
    length_left: u64,
    is_misfit: bool,
}

impl<'b> Parts<'b> {
    /// Decodes `bytes`, the parts of a row with this number of columns and this size in Data.db.
    pub(crate) fn of(bytes: &'b [u8], columns: usize, length: u64) -> Self {
        Self {
            input: Reader::new(bytes),
            last_times: None,
            columns_left: columns,
            length_left: length,
            is_misfit: false,
        }
    }

    /// True if all parts were read and fit the row.
    pub(crate) fn fit(&self) -> bool {
        !self.is_misfit && self.columns_left == 0 && self.length_left == 0
    }

    /// Skips parts with the same times as the part before, as far as they end within `columns_max` columns. Returns the number
    /// of their columns, and their size in Data.db. For the many parts of a row without a selected column.
    pub(crate) fn pass_same(&mut self, columns_max: usize) -> (usize, u64) {
        let all = self.input.rest();
        let mut rest = all;
        let (mut columns, mut length) = (0, 0_u64);
        while let Some((tag, tag_len)) = read_uvint(rest).filter(|(tag, _)| tag & KIND_MASK == SAME) {
            if let [ONE_SAME, high @ 0x80..0xC0, low, left @ ..] = rest
                && columns < columns_max
            {
                // The common case: one column of less than 16 KiB.
                columns += 1;
                length = length.saturating_add(u64::from(u16::from_be_bytes([high & 0x3F, *low])));
                rest = left;
                continue;
            }
            let count = usize::try_from(tag >> KIND_BITS).unwrap_or(usize::MAX);
            let part_length =
                read_uvint(&rest[tag_len..]).filter(|_| count > 0 && count <= columns_max - columns);
            let Some((part_length, length_len)) = part_length else {
                break;
            };
            columns += count;
            length = length.saturating_add(part_length);
            rest = &rest[tag_len + length_len..];
        }
        let passed = self.input.take(all.len() - rest.len()).is_ok();
        self.is_misfit |= !passed || self.count(columns, length).is_none();
        (columns, length)
    }

    /// Subtracts a part from the columns and bytes left; `None` if the row has fewer.
    fn count(&mut self, columns: usize, length: u64) -> Option<()> {
        self.columns_left = self.columns_left.checked_sub(columns)?;
        self.length_left = self.length_left.checked_sub(length)?;
        Some(())
    }

    fn parse(&mut self) -> Option<Part> {
        let part = parse_part(&mut self.input, &mut self.last_times)?;
        self.count(part.columns(), part.length())?;
        Some(part)
    }
}

impl Iterator for Parts<'_> {
    type Item = Part;

    /// The next part; `None` after the last part, and if the next one does not fit the row.
    fn next(&mut self) -> Option<Part> {
        if self.is_misfit || self.input.is_empty() {
            return None;
        }
        let part = self.parse();
        self.is_misfit = part.is_none();
        part
    }
}

fn parse_part(input: &mut Reader<'_>, last_times: &mut Option<Range<usize>>) -> Option<Part> {
    let tag = input.uvint().ok()?;
    let columns = usize::try_from(tag >> KIND_BITS)
        .ok()
        .filter(|count| *count > 0)?;
    let kind = tag & KIND_MASK;
    if kind == RUN {
        *last_times = Some(parse_range(input)?);
    }
    let part = match kind {
        RUN | SAME => Part::Run {
            columns,
            times: last_times.clone()?,
            length: input.uvint().ok()?,
        },
        READ => Part::Read {
            columns,
            length: input.uvint().ok()?,
        },
        _ if columns == 1 => Part::Complex {
            cells: parse_range(input)?,
            length: input.uvint().ok()?,
        },
        _ => return None,
    };
    Some(part)
}

fn parse_range(input: &mut Reader<'_>) -> Option<Range<usize>> {
    let len = usize::try_from(input.uvint().ok()?).ok()?;
    let start = input.offset();
    input.take(len).ok()?;
    Some(start..start + len)
}

/// Encodes parts.
#[derive(Debug, Default)]
pub(crate) struct PartsWriter {
    out: Writer,
    last_times: Vec<u8>,
}

impl PartsWriter {
    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.last_times.clear();
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.out.as_slice()
    }

    fn tag(&mut self, columns: usize, kind: u64) {
        self.out.uvint((columns as u64) << KIND_BITS | kind);
    }

    /// Adds simple columns with the same times.
    pub(crate) fn run(&mut self, columns: usize, times: &[u8], length: u64) {
        if times == self.last_times {
            self.tag(columns, SAME);
        } else {
            self.tag(columns, RUN);
            self.out.bytes_vint(times);
            self.last_times.clear();
            self.last_times.extend_from_slice(times);
        }
        self.out.uvint(length);
    }

    /// Adds columns that must always be read from Data.db.
    pub(crate) fn read(&mut self, columns: usize, length: u64) {
        self.tag(columns, READ);
        self.out.uvint(length);
    }

    /// Adds a complex column.
    pub(crate) fn complex(&mut self, cells: &[u8], length: u64) {
        self.tag(1, COMPLEX);
        self.out.bytes_vint(cells);
        self.out.uvint(length);
    }
}
