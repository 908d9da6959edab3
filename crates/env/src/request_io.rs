//! Counts and durations of reads, writes and syncs.

/// The kind of an I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoVerb {
    /// Read bytes.
    Read,
    /// Wrote bytes.
    Wrote,
    /// Made bytes or names durable.
    Synced,
}

/// I/O of one request, or of a [`Scope`](crate::account::Scope).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestIo {
    /// Read calls.
    pub reads: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Duration of all reads.
    pub read_nanos: u64,
    /// Write calls.
    pub writes: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Duration of all writes.
    pub write_nanos: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Duration of all syncs.
    pub sync_nanos: u64,
}

impl RequestIo {
    pub(crate) const NONE: Self = Self {
        reads: 0,
        bytes_read: 0,
        read_nanos: 0,
        writes: 0,
        bytes_written: 0,
        write_nanos: 0,
        syncs: 0,
        sync_nanos: 0,
    };

    #[inline]
    fn zip(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            reads: combine(self.reads, other.reads),
            bytes_read: combine(self.bytes_read, other.bytes_read),
            read_nanos: combine(self.read_nanos, other.read_nanos),
            writes: combine(self.writes, other.writes),
            bytes_written: combine(self.bytes_written, other.bytes_written),
            write_nanos: combine(self.write_nanos, other.write_nanos),
            syncs: combine(self.syncs, other.syncs),
            sync_nanos: combine(self.sync_nanos, other.sync_nanos),
        }
    }
}

impl std::ops::Add for RequestIo {
    type Output = Self;
    #[inline]
    fn add(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_add)
    }
}

impl std::ops::Sub for RequestIo {
    type Output = Self;
    #[inline]
    fn sub(self, other: Self) -> Self {
        self.zip(other, u64::wrapping_sub)
    }
}

impl std::iter::Sum for RequestIo {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::NONE, |sum, item| sum + item)
    }
}
