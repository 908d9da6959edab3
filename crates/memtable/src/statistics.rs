//! [`Statistics`]: counts over the mutations of a memtable.

/// A position in the commit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogPosition {
    /// Segment number.
    pub segment: u64,
    /// Offset in the segment, in bytes.
    pub offset: u64,
}

/// Counts over the mutations that were applied to a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Memory taken, in bytes.
    pub size_bytes: usize,
    /// Number of partitions.
    pub partitions: usize,
    /// Number of mutations applied.
    pub operations: u64,
    /// Lowest timestamp applied; `i64::MAX` if no mutation was applied.
    pub min_timestamp_micros: i64,
    /// Highest timestamp applied; `i64::MIN` if no mutation was applied.
    pub max_timestamp_micros: i64,
    /// True if a mutation had a static row.
    pub has_static_rows: bool,
    /// First and last position in the commit log of the applied mutations; `None` if none of them is logged.
    pub log: Option<(LogPosition, LogPosition)>,
}

impl Statistics {
    pub(crate) const NONE: Self = Self {
        size_bytes: 0,
        partitions: 0,
        operations: 0,
        min_timestamp_micros: i64::MAX,
        max_timestamp_micros: i64::MIN,
        has_static_rows: false,
        log: None,
    };

    pub(crate) fn cover(&mut self, position: LogPosition) {
        self.log = Some(match self.log {
            None => (position, position),
            Some((first, last)) => (first.min(position), last.max(position)),
        });
    }

    /// Counts an operation of one timestamp.
    #[inline]
    pub(crate) fn see(&mut self, timestamp_micros: i64) {
        self.operations += 1;
        self.min_timestamp_micros = self.min_timestamp_micros.min(timestamp_micros);
        self.max_timestamp_micros = self.max_timestamp_micros.max(timestamp_micros);
    }

    pub(crate) fn take_in(&mut self, other: &Self) {
        self.partitions += other.partitions;
        self.operations += other.operations;
        self.min_timestamp_micros = self.min_timestamp_micros.min(other.min_timestamp_micros);
        self.max_timestamp_micros = self.max_timestamp_micros.max(other.max_timestamp_micros);
        self.has_static_rows |= other.has_static_rows;
        if let Some((first, last)) = other.log {
            self.cover(first);
            self.cover(last);
        }
    }
}
