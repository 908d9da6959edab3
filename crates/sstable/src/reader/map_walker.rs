//! Iterates over the partitions of a token map, without reading an index.

use std::sync::Arc;

use super::location::{IndexEntry, Location};
use crate::Result;
use crate::tokens::{Mapped, TokenMap};

/// Iterates over the partitions from an ordinal number in the map on.
#[derive(Debug)]
pub(crate) struct MapWalker {
    map: Arc<TokenMap>,
    next: u64,
}

impl MapWalker {
    pub(crate) fn new(map: Arc<TokenMap>, next: u64) -> Self {
        Self { map, next }
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<IndexEntry>> {
        if self.next >= self.map.partition_count() {
            return Ok(None);
        }
        let mapped = self.map.partition(self.next)?;
        self.next += 1;
        Ok(Some(IndexEntry {
            key: None,
            location: mapped.into(),
        }))
    }
}

impl From<Mapped> for Location {
    fn from(mapped: Mapped) -> Self {
        Self {
            position: mapped.position,
            is_certain: false,
            row_index: None,
            entry_at: mapped.row_index,
        }
    }
}
