//! Sorted partitions in memory.
