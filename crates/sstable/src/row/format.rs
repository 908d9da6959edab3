//! The row format of Data.db: bits and constants that encoder, decoder, plain rows and tools share.
//!
//! ```text
//! partition  := key:bytes16  deletion:PDEL  [static]  unfiltered*  END_OF_PARTITION
//!                                                                     `static` only if the header has static columns
//! unfiltered := row | marker
//! row        := flags  values  body_size:uvint  previous_size:uvint  body
//! static     := flags IS_STATIC  body_size:uvint  00                 body
//! marker     := IS_MARKER  bound  body_size:uvint  previous_size:uvint  deletion [deletion]      a boundary: end, start
//! body       := [ts] [ttl expires:secs] [deletion] [subset] column*
//! column     := cell                                                           simple
//!             | [deletion] count:uvint (cell with path)*                       complex
//! cell       := flags [ts] [secs] [ttl] [path:bytesV] [value]
//! deletion   := ts secs
//! ts         := uvint, secs ttl := uvint32, each as the difference to its minimum in the header
//! ```
//!
//! `body_size` is the number of bytes behind it in the unfiltered. `previous_size` is the distance to the start of the previous
//! unfiltered, or, for the first one, to the start of the partition. Compat: `org.apache.cassandra.db.rows.UnfilteredSerializer`.
//!
//! | module | what |
//! | --- | --- |
//! | `times` | timestamps, TTLs and local times as differences; deletions inside rows and of partitions (PDEL) |
//! | `subset` | the header's columns that a row has |
//! | `values` | clustering values and bounds |

pub(crate) mod subset;
pub(crate) mod times;
pub(crate) mod values;

/// Bits of the first byte of a row, a marker, or the end of a partition.
pub mod unfiltered_flag {
    /// The byte that ends a partition.
    pub const END_OF_PARTITION: u8 = 0x01;
    /// The byte that starts a range tombstone marker.
    pub const IS_MARKER: u8 = 0x02;
    /// The row has a liveness with this timestamp.
    pub const HAS_TIMESTAMP: u8 = 0x04;
    /// The row's liveness has a TTL and an expiration.
    pub const HAS_TTL: u8 = 0x08;
    /// The row was deleted.
    pub const HAS_DELETION: u8 = 0x10;
    /// The row has all columns of the header; no subset follows.
    pub const HAS_ALL_COLUMNS: u8 = 0x20;
    /// Each complex column of the row starts with a deletion.
    pub const HAS_COMPLEX_DELETION: u8 = 0x40;
    /// A second byte of flags follows: [`super::extended_flag`].
    pub const HAS_EXTENSION: u8 = 0x80;
}

/// Bits of the second flags byte.
pub mod extended_flag {
    /// The row is a static row.
    pub const IS_STATIC: u8 = 0x01;
    /// A newer insert can shadow the row's deletion: rows of views of Cassandra 3.
    pub const HAS_SHADOWABLE_DELETION: u8 = 0x02;
}

/// Bits of a cell's first byte.
pub mod cell_flag {
    /// The cell is a tombstone.
    pub const IS_DELETED: u8 = 0x01;
    /// The cell has a TTL.
    pub const IS_EXPIRING: u8 = 0x02;
    /// The cell has no value.
    pub const HAS_EMPTY_VALUE: u8 = 0x04;
    /// The cell's timestamp is that of its row.
    pub const USES_ROW_TIMESTAMP: u8 = 0x08;
    /// The cell expires with its row.
    pub const USES_ROW_TTL: u8 = 0x10;
    /// All known bits.
    pub const ALL: u8 = 0x1F;
}

/// Tables with fewer columns store the missing columns of a row as a bitmap.
pub const BITMAP_COLUMNS: usize = 64;

/// Number of clustering values per header.
pub const VALUES_PER_HEADER: usize = 32;
