//! Look-ups of one reader, which mostly ascend: stretches without entries are remembered.

use std::ops::Range;
use std::sync::Arc;

use super::{CellMap, Entry};
use crate::open::OpenedParts;
use crate::{Error, Result};

/// Asks the cell map of an SSTable.
pub(crate) struct CellLookup {
    parts: Arc<OpenedParts>,
    map: Arc<CellMap>,
    /// No position in it has an entry.
    blank: Range<u64>,
}

impl CellLookup {
    /// `None` if the SSTable has no cell map that can be used.
    pub(crate) fn of(parts: &Arc<OpenedParts>) -> Result<Option<Self>> {
        let map = parts.cell_map()?;
        Ok(map.map(|map| Self {
            parts: parts.clone(),
            map,
            blank: 0..0,
        }))
    }

    /// What the map has of a position in Data.db.
    ///
    /// # Errors
    /// The map is damaged or cannot be read: it is to be given up.
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

    /// From now on the SSTable is read without it.
    pub(crate) fn give_up(&self, error: &Error) {
        self.parts.drop_cell_map(error);
    }
}

impl std::fmt::Debug for CellLookup {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CellLookup({})", self.parts.descriptor)
    }
}
