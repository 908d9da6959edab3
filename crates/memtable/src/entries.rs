//! The entries of a hidden table of an index: many small rows that have only their key and a liveness or a deletion.
//!
//! Entries are stored as records in [`ilion_runs`], in shards by their values, and become rows when they are read. A reader takes a
//! snapshot of the runs of a shard, so it sees each partition as it was at one moment.
//!
//! | module | what |
//! | --- | --- |
//! | `record` | entries as bytes, and their order |
//! | `distinct` | an estimate of the number of partitions |
//! | `cursor` | [`EntryCursor`]: reading |
//! | `in_order` | [`EntriesInOrder`]: reading all of them once, for a flush |

mod cursor;
mod distinct;
mod in_order;
mod record;
#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ilion_rows::{Entry, EntryPlace, KeyRange, Mutation, Row};
use ilion_runs::{Coming, Kind, Ordered, Record, SharedRuns, Stretch, Walk, head_of};
use ilion_schema::TableSchema;
use ilion_types::KeyOrder;
use smallvec::SmallVec;

pub(crate) use self::cursor::EntryCursor;
use self::distinct::Distinct;
pub use self::in_order::EntriesInOrder;
use self::record::{EncodedPlace, EntryOrder, NewRecord};
use crate::statistics::Statistics;

/// Counts over the entries of a shard.
#[derive(Debug)]
struct Notes {
    values: Distinct,
    statistics: Statistics,
}

impl Default for Notes {
    fn default() -> Self {
        Self {
            values: Distinct::default(),
            statistics: Statistics::NONE,
        }
    }
}

/// The entries of a hidden table.
#[derive(Debug)]
pub(crate) struct Entries {
    order: EntryOrder,
    key_order: KeyOrder,
    shards: Box<[SharedRuns<Notes>]>,
}

impl Entries {
    /// Makes empty shards; `None` if the table is not a hidden table of an index.
    pub(crate) fn of(table: &Arc<TableSchema>, shards: usize) -> Option<Self> {
        let key_order = table.key_order?;
        Some(Self {
            order: EntryOrder::of(table)?,
            key_order,
            shards: std::iter::repeat_with(SharedRuns::default)
                .take(shards.max(1))
                .collect(),
        })
    }

    /// Adds entries of one place; returns by how many bytes memory grew. `scratch` is a buffer to reuse.
    pub(crate) fn apply(
        &self,
        place: &EntryPlace<'_>,
        entries: &[Entry<'_>],
        scratch: &mut Vec<u8>,
    ) -> isize {
        scratch.clear();
        let place = EncodedPlace::of(place, scratch);
        entries.iter().map(|entry| self.put(entry, &place, scratch)).sum()
    }

    /// Adds one entry; returns by how many bytes memory grew. `scratch` begins with the encoded place.
    #[inline]
    fn put(&self, entry: &Entry<'_>, place: &EncodedPlace, scratch: &mut Vec<u8>) -> isize {
        scratch.truncate(place.parts_len);
        self.key_order.encode(entry.value, scratch);
        let (parts, token) = scratch.split_at(place.parts_len);
        let head = head_of(token);
        let hash = scattered(head, token);
        let is_deletion = entry.liveness.is_none();
        let timestamp_micros = match is_deletion {
            true => entry.deletion.marked_at_micros,
            false => entry.liveness.timestamp_micros,
        };
        let note = |notes: &mut Notes| {
            notes.values.see(hash);
            notes.statistics.see(timestamp_micros);
        };
        let record = NewRecord {
            token,
            code: place.code,
            parts,
            entry,
        };
        let coming = Coming {
            head,
            kind: if is_deletion { Kind::Again } else { Kind::First },
            len: record.len(),
        };
        self.shards[self.shard_of(hash)].push(&self.order, coming, note, |room| record.write(room))
    }

    /// Adds the rows of a mutation; returns by how many bytes memory grew. Requires: all rows are entries.
    pub(crate) fn apply_mutation(&self, mutation: &Mutation) -> isize {
        let update = &mutation.update;
        let has_rows_only =
            update.deletion.is_none() && update.static_row.is_none() && update.ranges.is_empty();
        assert!(has_rows_only, "a hidden table has nothing but entries");
        let mut scratch = Vec::new();
        let rows = update.rows.iter();
        rows.map(|row| self.apply_row(&mutation.key.key, row, &mut scratch))
            .sum()
    }

    fn apply_row(&self, value: &[u8], row: &Row, scratch: &mut Vec<u8>) -> isize {
        assert!(row.columns.is_empty(), "an entry has no columns");
        let clustering: SmallVec<[Option<&[u8]>; 4]> =
            row.clustering.values().iter().map(Option::as_deref).collect();
        let key = clustering.first().copied().flatten().unwrap_or_default();
        let place = EntryPlace {
            key_token: &self.order.token_of_key(key),
            clustering: &clustering,
        };
        let entry = Entry {
            value,
            liveness: row.liveness,
            deletion: row.deletion,
            is_first: false,
        };
        self.apply(&place, &[entry], scratch)
    }

    fn shard_of(&self, hash: u64) -> usize {
        let scaled = (u128::from(hash) * self.shards.len() as u128) >> 64;
        usize::try_from(scaled).unwrap_or(0)
    }

    /// The shards that may have partitions of the range.
    fn chosen(&self, range: &KeyRange) -> &[SharedRuns<Notes>] {
        let only = range
            .start
            .token()
            .filter(|first| Some(*first) == range.end.token());
        match only {
            Some(token) => {
                let token = record::bytes_of(token);
                let index = self.shard_of(scattered(head_of(token), token));
                &self.shards[index..=index]
            }
            None => &self.shards,
        }
    }

    fn walk(&self, range: &KeyRange) -> Walk {
        let stretch = InRange(range);
        let runs = self
            .chosen(range)
            .iter()
            .flat_map(|shard| shard.snapshot(&self.order, &stretch));
        Walk::between(&self.order, runs, &stretch)
    }

    /// All entries in their order. Requires: there are no more writes.
    fn ordered(&self) -> Ordered {
        let shards = self.shards.iter();
        Ordered::of(&self.order, shards.flat_map(SharedRuns::all).collect())
    }

    /// Counts over all shards; the number of partitions is an estimate.
    pub(crate) fn statistics(&self) -> Statistics {
        let mut all = Statistics::NONE;
        for shard in &self.shards {
            let records = shard.len();
            let notes = shard.notes();
            let mut here = notes.statistics;
            here.partitions = notes.values.estimate().min(records);
            all.take_in(&here);
        }
        all
    }

    /// Number of entries in the range, without those that are known to be removed. An entry that was written twice may be counted twice.
    pub(crate) fn count(&self, range: &KeyRange) -> usize {
        self.walk(range).len_living()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shards.iter().all(SharedRuns::is_empty)
    }
}

/// The records of a range of partitions.
struct InRange<'r>(&'r KeyRange);

impl Stretch for InRange<'_> {
    fn heads(&self) -> RangeInclusive<u64> {
        record::head_of_bound(&self.0.start)..=record::head_of_bound(&self.0.end)
    }

    fn is_before_start(&self, record: Record<'_>) -> bool {
        record::is_before_bound(record.bytes, &self.0.start)
    }

    fn is_before_end(&self, record: Record<'_>) -> bool {
        record::is_before_bound(record.bytes, &self.0.end)
    }
}

/// A hash that spreads values over shards. `head` is the first eight bytes: most values are not longer.
#[inline]
fn scattered(head: u64, bytes: &[u8]) -> u64 {
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |hash: u64, word: u64| {
        let mixed = (hash ^ word).wrapping_mul(SPREAD);
        mixed ^ (mixed >> 29)
    };
    let mut hash = mix(bytes.len() as u64, head);
    if let Some(tail) = bytes.get(size_of::<u64>()..) {
        let (chunks, rest) = tail.as_chunks::<8>();
        let words = chunks.iter().map(|chunk| u64::from_be_bytes(*chunk));
        hash = mix(words.fold(hash, mix), head_of(rest));
    }
    hash.wrapping_mul(SPREAD)
}
