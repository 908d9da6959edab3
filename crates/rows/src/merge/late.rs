//! Sources that a merge opens only when it reaches their lower bound.

use super::{MergeCursor, Source, SourceState};
use crate::{Cursor, DecoratedKey, DeletionTime, PartitionHead, ReadError, Unfiltered};

/// Sources that a merge opens when it reaches them. Sources that it never reaches cost little.
pub trait LateSources: Send {
    /// A lower bound of the keys of all their partitions; `None` if no source is left.
    fn bound(&self) -> Option<DecoratedKey>;

    /// Opens the source with the lowest bound; `None` if its partitions turned out to begin later, or not to exist.
    fn open(&mut self) -> Result<Option<Box<dyn Cursor>>, ReadError>;
}

/// Capacity reserved for opened sources; a read of few rows opens no more.
const SOURCES_FORESEEN: usize = 6;

/// Stands in the queue for all sources that are not opened.
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
    /// Merges these sources as well.
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
            state: SourceState::Unread(bound),
            next: None,
            rank: 0,
            open: DeletionTime::LIVE,
        });
        self.wait_for_partition(index);
        index
    }

    /// If `top` stands for the unopened sources, opens the next one or raises the bound; then returns true.
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
                self.sources[index].state = SourceState::Unread(bound);
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
