//! The partitions that are used most: `nodetool toppartitions`.

use std::fmt;

use ilion_engine::{TopPartition, TopPartitions};
use serde::{Deserialize, Serialize};

use super::TableChoice;

/// Which tables to sample, and for how long.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TopPartitionsOrder {
    /// Only tables of this keyspace.
    pub keyspace: Option<String>,
    /// Only this table; needs the keyspace.
    pub table: Option<String>,
    /// Length of the sampling, in milliseconds.
    pub millis: u64,
    /// How many partitions of each list to report.
    pub top: usize,
}

impl TopPartitionsOrder {
    pub(super) fn tables(&self) -> TableChoice {
        TableChoice {
            keyspace: self.keyspace.clone(),
            table: self.table.clone(),
        }
    }
}

/// The partitions that were used most.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPartitionsReport {
    /// By number of reads.
    pub reads: Vec<TopPartitionReport>,
    /// By number of writes.
    pub writes: Vec<TopPartitionReport>,
    /// By bytes written.
    pub write_bytes: Vec<TopPartitionReport>,
}

/// A partition of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TopPartitionReport {
    /// `keyspace.table:key`.
    pub partition: String,
    /// Reads, writes or bytes.
    pub count: u64,
    /// The true count may be lower by at most this number.
    pub error: u64,
}

impl TopPartitionsReport {
    pub(super) fn of(top: TopPartitions) -> Self {
        let list = |partitions: Vec<TopPartition>| {
            let partitions = partitions.into_iter();
            let report = |top: TopPartition| TopPartitionReport {
                partition: top.partition,
                count: top.count,
                error: top.error,
            };
            partitions.map(report).collect()
        };
        Self {
            reads: list(top.reads),
            writes: list(top.writes),
            write_bytes: list(top.write_bytes),
        }
    }
}

impl fmt::Display for TopPartitionsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, partitions)) in [
            ("READS", &self.reads),
            ("WRITES", &self.writes),
            ("WRITE_SIZE", &self.write_bytes),
        ]
        .into_iter()
        .enumerate()
        {
            if index > 0 {
                writeln!(f)?;
            }
            write!(f, "{name} Sampler:")?;
            if partitions.is_empty() {
                write!(f, "\n\tNothing recorded during sampling period...")?;
                continue;
            }
            write!(f, "\n\t{:>12} {:>8}  partition", "count", "+/-")?;
            for top in partitions {
                write!(f, "\n\t{:>12} {:>8}  {}", top.count, top.error, top.partition)?;
            }
        }
        Ok(())
    }
}
