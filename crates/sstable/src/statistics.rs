//! Statistics.db.

mod header;

pub use header::{
    ClassName, DELETION_EPOCH_SECS, EncodingStats, HeaderColumn, SerializationHeader, TIMESTAMP_EPOCH_MICROS,
};
