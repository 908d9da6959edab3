//! Statistics.db.
//!
//! ```text
//! file      := count:i32 [crc]  (type:i32 offset:i32)* [crc]  (component [crc])*       ascending type
//! type      := 0 validation | 1 compaction | 2 stats | 3 header
//! crc       := u32, since na: CRC-32 of the count; the same CRC continued over types and offsets; of each component alone
//! ```

mod cardinality;
mod container;
mod header;
mod header_table;
mod stats_metadata;
mod validation;

#[cfg(test)]
mod tests;

pub use cardinality::Cardinality;
pub use container::Statistics;
pub use header::{ClassName, EncodingStats, HeaderColumn, SerializationHeader};
pub(crate) use stats_metadata::SECONDS_MAX_BEFORE_OA;
pub use stats_metadata::{CommitLogPosition, StatsMetadata};
pub use validation::Validation;
