//! Partitions.db: a trie of partition keys, of which only the first and the last key are in memory.
//!
//! ```text
//! file    := trie  first_key:bytes16  last_key:bytes16  first_key_position:i64  key_count:i64  root:i64
//! payload := hash:u8  target           bits 8 to 15; target is of bits - 7 bytes, signed
//!          | target                    bits 1 to 7, as many bytes
//! ```
//!
//! A target of 0 or above is a position in Rows.db; otherwise its bitwise complement is a position in Data.db. For each key, the trie
//! has only the prefix that distinguishes it from its neighbours. So a leaf is only a candidate; the key at its target decides.

use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::Reader;
use ilion_env::Env;
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::Partitioner;

use super::location::{IndexEntry, Location, RowIndexAt};
use crate::comparable::{comparable_bound, comparable_key};
use crate::row::source::ByteSource as _;
use crate::trie::{Ascending, Node, Nodes, Payload};
use crate::{ChunkReader, DataStream, KeyHash, Result, Scan};

const FOOTER_LEN: u64 = 24;
/// From this value on, the bits of a payload indicate a hash.
const BITS_WITH_HASH: u8 = 8;
/// The length of two keys of maximum size, with their lengths.
const KEYS_LEN_MAX: u64 = 2 * (2 + 65_535);

/// The partition index of a BTI SSTable.
#[derive(Debug)]
pub(crate) struct PartitionTrie {
    partitions: Arc<ChunkReader>,
    pub(crate) rows: Arc<ChunkReader>,
    data: Arc<ChunkReader>,
    root: u64,
    pub(crate) key_count: u64,
    pub(crate) first: DecoratedKey,
    pub(crate) last: DecoratedKey,
}

impl PartitionTrie {
    /// Reads the end of Partitions.db.
    pub(crate) fn open(
        partitions: Arc<ChunkReader>,
        rows: Arc<ChunkReader>,
        data: Arc<ChunkReader>,
        partitioner: Partitioner,
    ) -> Result<Self> {
        let length = partitions.data_length();
        let footer_at = length.saturating_sub(FOOTER_LEN);
        let mut footer = DataStream::cached(partitions.clone(), footer_at);
        let [keys_at, key_count, root] =
            [footer.array()?, footer.array()?, footer.array()?].map(u64::from_be_bytes);
        let keys_len = footer_at.checked_sub(keys_at).filter(|len| *len <= KEYS_LEN_MAX);
        let Some(keys_len) = keys_len.and_then(|len| usize::try_from(len).ok()) else {
            return Err(partitions.corrupt(footer_at, "the position of the first key"));
        };
        if root >= keys_at {
            return Err(partitions.corrupt(footer_at + 16, "the position of a root before the first key"));
        }
        let keys = partitions.read_at(keys_at, keys_len)?;
        let mut input = Reader::new(&keys);
        let (Ok(first), Ok(last), true) = (input.bytes16(), input.bytes16(), input.is_empty()) else {
            return Err(partitions.corrupt(keys_at, "the first and the last key"));
        };
        let decorated = |key| DecoratedKey::new(partitioner, Bytes::copy_from_slice(key));
        let (first, last) = (decorated(first), decorated(last));
        if first > last {
            return Err(partitions.corrupt(keys_at, "a first key up to the last"));
        }
        Ok(Self {
            partitions,
            rows,
            data,
            root,
            key_count,
            first,
            last,
        })
    }

    /// The location of `key`, if the SSTable may have it. For a location that is not certain, the caller must compare the key in
    /// Data.db.
    pub(crate) fn find(&self, key: &DecoratedKey) -> Result<Option<Location>> {
        let mut nodes = Nodes::of(self.partitions.clone());
        let Some(leaf) = nodes.find_leaf(self.root, &comparable_key(&key.token, &key.key))? else {
            return Ok(None);
        };
        let leaf = self.leaf(&leaf)?;
        if leaf
            .hash
            .is_some_and(|hash| hash != KeyHash::of(&key.key).low_byte())
        {
            return Ok(None);
        }
        let entry = self.entry(&leaf)?;
        let is_other = entry.key.is_some_and(|found| found != key.key);
        Ok((!is_other).then_some(entry.location))
    }

    fn leaf(&self, node: &Node) -> Result<Leaf> {
        let Some(payload) = node.payload() else {
            return Err(self.partitions.corrupt(node.position, "a payload"));
        };
        self.decode(&payload)
    }

    fn decode(&self, payload: &Payload) -> Result<Leaf> {
        let (hash, at, len) = match payload.bits.checked_sub(BITS_WITH_HASH) {
            Some(more) => (payload.bytes.first().copied(), 1, usize::from(more) + 1),
            None => (None, 0, usize::from(payload.bits)),
        };
        match payload.sized_int(at, len) {
            Some(target) => Ok(Leaf { hash, target }),
            None => Err(self
                .partitions
                .corrupt(payload.position, "a position within the page")),
        }
    }

    /// The entry that a leaf refers to.
    fn entry(&self, leaf: &Leaf) -> Result<IndexEntry> {
        if let Ok(position) = u64::try_from(leaf.target) {
            return self.row_index_entry(position);
        }
        Ok(IndexEntry {
            key: None,
            location: Location {
                position: (!leaf.target).unsigned_abs(),
                is_certain: false,
                row_index: None,
                entry_at: None,
            },
        })
    }

    /// Reads the header of a partition's row index. Its partition deletion is skipped, since Data.db has it, too.
    pub(crate) fn row_index_entry(&self, position: u64) -> Result<IndexEntry> {
        let mut input = DataStream::cached(self.rows.clone(), position);
        let key_len = usize::from(u16::from_be_bytes(input.array()?));
        let key = input.take(key_len)?;
        let base = input.position();
        let data_position = input.uvint()?;
        let root = base.checked_add_signed(input.svint()?);
        let Some(root) = root.filter(|root| *root < position) else {
            return Err(self.rows.corrupt(base, "the distance to a root before it"));
        };
        Ok(IndexEntry {
            key: Some(key),
            location: Location {
                position: data_position,
                is_certain: true,
                row_index: Some(RowIndexAt::Trie {
                    root,
                    rest: input.position(),
                }),
                entry_at: Some(position),
            },
        })
    }

    /// Iterates over the partitions above `bound`.
    pub(crate) fn walk_above(
        self: &Arc<Self>,
        bound: &KeyBound,
        scan: Scan,
        partitioner: Partitioner,
        env: &dyn Env,
    ) -> Result<TrieWalker> {
        let partitions = match scan {
            Scan::Point => self.partitions.clone(),
            Scan::Sequential => Arc::new(self.partitions.reopen_for_scan(env)?),
        };
        let from = comparable_bound(bound);
        let mut walker = TrieWalker {
            walk: Ascending::from(Nodes::of(partitions), self.root, &from)?,
            trie: self.clone(),
            least: 0,
            first: None,
        };
        if walker.walk.begins_with_prefix {
            walker.first = walker.next_above(bound, partitioner)?;
        }
        Ok(walker)
    }

    fn with_key(&self, entry: IndexEntry) -> Result<(IndexEntry, Bytes)> {
        let key = match &entry.key {
            Some(key) => key.clone(),
            None => key_in_data(&self.data, entry.location.position)?,
        };
        Ok((entry, key))
    }
}

/// The key of the partition that starts at `position` of Data.db.
pub(crate) fn key_in_data(data: &Arc<ChunkReader>, position: u64) -> Result<Bytes> {
    let mut input = DataStream::cached(data.clone(), position);
    let len = usize::from(u16::from_be_bytes(input.array()?));
    Ok(input.take(len)?)
}

struct Leaf {
    hash: Option<u8>,
    target: i64,
}

/// Iterates over the partitions in order.
#[derive(Debug)]
pub(crate) struct TrieWalker {
    walk: Ascending,
    trie: Arc<PartitionTrie>,
    /// The next partition is not before this position: partitions are in Data.db in the order of their keys.
    least: u64,
    /// The first entry, if it was already read.
    first: Option<IndexEntry>,
}

impl TrieWalker {
    /// The next entry, if it is above `bound`.
    fn next_above(&mut self, bound: &KeyBound, partitioner: Partitioner) -> Result<Option<IndexEntry>> {
        let Some(entry) = self.next_entry()? else {
            return Ok(None);
        };
        let (entry, key) = self.trie.with_key(entry)?;
        let key = DecoratedKey::new(partitioner, key);
        Ok(bound.compare(&key).is_lt().then_some(entry))
    }

    /// The next entry; `None` at the end.
    pub(crate) fn next_entry(&mut self) -> Result<Option<IndexEntry>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let Some(payload) = self.walk.next()? else {
            return Ok(None);
        };
        let leaf = self.trie.decode(&payload)?;
        let entry = self.trie.entry(&leaf)?;
        if entry.location.position < self.least {
            let expected = "a position in Data.db above that of the key before";
            return Err(self.walk.nodes().corrupt(payload.position, expected));
        }
        self.least = entry.location.position.saturating_add(1);
        Ok(Some(entry))
    }
}
