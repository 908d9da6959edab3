//! [`EntriesInOrder`]: reading all entries once without copying them, for a flush.

use std::sync::Arc;

use ilion_rows::{DecoratedKey, EntryRow};
use ilion_runs::Ordered;

use super::Entries;
use super::record::{entry_of, is_same_value, key_of, was_only_here};

/// The entries of a hidden table in their order, see [`crate::Memtable::entries_in_order`].
pub struct EntriesInOrder<F> {
    entries: Arc<Entries>,
    may_be_older: F,
    ordered: Ordered,
    /// A record of the current partition, which names it, and the head of the record.
    partition: Vec<u8>,
    head: u64,
    /// Buffer for records that are merged.
    room: Vec<u8>,
}

impl<F: Fn(&DecoratedKey) -> bool> EntriesInOrder<F> {
    pub(crate) fn new(entries: Arc<Entries>, may_be_older: F) -> Self {
        Self {
            ordered: entries.ordered(),
            entries,
            may_be_older,
            partition: Vec::new(),
            head: 0,
            room: Vec::new(),
        }
    }

    /// Moves to the next partition and returns its key; `None` at the end.
    pub fn next_partition(&mut self) -> Option<DecoratedKey> {
        while self.next_entry().is_some() {}
        let record = self.ordered.peek()?;
        self.partition.clear();
        self.partition.extend_from_slice(record.bytes);
        self.head = record.head;
        Some(key_of(&self.partition))
    }

    /// The next entry of the partition; `None` at its end.
    #[inline]
    pub fn next_entry(&mut self) -> Option<EntryRow<'_>> {
        let order = &self.entries.order;
        self.ordered.skip_until(order, &mut self.room, |entry| {
            !was_only_here(entry) || (self.may_be_older)(&order.base_key_of(entry))
        });
        let next = self.ordered.peek()?;
        if next.head != self.head || !is_same_value(next.bytes, &self.partition) {
            return None;
        }
        self.ordered.next(order, &mut self.room).map(entry_of)
    }
}

impl<F> std::fmt::Debug for EntriesInOrder<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EntriesInOrder").finish_non_exhaustive()
    }
}
