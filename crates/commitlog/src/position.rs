//! Where a record is.

use std::fmt;

/// A segment's number; it grows over the life of a data directory and is never used twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SegmentId(pub u64);

/// Where a record starts. Positions grow in the order in which records were appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The segment.
    pub segment: SegmentId,
    /// The byte in its file.
    pub offset: u32,
}

impl Position {
    /// Below every record.
    pub const START: Self = Self::new(0, 0);

    /// The position of a byte in a segment.
    pub const fn new(segment: u64, offset: u32) -> Self {
        Self {
            segment: SegmentId(segment),
            offset,
        }
    }

    /// Reads the form that [`fmt::Display`] prints; `None` if the text has another form.
    pub fn parse(text: &str) -> Option<Self> {
        let (segment, offset) = text.split_once(':')?;
        Some(Self::new(segment.parse().ok()?, offset.parse().ok()?))
    }

    /// The smallest position above this one. A log that is written or synced up to it contains the whole record that starts here,
    /// since `written` and `synced` are always the end of a record.
    pub(crate) fn beyond(self) -> Self {
        Self {
            offset: self.offset.saturating_add(1),
            ..self
        }
    }
}

impl fmt::Display for SegmentId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}", self.segment, self.offset)
    }
}
