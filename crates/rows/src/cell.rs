//! Cells, deletion times and livenesses: the smallest units that reconciling compares.
//!
//! Times: timestamps are microseconds given by the client (any `i64` but `i64::MIN`). Local times are seconds since
//! 1970 as `u32`; [`NO_DELETION_TIME`] means that there is no local time.

use bytes::Bytes;

/// Marks a missing timestamp, that is a missing cell, liveness or deletion.
pub const NO_TIMESTAMP: i64 = i64::MIN;
/// Marks a missing local deletion time: the cell is live and does not expire.
pub const NO_DELETION_TIME: u32 = u32::MAX;
/// Marks a missing TTL.
pub const NO_TTL: u32 = 0;

/// One value with its timestamp.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Microseconds; the higher timestamp wins.
    pub timestamp_micros: i64,
    /// The TTL that the cell was written with; [`NO_TTL`] if the cell does not expire.
    pub ttl_secs: u32,
    /// For a tombstone: when it was written. For an expiring cell: when it expires. Otherwise [`NO_DELETION_TIME`].
    pub local_deletion_secs: u32,
    /// The serialized value; empty for a tombstone.
    pub value: Bytes,
}

impl Cell {
    /// A cell that does not expire.
    #[inline]
    pub fn live(timestamp_micros: i64, value: Bytes) -> Self {
        Self {
            timestamp_micros,
            ttl_secs: NO_TTL,
            local_deletion_secs: NO_DELETION_TIME,
            value,
        }
    }

    /// A cell that expires at `expires_secs`.
    pub fn expiring(timestamp_micros: i64, ttl_secs: u32, expires_secs: u32, value: Bytes) -> Self {
        Self {
            timestamp_micros,
            ttl_secs,
            local_deletion_secs: expires_secs,
            value,
        }
    }

    /// A deleted cell.
    pub fn tombstone(timestamp_micros: i64, deleted_secs: u32) -> Self {
        Self {
            timestamp_micros,
            ttl_secs: NO_TTL,
            local_deletion_secs: deleted_secs,
            value: Bytes::new(),
        }
    }

    /// True for a deleted cell. An expired cell is no tombstone; see [`Cell::is_live`].
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.ttl_secs == NO_TTL && self.local_deletion_secs != NO_DELETION_TIME
    }

    /// True for a cell with a TTL.
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl_secs != NO_TTL
    }

    /// True if a read at `now_secs` returns the cell.
    #[inline]
    pub fn is_live(&self, now_secs: u32) -> bool {
        self.local_deletion_secs == NO_DELETION_TIME
            || (self.is_expiring() && now_secs < self.local_deletion_secs)
    }
}

/// A cell that borrows its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellRef<'c> {
    /// [`Cell::timestamp_micros`].
    pub timestamp_micros: i64,
    /// [`Cell::ttl_secs`].
    pub ttl_secs: u32,
    /// [`Cell::local_deletion_secs`].
    pub local_deletion_secs: u32,
    /// [`Cell::value`].
    pub value: &'c [u8],
}

impl<'c> From<&'c Cell> for CellRef<'c> {
    #[inline]
    fn from(cell: &'c Cell) -> Self {
        Self {
            timestamp_micros: cell.timestamp_micros,
            ttl_secs: cell.ttl_secs,
            local_deletion_secs: cell.local_deletion_secs,
            value: &cell.value,
        }
    }
}

impl<'c> CellRef<'c> {
    /// As [`Cell::live`].
    #[inline]
    pub fn live(timestamp_micros: i64, value: &'c [u8]) -> Self {
        Self {
            timestamp_micros,
            ttl_secs: NO_TTL,
            local_deletion_secs: NO_DELETION_TIME,
            value,
        }
    }

    /// As [`Cell::is_expiring`].
    #[inline]
    pub fn is_expiring(&self) -> bool {
        self.ttl_secs != NO_TTL
    }

    /// As [`Cell::is_tombstone`].
    #[inline]
    pub fn is_tombstone(&self) -> bool {
        self.ttl_secs == NO_TTL && self.local_deletion_secs != NO_DELETION_TIME
    }

    /// As [`Cell::is_live`].
    #[inline]
    pub fn is_live(&self, now_secs: u32) -> bool {
        self.local_deletion_secs == NO_DELETION_TIME
            || (self.ttl_secs != NO_TTL && now_secs < self.local_deletion_secs)
    }

    /// A cell with a copy of the value.
    pub fn to_cell(&self) -> Cell {
        Cell {
            timestamp_micros: self.timestamp_micros,
            ttl_secs: self.ttl_secs,
            local_deletion_secs: self.local_deletion_secs,
            value: Bytes::copy_from_slice(self.value),
        }
    }
}

/// Deletes all data at or below a timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DeletionTime {
    /// Data with a timestamp at or below this is deleted.
    pub marked_at_micros: i64,
    /// When the deletion was made; it may be purged gc grace later.
    pub local_secs: u32,
}

impl DeletionTime {
    /// No deletion.
    pub const LIVE: Self = Self {
        marked_at_micros: NO_TIMESTAMP,
        local_secs: NO_DELETION_TIME,
    };

    /// Deletes data up to `marked_at_micros`.
    pub fn new(marked_at_micros: i64, local_secs: u32) -> Self {
        Self {
            marked_at_micros,
            local_secs,
        }
    }

    /// True if this is no deletion.
    #[inline]
    pub fn is_live(&self) -> bool {
        self.marked_at_micros == NO_TIMESTAMP
    }

    /// True if this deletion deletes data written at `timestamp_micros`.
    #[inline]
    pub fn deletes(&self, timestamp_micros: i64) -> bool {
        !self.is_live() && timestamp_micros <= self.marked_at_micros
    }

    /// True if this deletion wins over `other`: it is newer, or equally new and made later.
    #[inline]
    pub fn supersedes(&self, other: &Self) -> bool {
        self.marked_at_micros > other.marked_at_micros
            || (self.marked_at_micros == other.marked_at_micros
                && self.local_secs > other.local_secs
                && !self.is_live())
    }

    /// The deletion that wins.
    #[inline]
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        if other.supersedes(&self) { other } else { self }
    }
}

/// Primary key liveness: an INSERT wrote the row, so it exists even if all its columns are null
/// (`org.apache.cassandra.db.LivenessInfo`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Liveness {
    /// Microseconds; [`NO_TIMESTAMP`] if there is no liveness.
    pub timestamp_micros: i64,
    /// Seconds; [`NO_TTL`] if the liveness does not expire.
    pub ttl_secs: u32,
    /// When the liveness expires; [`NO_DELETION_TIME`] if never.
    pub expires_secs: u32,
}

impl Liveness {
    /// No liveness: no INSERT wrote the row.
    pub const NONE: Self = Self {
        timestamp_micros: NO_TIMESTAMP,
        ttl_secs: NO_TTL,
        expires_secs: NO_DELETION_TIME,
    };

    /// The liveness of an INSERT without a TTL.
    pub fn live(timestamp_micros: i64) -> Self {
        Self {
            timestamp_micros,
            ttl_secs: NO_TTL,
            expires_secs: NO_DELETION_TIME,
        }
    }

    /// The liveness of an INSERT with a TTL.
    pub fn expiring(timestamp_micros: i64, ttl_secs: u32, expires_secs: u32) -> Self {
        Self {
            timestamp_micros,
            ttl_secs,
            expires_secs,
        }
    }

    /// True if there is no liveness.
    #[inline]
    pub fn is_none(&self) -> bool {
        self.timestamp_micros == NO_TIMESTAMP
    }

    /// True if the liveness makes the row visible to a read at `now_secs`.
    #[inline]
    pub fn is_live(&self, now_secs: u32) -> bool {
        !self.is_none() && (self.ttl_secs == NO_TTL || (now_secs < self.expires_secs && !self.is_dead_key()))
    }
}
