//! The union of lists of row numbers, ascending without duplicates. Lists are read block by block on demand.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ilion_rows::ReadError;

use super::postings::{ListAt, ListCursor};
use crate::paged::PagedFile;

/// The result of a lookup: single numbers, and lists to read.
#[derive(Default)]
pub(super) struct Found {
    /// Single row numbers, in any order, possibly with duplicates.
    pub(super) numbers: Vec<u32>,
    pub(super) lists: Vec<ListAt>,
}

/// The row numbers of a lookup.
pub(super) struct Numbers {
    at_hand: Vec<u32>,
    index: usize,
    lists: Vec<ListCursor>,
    /// The next number of each list that is not at its end, and the list's index.
    heads: BinaryHeap<Reverse<(u32, usize)>>,
    is_begun: bool,
}

impl Numbers {
    pub(super) fn of(found: Found) -> Self {
        let mut at_hand = found.numbers;
        at_hand.sort_unstable();
        at_hand.dedup();
        Self {
            at_hand,
            index: 0,
            lists: found.lists.into_iter().map(ListCursor::new).collect(),
            heads: BinaryHeap::new(),
            is_begun: false,
        }
    }

    fn push_head(&mut self, list: usize, file: &PagedFile) -> Result<(), ReadError> {
        if let Some(head) = self.lists[list].head(file)? {
            self.heads.push(Reverse((head, list)));
        }
        Ok(())
    }

    fn begin(&mut self, file: &PagedFile) -> Result<(), ReadError> {
        if !self.is_begun {
            self.is_begun = true;
            for list in 0..self.lists.len() {
                self.push_head(list, file)?;
            }
        }
        Ok(())
    }

    /// The next number.
    #[inline]
    pub(super) fn next(&mut self, file: &PagedFile) -> Result<Option<u32>, ReadError> {
        self.begin(file)?;
        let at_hand = self.at_hand.get(self.index).copied();
        let of_lists = self.heads.peek().map(|Reverse((number, _))| *number);
        let Some(least) = at_hand.into_iter().chain(of_lists).min() else {
            return Ok(None);
        };
        if at_hand == Some(least) {
            self.index += 1;
        }
        while let Some(Reverse((number, list))) = self.heads.peek().copied() {
            if number != least {
                break;
            }
            self.heads.pop();
            self.lists[list].pass();
            self.push_head(list, file)?;
        }
        Ok(Some(least))
    }

    /// Skips all numbers below `number`.
    pub(super) fn seek(&mut self, file: &PagedFile, number: u32) -> Result<(), ReadError> {
        self.index += self.at_hand[self.index..].partition_point(|known| *known < number);
        if !self.is_begun {
            for list in &mut self.lists {
                list.seek(file, number)?;
            }
            return Ok(());
        }
        while let Some(Reverse((head, list))) = self.heads.peek().copied() {
            if head >= number {
                break;
            }
            self.heads.pop();
            self.lists[list].seek(file, number)?;
            self.push_head(list, file)?;
        }
        Ok(())
    }
}
