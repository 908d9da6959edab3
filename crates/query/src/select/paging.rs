//! Paging states: where the next page starts. Opaque to clients.
//!
//! ```text
//! state := version: u8 (= 1), is_finished: bool, rows_left: u32, given_of_partition: u32, key: bytes16, clustering?
//! clustering := (bytes32 | -1: i32)*      one for each clustering column; only if the partition is not finished
//! ```
//! `rows_left` is `u32::MAX` if the statement has no LIMIT. A state comes from a client: it is checked, never trusted.

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_rows::{Clustering, Values};
use ilion_schema::TableSchema;

use crate::Error;

const VERSION: u8 = 1;

/// Where a page ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PagePosition {
    /// The partition of the last row.
    pub key: Bytes,
    /// The last row that was returned; `None` if the partition is finished.
    pub clustering: Option<Clustering>,
    /// Rows or groups of the partition that were returned so far.
    pub given_of_partition: u32,
    /// Rows or groups that LIMIT still allows.
    pub rows_left: Option<u32>,
}

impl PagePosition {
    /// The state for the client.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::with_capacity(32 + self.key.len());
        out.u8(VERSION);
        out.bool(self.clustering.is_none());
        out.u32(self.rows_left.unwrap_or(u32::MAX));
        out.u32(self.given_of_partition);
        out.bytes16(&self.key);
        for value in self.clustering.iter().flat_map(|clustering| clustering.values()) {
            out.bytes32_or_null(value.as_deref());
        }
        out.into_vec()
    }

    /// Decodes a state from a client.
    ///
    /// # Errors
    /// The state does not belong to this table.
    pub fn decode(state: &Bytes, table: &TableSchema) -> Result<Self, Error> {
        Self::read(state, table).ok_or_else(invalid)
    }

    fn read(state: &Bytes, table: &TableSchema) -> Option<Self> {
        let mut reader = Reader::new(state);
        if reader.u8().ok()? != VERSION {
            return None;
        }
        let is_finished = reader.bool().ok()?;
        let rows_left = reader.u32().ok()?;
        let given_of_partition = reader.u32().ok()?;
        let key = state.slice_ref(reader.bytes16().ok()?);
        let mut clustering = None;
        if !is_finished {
            let mut values = Values::new();
            for _ in table.clustering() {
                let value = reader.bytes32_or_null().ok()?;
                values.push(value.map(|value| state.slice_ref(value)));
            }
            clustering = Some(Clustering::new(values));
        }
        (reader.is_empty() && rows_left > 0).then_some(Self {
            key,
            clustering,
            given_of_partition,
            rows_left: (rows_left != u32::MAX).then_some(rows_left),
        })
    }
}

/// The error for a state that does not belong to the statement.
pub(super) fn invalid() -> Error {
    Error::Protocol("Invalid value for the paging state".into())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ilion_schema::{ClusteringOrder, TableBuilder, TableId};
    use ilion_types::{CqlType, Uuid};

    use super::*;

    fn table() -> Arc<TableSchema> {
        TableBuilder::new("ks", "t", TableId(Uuid::nil()))
            .partition_key("k", CqlType::Text)
            .clustering("c", CqlType::Text, ClusteringOrder::Asc)
            .clustering("d", CqlType::Text, ClusteringOrder::Asc)
            .build()
    }

    #[test]
    fn a_state_says_where_to_go_on_and_no_part_of_it_does() {
        let values: Values = [Some(Bytes::from_static(b"c")), None].into_iter().collect();
        let position = PagePosition {
            key: Bytes::from_static(b"key"),
            clustering: Some(Clustering::new(values)),
            given_of_partition: 7,
            rows_left: Some(3),
        };
        let state = Bytes::from(position.encode());
        assert_eq!(PagePosition::decode(&state, &table()), Ok(position));
        for cut in 0..state.len() {
            assert_eq!(
                PagePosition::decode(&state.slice(..cut), &table()),
                Err(invalid()),
                "{cut}"
            );
        }
        let mut longer = state.to_vec();
        longer.push(0);
        assert_eq!(PagePosition::decode(&longer.into(), &table()), Err(invalid()));
    }

    #[test]
    fn a_finished_partition_has_no_row() {
        let position = PagePosition {
            key: Bytes::from_static(b"key"),
            clustering: None,
            given_of_partition: 1,
            rows_left: None,
        };
        assert_eq!(
            PagePosition::decode(&position.encode().into(), &table()),
            Ok(position)
        );
    }
}
