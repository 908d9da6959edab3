//! What an entry has of the columns of a row, in stored order.
//!
//! ```text
//! part := columns << 2 | 0  times_length:uvint  times  length:uvint    simple columns with these times
//!       | columns << 2 | 1  length:uvint                              the same times as the part of kind 0 or 1 before
//!       | columns << 2 | 2  length:uvint                              columns that are always read in Data.db
//!       | 1 << 2 | 3  cells_length:uvint  cells  length:uvint          a complex column, its cells without their values
//! ```
//!
//! `length` counts the bytes of the columns in Data.db. `times` is the start of a cell as in Data.db, flags and times; `cells`
//! is the column as in Data.db less the bytes of its values.

use std::ops::Range;

use ilion_codec::{Reader, Writer};

const KIND_BITS: u32 = 2;
const RUN: u64 = 0;
const SAME: u64 = 1;
const READ: u64 = 2;
const COMPLEX: u64 = 3;

/// What is known of some columns; ranges are places in the bytes of the parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Simple columns whose cells have the same times.
    Run {
        columns: usize,
        times: Range<usize>,
        length: u64,
    },
    /// Columns that have to be read, whether they are wanted or not.
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

    /// Bytes of the columns in Data.db.
    pub(crate) fn length(&self) -> u64 {
        match self {
            Self::Run { length, .. } | Self::Read { length, .. } | Self::Complex { length, .. } => *length,
        }
    }
}

/// The parts of a row with so many columns, which take so many bytes of Data.db; nothing if they are not of such a row.
pub(crate) fn parse_parts(bytes: &[u8], columns: usize, length: u64) -> Option<Vec<Part>> {
    let mut input = Reader::new(bytes);
    let mut parts = Vec::new();
    let (mut columns_left, mut length_left) = (columns, length);
    let mut last_times = None;
    while !input.is_empty() {
        let part = parse_part(&mut input, &mut last_times)?;
        columns_left = columns_left.checked_sub(part.columns())?;
        length_left = length_left.checked_sub(part.length())?;
        parts.push(part);
    }
    (columns_left == 0 && length_left == 0).then_some(parts)
}

fn parse_part(input: &mut Reader<'_>, last_times: &mut Option<Range<usize>>) -> Option<Part> {
    let tag = input.uvint().ok()?;
    let columns = usize::try_from(tag >> KIND_BITS)
        .ok()
        .filter(|count| *count > 0)?;
    let kind = tag & ((1 << KIND_BITS) - 1);
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

/// Parts being written.
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

    /// Simple columns with the same times.
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

    /// Columns that have to be read.
    pub(crate) fn read(&mut self, columns: usize, length: u64) {
        self.tag(columns, READ);
        self.out.uvint(length);
    }

    /// A complex column.
    pub(crate) fn complex(&mut self, cells: &[u8], length: u64) {
        self.tag(1, COMPLEX);
        self.out.bytes_vint(cells);
        self.out.uvint(length);
    }
}
