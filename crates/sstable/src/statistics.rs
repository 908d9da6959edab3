//! Statistics.db.

mod header;
mod stats_metadata;

pub use header::{
    ClassName, DELETION_EPOCH_SECS, EncodingStats, HeaderColumn, SerializationHeader, TIMESTAMP_EPOCH_MICROS,
};
pub use stats_metadata::{CommitLogPosition, StatsMetadata};
