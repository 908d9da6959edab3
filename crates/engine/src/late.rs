//! SSTables of a range read that wait unopened, by the tokens from which on they may have something.
//!
//! At first each waits by a glimpse, which costs little and says little too early where its partitions begin. When it comes to the top,
//! its token map says it better, and it waits again; the second time it is opened. So a read of few rows over a hundred
//! SSTables asks the maps of some and opens those that win.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use arc_swap::Guard;
use bytes::Bytes;
use ilion_rows::{ClusteringFilter, Cursor, DecoratedKey, KeyRange, LateSources, ReadError};
use ilion_schema::TableSchema;
use ilion_sstable::Begin;
use ilion_types::Token;

use crate::source::Held;
use crate::view::View;

/// Fewer SSTables are opened at once: it would cost as much to let them wait.
pub(crate) const SSTABLES_MIN: usize = 4;

/// The lowest token is the greatest; then by the place in the view.
pub(crate) struct Waiting {
    token: i64,
    /// In the view.
    at: usize,
    /// What the token map says.
    begin: Option<Box<Begin>>,
}

impl Waiting {
    /// One at that place of the view, by a glimpse.
    pub(crate) fn from(token: i64, at: usize) -> Self {
        Self {
            token,
            at,
            begin: None,
        }
    }

    fn order(&self) -> (i64, usize) {
        (self.token, self.at)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest first.
        other.order().cmp(&self.order())
    }
}

/// SSTables that wait.
pub(crate) struct LateScans {
    view: Arc<View>,
    waiting: BinaryHeap<Waiting>,
    table: Arc<TableSchema>,
    range: KeyRange,
    filter: Arc<ClusteringFilter>,
}

impl LateScans {
    /// Those of the view that wait for the range.
    pub(crate) fn new(
        view: &Guard<Arc<View>>,
        waiting: Vec<Waiting>,
        table: Arc<TableSchema>,
        range: KeyRange,
        filter: Arc<ClusteringFilter>,
    ) -> Self {
        Self {
            view: Arc::clone(view),
            waiting: BinaryHeap::from(waiting),
            table,
            range,
            filter,
        }
    }
}

impl LateSources for LateScans {
    fn bound(&self) -> Option<DecoratedKey> {
        let first = self.waiting.peek()?;
        Some(DecoratedKey {
            token: Token::Murmur3(first.token),
            key: Bytes::new(),
        })
    }

    fn open(&mut self) -> Result<Option<Box<dyn Cursor>>, ReadError> {
        let Some(first) = self.waiting.pop() else {
            return Ok(None);
        };
        let live = &self.view.sstables[first.at];
        if let Some(begin) = first.begin {
            let cursor =
                live.sstable
                    .cursor_from(*begin, &self.table, self.range.clone(), self.filter.clone());
            return Ok(Some(Box::new(Held::new(cursor, live.clone()))));
        }
        if let Some(begin) = live.sstable.begin_of(&self.range) {
            // Only SSTables with Murmur3 tokens wait (`SSTable::glimpse`), so there is one.
            let token = begin.bound().token.murmur3().unwrap_or(first.token);
            self.waiting.push(Waiting {
                token,
                begin: Some(Box::new(begin)),
                ..first
            });
        }
        Ok(None)
    }
}
