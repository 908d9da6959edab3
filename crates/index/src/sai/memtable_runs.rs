//! The entries of one memtable: sorted runs in shards by term.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};

use ilion_runs::{Coming, Kind, Record, Run, SharedRuns, Stretch, head_of};
use ilion_types::Partitioner;

use super::entry::{Entry, KeptEntry, Layout, PlaceHeader, TermOrder};
use super::lookup::TermRange;

/// Number of shards; the hash of a term selects one.
const SHARDS: usize = 16;

/// The entries of a memtable, in sorted runs per shard.
pub(super) struct Shards {
    shards: [SharedRuns; SHARDS],
    pub(super) layout: Layout,
    /// The partitioner of the keys, known from the first key on.
    pub(super) partitioner: OnceLock<Partitioner>,
}

impl Shards {
    pub(super) fn new(layout: Layout) -> Self {
        Self {
            shards: std::array::from_fn(|_| SharedRuns::default()),
            layout,
            partitioner: OnceLock::new(),
        }
    }

    pub(super) fn partitioner(&self) -> Partitioner {
        self.partitioner.get().copied().unwrap_or_default()
    }

    /// The shard of a term; `head` is the head of the term.
    #[inline]
    fn of(&self, term: &[u8], head: u64) -> &SharedRuns {
        let mix = |hash: u64, word: u64| (hash.rotate_left(23) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut hash = mix(0, head);
        if let Some(tail) = term.get(size_of::<u64>()..) {
            let (chunks, rest) = tail.as_chunks::<8>();
            let words = chunks.iter().map(|chunk| u64::from_be_bytes(*chunk));
            hash = mix(words.fold(hash, mix), head_of(rest));
        }
        &self.shards[usize::try_from(hash >> 60).unwrap_or(0) % SHARDS]
    }

    /// The runs that may have entries of a range; `ends` are the ends of the range.
    pub(super) fn runs(&self, range: &TermRange, ends: &Ends) -> Vec<Arc<Run>> {
        match range.only() {
            Some(term) => self.of(term, head_of(term)).snapshot(&TermOrder, ends),
            None => {
                let shards = self.shards.iter();
                shards
                    .flat_map(|shard| shard.snapshot(&TermOrder, ends))
                    .collect()
            }
        }
    }

    /// Adds an entry: the place has the term, or no longer has it.
    #[inline]
    pub(super) fn put(&self, term: &[u8], header: PlaceHeader, place: &[u8], is_there: bool) -> isize {
        let coming = Coming {
            head: head_of(term),
            kind: if is_there { Kind::First } else { Kind::Again },
            len: PlaceHeader::entry_len(term, place),
        };
        let shard = self.of(term, coming.head);
        shard.push(
            &TermOrder,
            coming,
            |()| {},
            |room| {
                header.encode(term, place, is_there, |bytes| room.bytes(bytes));
            },
        )
    }
}

/// The ends of a range of terms as entries.
pub(super) struct Ends {
    from: KeptEntry,
    /// `None` if the range has no end.
    to: Option<KeptEntry>,
}

impl Ends {
    pub(super) fn of(range: &TermRange) -> Self {
        // An empty range ends where it starts.
        let to = match range.is_empty() {
            true => Some(&range.from),
            false => range.to.as_ref(),
        };
        Self {
            from: Layout::before_term(&range.from),
            to: to.map(|to| Layout::before_term(to)),
        }
    }

    /// The records of a run between these ends.
    pub(super) fn stretch(&self, run: &Run) -> std::ops::Range<usize> {
        let from = run.find(0, run.len(), |record| self.is_before_start(record));
        from..run.find(from, run.len(), |record| self.is_before_end(record))
    }
}

impl Stretch for Ends {
    fn heads(&self) -> RangeInclusive<u64> {
        let to = self.to.as_ref();
        self.from.as_entry().head()..=to.map_or(u64::MAX, |to| to.as_entry().head())
    }

    fn is_before_start(&self, record: Record<'_>) -> bool {
        Entry::from(record).compare(&self.from.as_entry()).is_lt()
    }

    fn is_before_end(&self, record: Record<'_>) -> bool {
        let to = self.to.as_ref();
        to.is_none_or(|to| Entry::from(record).compare(&to.as_entry()).is_lt())
    }
}
