//! Sources of a merge that wait unopened.

use super::{MergeCursor, Place, Source};
use crate::{Cursor, DecoratedKey, DeletionTime, PartitionHead, ReadError, Unfiltered};

/// Sources that are opened only when a merge comes to them: of many, those that do not win cost little.
pub trait LateSources: Send {
    /// A key that none of their partitions is before; `None` if no source is left.
    fn bound(&self) -> Option<DecoratedKey>;

    /// Opens the one whose partitions may begin there; `None` if they turned out to begin later, or not to be there.
    fn open(&mut self) -> Result<Option<Box<dyn Cursor>>, ReadError>;
}

/// Sources that are made room for: a read of few rows opens no more of them.
const SOURCES_FORESEEN: usize = 6;

/// Stands in the queue for all that is not opened.
struct Unopened;

impl Cursor for Unopened {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(None)
    }

    crate::cursor_methods!(without: lower_bound peek plain_partitions plain_rows);
}

impl MergeCursor {
    /// Merges these as well.
    #[must_use]
    pub fn with_late(mut self, late: Box<dyn LateSources>) -> Self {
        if let Some(bound) = late.bound() {
            self.sources.reserve(SOURCES_FORESEEN);
            let index = self.add(Box::new(Unopened), Some(bound));
            self.late = Some((index, late));
        }
        self
    }

    fn add(&mut self, cursor: Box<dyn Cursor>, bound: Option<DecoratedKey>) -> usize {
        let index = self.sources.len();
        self.sources.push(Source {
            cursor,
            place: Place::Unasked(bound),
            next: None,
            rank: 0,
            open: DeletionTime::LIVE,
        });
        self.wait_for_partition(index);
        index
    }

    /// Has what is not opened come nearer, if it is its turn.
    pub(super) fn open_late(&mut self, top: usize) -> Result<bool, ReadError> {
        let Some((index, late)) = self.late.as_mut().filter(|(index, _)| *index == top) else {
            return Ok(false);
        };
        let index = *index;
        self.partitions.0.pop();
        let opened = late.open()?;
        match late.bound() {
            None => self.late = None,
            bound => {
                self.sources[index].place = Place::Unasked(bound);
                self.wait_for_partition(index);
            }
        }
        if let Some(cursor) = opened {
            let bound = cursor.lower_bound();
            self.add(cursor, bound);
        }
        Ok(true)
    }
}
