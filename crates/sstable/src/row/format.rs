//! The row format of Data.db: bits and constants that encoder, decoder, plain rows and tools share.
//!
//! ```text
//! partition  := key:bytes16  deletion:PDEL  [static]  unfiltered*  END_OF_PARTITION
//!                                                                     `static` only if the header has static columns
//! unfiltered := row | marker
//! row        := flags  values  body_size:uvint  previous_size:uvint  body
//! static     := flags          body_size:uvint  00                   body
//! marker     := IS_MARKER  bound  body_size:uvint  previous_size:uvint  deletion [deletion]      a boundary: end, start
//! body       := state [subset] column*
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
//! | `state` | flags of rows; liveness and deletion of a row, which they announce |
//! | `times` | timestamps, TTLs and local times as differences; deletions inside rows and of partitions (PDEL) |
//! | `subset` | the header's columns that a row has |
//! | `values` | clustering values and bounds |

pub(crate) mod state;
pub(crate) mod subset;
pub(crate) mod times;
pub(crate) mod values;

pub use state::{Field, extended_flag, fields_of_state, unfiltered_flag};
pub use times::{show_local_time, show_timestamp, show_ttl};

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

    /// Names for people.
    pub const NAMES: [(u8, &str); 5] = [
        (IS_DELETED, "deleted"),
        (IS_EXPIRING, "expiring"),
        (HAS_EMPTY_VALUE, "empty value"),
        (USES_ROW_TIMESTAMP, "row's timestamp"),
        (USES_ROW_TTL, "row's TTL"),
    ];
}

/// Maximum length of a vint.
pub(crate) const VINT_BYTES_MAX: usize = 9;

/// Tables with fewer columns store the missing columns of a row as a bitmap.
pub const BITMAP_COLUMNS: usize = 64;

/// Number of clustering values per header.
pub const VALUES_PER_HEADER: usize = 32;
