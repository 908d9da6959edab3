//! Prepared statements.

use std::sync::Arc;

use crate::ColumnSpec;

/// What executing a statement may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementWeight {
    /// Touches one row or writes without reading: may run where it is.
    Point,
    /// May take long: give it a thread.
    Heavy,
}

/// A statement that was parsed and planned.
#[derive(Debug)]
pub struct Prepared {
    /// MD5 of keyspace and text.
    pub id: [u8; 16],
    /// Digest of the result's columns.
    pub result_metadata_id: [u8; 16],
    /// The bind markers.
    pub variables: Vec<ColumnSpec>,
    /// Which markers make the partition key, in key order; empty if they do not make all of it.
    pub partition_key_indexes: Vec<u16>,
    /// The result's columns; nothing for statements without rows.
    pub result_columns: Option<Arc<[ColumnSpec]>>,
    /// What executing may cost.
    pub weight: StatementWeight,
}
