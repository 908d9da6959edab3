//! The costs of one shape, and of one execution.

use ilion_env::Cost;
use ilion_env::cost::CostScope;

use super::{Histogram, Stages};

/// Costs of the statements of one shape.
#[derive(Clone, Debug, Default)]
pub struct ShapeCosts {
    /// Executions.
    pub calls: u64,
    /// Executions that ended with an error.
    pub errors: u64,
    /// Sum of all costs.
    pub total: Cost,
    /// Nanoseconds from the last byte of the request to the first byte of its answer.
    pub latency: Histogram,
    /// The latency without the stages `queue` and `send`, in nanoseconds.
    pub local_latency: Histogram,
    /// Sum of the nanoseconds of each stage, in the order of [`Stages::NAMES`].
    pub stage_nanos: [u64; Stages::COUNT],
    /// Bytes read from disk.
    pub disk_bytes: Histogram,
    /// Bytes read from disk for every hundred bytes of the answer.
    pub amplification: Histogram,
    /// Rows processed.
    pub rows: Histogram,
    /// Tombstones processed.
    pub tombstones: Histogram,
    /// SSTables touched.
    pub sstables: Histogram,
}

impl ShapeCosts {
    /// Adds the costs of another shape.
    pub fn merge(&mut self, other: &Self) {
        self.calls += other.calls;
        self.errors += other.errors;
        self.total += &other.total;
        self.latency.merge(&other.latency);
        self.local_latency.merge(&other.local_latency);
        for (sum, more) in self.stage_nanos.iter_mut().zip(other.stage_nanos) {
            *sum = sum.wrapping_add(more);
        }
        self.disk_bytes.merge(&other.disk_bytes);
        self.amplification.merge(&other.amplification);
        self.rows.merge(&other.rows);
        self.tombstones.merge(&other.tombstones);
        self.sstables.merge(&other.sstables);
    }
}

/// The cost of one execution.
#[derive(Clone, Copy, Debug)]
pub struct Spent<'c> {
    /// All costs but the latency.
    pub cost: &'c CostScope,
    /// The latency; `None` if the caller calls [`CostShard::record_times`](super::CostShard::record_times) when the answer is sent.
    pub elapsed_nanos: Option<u64>,
    /// The execution ended with an error.
    pub is_error: bool,
}
