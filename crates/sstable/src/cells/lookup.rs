//! Lookups of one reader, which mostly ascend: ranges without entries are remembered.

use std::ops::Range;
use std::sync::Arc;

use super::{CellMap, Entry};
use crate::open::OpenedParts;
use crate::{Error, Result};

/// Looks up positions in the cell map of an SSTable.
pub(crate) struct CellLookup {
    parts: Arc<OpenedParts>,
    map: Arc<CellMap>,
    /// A range of positions that have no entry.
    blank: Range<u64>,
}

impl CellLookup {
    /// Lookups in the cell map of an SSTable; `None` if the SSTable has no usable cell map.
    pub(crate) fn of(parts: &Arc<OpenedParts>) -> Result<Option<Self>> {
        let map = parts.cell_map()?;
        Ok(map.map(|map| Self {
            parts: parts.clone(),
            map,
            blank: 0..0,
        }))
    }

    /// The entry of a position in Data.db, if it has one.
    ///
    /// # Errors
    /// The map is damaged or cannot be read: then call `give_up`.
    pub(crate) fn find(&mut self, position: u64) -> Result<Option<Entry>> {
        if self.blank.contains(&position) {
            return Ok(None);
        }
        let near = self.map.near(position)?;
        self.blank = match &near.entry {
            Some(_) => 0..0,
            None => position..near.next.unwrap_or(u64::MAX),
        };
        Ok(near.entry)
    }

    /// Drops the map, so that the SSTable is read without it.
    pub(crate) fn give_up(&self, error: &Error) {
        self.parts.drop_cell_map(error);
    }
}

impl std::fmt::Debug for CellLookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CellLookup({})", self.parts.descriptor)
    }
}
