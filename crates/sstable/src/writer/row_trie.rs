//! Writes the row index of one partition as a trie in Rows.db, for partitions with several blocks; the layout is in
//! `reader::row_trie`.
//!
//! The key of a block is a separator: the bytes that the last unfiltered of the block before and the first one of this block have in
//! common, then the next byte of the former plus one.

use ilion_codec::Writer;
use ilion_rows::{BoundKind, DeletionTime, Values};
use ilion_schema::TableSchema;

use super::clustering_span::ClusteringSpan;
use super::component_writer::ComponentWriter;
use super::trie_builder::TrieBuilder;
use super::trie_draft::{PayloadBytes, sized_int_len};
use super::written::Written;
use crate::comparable::ComparableClusterings;
use crate::row::format::times::encode_partition_deletion;
use crate::{Result, Version};

const HAS_OPEN: u8 = 8;

/// The clustering or bound of an unfiltered.
#[derive(Clone, Copy)]
enum UnfilteredClustering<'a> {
    Row(&'a Values),
    /// The clustering of a row that is read in place, without building a row.
    Shown(&'a [Option<&'a [u8]>]),
    Marker(BoundKind, &'a Values),
}

/// The current block.
#[derive(Debug)]
struct Block {
    /// Offset from the start of the partition.
    start: u64,
    /// The deletion that is open at the start of the block.
    open: DeletionTime,
}

#[derive(Debug)]
pub(super) struct RowTrieBuilder {
    version: Version,
    block_bytes: u64,
    /// `None` if clusterings of this table have no byte-comparable form: then no indexes are written.
    clusterings: Option<ComparableClusterings>,
    trie: TrieBuilder,
    /// The deletion that is open before the next unfiltered.
    open: DeletionTime,
    block: Option<Block>,
    /// Byte-comparable form of the first clustering of the current block; `last` is that of the last one of the block before.
    first: Vec<u8>,
    last: Vec<u8>,
    separator: Vec<u8>,
    blocks: u64,
    /// True if an open deletion cannot be stored: then no index is written, and readers scan the partition.
    is_given_up: bool,
}

impl RowTrieBuilder {
    pub(super) fn new(version: Version, table: &TableSchema, block_bytes: u32) -> Self {
        let clusterings = ComparableClusterings::of(table);
        Self {
            version,
            block_bytes: u64::from(block_bytes.max(1)),
            is_given_up: clusterings.is_none(),
            clusterings,
            trie: TrieBuilder::new(),
            open: DeletionTime::LIVE,
            block: None,
            first: Vec::new(),
            last: Vec::new(),
            separator: Vec::new(),
            blocks: 0,
        }
    }

    pub(super) fn begin_partition(&mut self) {
        if self.blocks > 0 {
            self.trie.clear();
        }
        self.open = DeletionTime::LIVE;
        self.block = None;
        self.blocks = 0;
        self.is_given_up = self.clusterings.is_none();
    }

    /// Adds an unfiltered from `start` to `end`, as offsets from the partition's start.
    #[inline]
    pub(super) fn add(
        &mut self,
        written: Written<'_>,
        start: u64,
        end: u64,
        rows: &mut ComponentWriter,
    ) -> Result<()> {
        if self.block.is_none() {
            self.block = Some(Block {
                start,
                open: self.open,
            });
            // The first block needs no separator.
            if self.blocks > 0 {
                encode(self.clusterings.as_ref(), clustering_of(written), &mut self.first);
            }
        }
        if let Written::Marker(marker) = written {
            self.open = marker.start.unwrap_or(DeletionTime::LIVE);
        }
        match self.block.take_if(|block| end - block.start >= self.block_bytes) {
            Some(block) => self.end_block(&block, clustering_of(written), rows),
            None => Ok(()),
        }
    }

    fn end_block(
        &mut self,
        block: &Block,
        last: UnfilteredClustering<'_>,
        rows: &mut ComponentWriter,
    ) -> Result<()> {
        self.separator.clear();
        let is_apart = self.blocks == 0 || separate(&self.last, &self.first, &mut self.separator);
        self.blocks += 1;
        match self.payload(block).filter(|_| is_apart && !self.is_given_up) {
            Some(payload) => self.trie.add(&self.separator, payload, rows),
            None => self.is_given_up = true,
        }
        encode(self.clusterings.as_ref(), last, &mut self.last);
        rows.flush_if_large()
    }

    fn payload(&self, block: &Block) -> Option<PayloadBytes> {
        let offset = block.start.cast_signed();
        let len = sized_int_len(offset);
        if block.open.is_live() {
            return Some(PayloadBytes::new(len).with_sized_int(offset));
        }
        let mut open = Writer::new();
        encode_partition_deletion(self.version, &block.open, &mut open).ok()?;
        let payload = PayloadBytes::new(len | HAS_OPEN).with_sized_int(offset);
        Some(payload.with(open.as_slice()))
    }

    /// Ends the partition. Its last unfiltered is that of `span`, and ends at `end`. Returns the position of the root and the
    /// number of blocks; `None` if there is no index.
    pub(super) fn finish(
        &mut self,
        span: &ClusteringSpan,
        end: u64,
        rows: &mut ComponentWriter,
    ) -> Result<Option<(u64, u64)>> {
        if self.blocks > 0
            && let Some(block) = self.block.take()
        {
            let (values, kind) = span.last();
            let last = match kind {
                None => UnfilteredClustering::Row(&values),
                Some(kind) => UnfilteredClustering::Marker(kind, &values),
            };
            self.end_block(&block, last, rows)?;
        }
        if self.blocks < 2 || self.is_given_up {
            return Ok(None);
        }
        end_key(&self.last, &mut self.separator);
        let end = Block {
            start: end,
            open: DeletionTime::LIVE,
        };
        let Some(payload) = self.payload(&end) else {
            return Ok(None);
        };
        self.trie.add(&self.separator, payload, rows);
        Ok(Some((self.trie.finish(rows), self.blocks)))
    }
}

fn clustering_of(written: Written<'_>) -> UnfilteredClustering<'_> {
    match written {
        Written::Row(values) => UnfilteredClustering::Row(values),
        Written::Shown(values) => UnfilteredClustering::Shown(values),
        Written::Marker(marker) => UnfilteredClustering::Marker(marker.bound.kind, &marker.bound.values),
    }
}

fn encode(
    clusterings: Option<&ComparableClusterings>,
    clustering: UnfilteredClustering<'_>,
    out: &mut Vec<u8>,
) {
    out.clear();
    if let Some(clusterings) = clusterings {
        match clustering {
            UnfilteredClustering::Row(values) => clusterings.encode_row(values, out),
            UnfilteredClustering::Shown(values) => clusterings.encode_row(values, out),
            UnfilteredClustering::Marker(kind, values) => clusterings.encode_bound(kind, values, out),
        }
    }
}

fn common_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Appends a separator above `before` and not above `after`. Returns false if they do not ascend.
fn separate(before: &[u8], after: &[u8], out: &mut Vec<u8>) -> bool {
    let common = common_len(before, after);
    match (before.get(common), after.get(common)) {
        (Some(low), Some(high)) if low < high => {
            out.extend_from_slice(&before[..common]);
            out.push(low + 1);
            true
        }
        _ => false,
    }
}

/// Replaces `separator`, the key of the last block, by a key above `last`. The key is as short as possible, so that lookups behind the
/// last unfiltered need few nodes.
fn end_key(last: &[u8], separator: &mut Vec<u8>) {
    let common = common_len(last, separator);
    // A byte of the maximum value cannot be raised: it stays, and the next one is raised.
    let raised = last[common..].iter().position(|byte| *byte < u8::MAX);
    let end = raised.map_or(last.len(), |raised| common + raised + 1);
    separator.clear();
    separator.extend_from_slice(&last[..end]);
    match (raised, separator.last_mut()) {
        (Some(_), Some(byte)) => *byte += 1,
        // All bytes have the maximum value: only a longer key is above.
        _ => separator.push(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn separator(before: &[u8], after: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        separate(before, after, &mut out).then_some(out)
    }

    #[test]
    fn separators_lie_between() {
        assert_eq!(separator(b"abc", b"abz"), Some(b"abd".to_vec()));
        assert_eq!(separator(b"ab", b"ac"), Some(b"ac".to_vec()));
        assert_eq!(separator(b"ab", b"ab"), None);
        assert_eq!(separator(b"b", b"a"), None);
        assert_eq!(separator(b"ab", b"abc"), None);
    }

    #[test]
    fn the_end_lies_behind_the_last() {
        let end = |last: &[u8], separator: &[u8]| {
            let mut out = separator.to_vec();
            end_key(last, &mut out);
            assert!(*out > *last && *out > *separator);
            out
        };
        assert_eq!(end(b"acz", b"ab"), b"ad");
        assert_eq!(end(b"a\xFF\xFFb\x38", b"a\x01"), b"a\xFF\xFFc");
        assert_eq!(end(b"a\xFF", b"a\x01"), b"a\xFF\x00");
        assert_eq!(end(b"abc", b"ab"), b"abd");
    }
}
