//! RESULT, kind Prepared.
//!
//! ```text
//! prepared := id: short bytes, v5: result_metadata_id: short bytes, bind, result metadata (see `rows`)
//! bind     := flags: i32, n: i32, v4, v5: k: i32, k x index: u16, columns
//! ```

use bytes::Bytes;

use crate::columns::{ColumnSpec, decode_columns, encode_columns, global_flag};
use crate::error::Error;
use crate::notation::{Input, put_i32, put_short_bytes, put_size, put_u16};
use crate::response::RowsMetadata;
use crate::version::Version;

/// A prepared statement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// The id of the statement for EXECUTE. Equal texts have equal ids on every node.
    pub id: Bytes,
    /// An id that changes when the result metadata changes (v5; empty before).
    pub result_metadata_id: Bytes,
    /// Metadata of its bind markers.
    pub bind: BindMetadata,
    /// Metadata of the result; without columns if the statement returns no rows.
    pub result: RowsMetadata,
}

/// Metadata of the bind markers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BindMetadata {
    /// The markers, in order.
    pub columns: Vec<ColumnSpec>,
    /// For each partition key column, in key order, the index of its marker; empty if a column has none. Drivers use it to route
    /// requests. v3 cannot carry it.
    pub partition_key_indexes: Vec<u16>,
}

impl BindMetadata {
    fn encode(&self, out: &mut Vec<u8>, version: Version) {
        let flags = global_flag(&self.columns);
        put_i32(out, flags);
        put_size(out, self.columns.len());
        if version >= Version::V4 {
            put_size(out, self.partition_key_indexes.len());
            for &index in &self.partition_key_indexes {
                put_u16(out, index);
            }
        }
        encode_columns(out, version, flags, &self.columns);
    }

    fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let flags = input.i32()?;
        let count = decode_count(input)?;
        let mut partition_key_indexes = Vec::new();
        if version >= Version::V4 {
            let key_count = decode_count(input)?;
            partition_key_indexes.reserve(input.reader().capacity_for(key_count, 2));
            for _ in 0..key_count {
                partition_key_indexes.push(input.u16()?);
            }
        }
        let columns = decode_columns(input, flags, count)?;
        Ok(Self {
            columns,
            partition_key_indexes,
        })
    }
}

impl Prepared {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        put_short_bytes(out, &self.id);
        if version >= Version::V5 {
            put_short_bytes(out, &self.result_metadata_id);
        }
        self.bind.encode(out, version);
        self.result.encode(out, version);
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let id = input.short_bytes()?;
        let result_metadata_id = input.result_metadata_id(version)?;
        let bind = BindMetadata::decode(input, version)?;
        let result = RowsMetadata::decode(input)?;
        Ok(Self {
            id,
            result_metadata_id,
            bind,
            result,
        })
    }
}

/// Reads a count, an `[int]` that may not be negative.
pub(super) fn decode_count(input: &mut Input<'_>) -> Result<usize, Error> {
    let offset = input.reader().offset();
    usize::try_from(input.i32()?).map_err(|_| Error::Malformed {
        offset,
        expected: "a count >= 0",
    })
}
