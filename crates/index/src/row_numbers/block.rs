//! The rows of a block, each encoded as its difference from the previous row. A block is decoded without other blocks.

use ilion_codec::{Reader, Writer};
use ilion_rows::Clustering;

use super::BLOCK_ROWS;
use crate::clustering_bytes::encode_clustering;

const NEW_PARTITION: u8 = 1;
const STATIC: u8 = 2;
const SAME_LEN: u8 = 4;
const SHARED_SHIFT: u32 = 3;
/// Marks a shared length that does not fit the head.
const SHARED_LONG: usize = 31;

/// A block under construction.
#[derive(Default)]
pub(super) struct Draft {
    out: Writer,
    key: Vec<u8>,
    clustering: Vec<u8>,
    /// The clustering of the row that is being added.
    next: Vec<u8>,
    count: u32,
}

impl Draft {
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Adds a row; `clustering` is `None` for a static row.
    pub(super) fn add(&mut self, key: &[u8], is_new: bool, clustering: Option<&Clustering>) {
        let is_new = is_new || self.count == 0;
        if is_new {
            let kind = if clustering.is_none() { STATIC } else { 0 };
            write_suffix(&mut self.out, NEW_PARTITION | kind, &self.key, key);
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        if let Some(clustering) = clustering.filter(|clustering| !clustering.is_empty()) {
            self.next.clear();
            encode_clustering(clustering, &mut self.next);
            write_suffix(&mut self.out, 0, &self.clustering, &self.next);
            std::mem::swap(&mut self.clustering, &mut self.next);
        }
        self.count += 1;
    }

    /// Returns the block, and starts the next one.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let out = std::mem::take(&mut self.out).into_vec();
        self.key.clear();
        self.clustering.clear();
        self.count = 0;
        out
    }
}

fn write_suffix(out: &mut Writer, flags: u8, last: &[u8], next: &[u8]) {
    let shared = last.iter().zip(next).take_while(|(a, b)| a == b).count();
    let is_same_len = last.len() == next.len();
    let in_head = u8::try_from(shared.min(SHARED_LONG)).unwrap_or(0);
    let same = if is_same_len { SAME_LEN } else { 0 };
    out.u8(flags | same | (in_head << SHARED_SHIFT));
    if shared >= SHARED_LONG {
        out.uvint(shared as u64);
    }
    if !is_same_len {
        out.uvint((next.len() - shared) as u64);
    }
    out.bytes(&next[shared..]);
}

/// A key or clustering: the length of the prefix that it shares with the previous one, and the range of its own bytes in the block.
#[derive(Clone, Copy, Debug, Default)]
struct Suffix {
    shared: u32,
    at: u32,
    rest: u32,
}

const ROWS: usize = BLOCK_ROWS as usize;
const IS_STATIC: u8 = u8::MAX;

/// The keys, or the clusterings, of a block.
struct Suffixes {
    suffixes: [Suffix; ROWS],
    count: usize,
    /// Length of the last key or clustering.
    last_len: u32,
}

/// The rows of a block, as ranges of it: no bytes are copied until a row is read.
pub(super) struct Rows<'b> {
    block: &'b [u8],
    has_clustering: bool,
    keys: Suffixes,
    clusterings: Suffixes,
    /// The indexes of each row's key and clustering.
    rows: [(u8, u8); ROWS],
    count: usize,
}

/// The bytes are not a block.
pub(super) struct Damaged;

impl Suffixes {
    const NONE: Self = Self {
        suffixes: [Suffix {
            shared: 0,
            at: 0,
            rest: 0,
        }; ROWS],
        count: 0,
        last_len: 0,
    };

    /// Reads the next suffix; `None` if it cannot be decoded.
    #[inline]
    fn read(&mut self, block: &[u8], at: &mut usize) -> Option<()> {
        let head = *block.get(*at)?;
        *at += 1;
        let mut shared = u32::from(head >> SHARED_SHIFT);
        if shared as usize == SHARED_LONG {
            shared = read_uvint(block, at)?;
        }
        let beyond = self.last_len.checked_sub(shared)?;
        let rest = if head & SAME_LEN == 0 {
            read_uvint(block, at)?
        } else {
            beyond
        };
        let start = u32::try_from(*at).ok()?;
        *at = at.checked_add(rest as usize).filter(|end| *end <= block.len())?;
        self.last_len = shared.checked_add(rest)?;
        *self.suffixes.get_mut(self.count)? = Suffix {
            shared,
            at: start,
            rest,
        };
        self.count += 1;
        Some(())
    }

    /// Restores the whole key or clustering, from its end to its start.
    fn copy(&self, index: usize, block: &[u8], out: &mut Vec<u8>) {
        out.clear();
        let Some(last) = self.suffixes[..self.count].get(index) else {
            return;
        };
        let mut end = (last.shared + last.rest) as usize;
        out.resize(end, 0);
        for suffix in self.suffixes[..=index].iter().rev() {
            let shared = suffix.shared as usize;
            if shared < end {
                let at = suffix.at as usize;
                out[shared..end].copy_from_slice(&block[at..at + (end - shared)]);
                end = shared;
            }
            if end == 0 {
                break;
            }
        }
    }
}

impl<'b> Rows<'b> {
    /// The rows of a block; none is decoded yet.
    #[inline]
    pub(super) fn of(block: &'b [u8], has_clustering: bool) -> Self {
        Self {
            block,
            has_clustering,
            keys: Suffixes::NONE,
            clusterings: Suffixes::NONE,
            rows: [(0, 0); ROWS],
            count: 0,
        }
    }

    /// Decodes the first `count` rows, at most those of a block.
    pub(super) fn read(&mut self, count: usize) -> Result<(), Damaged> {
        let mut at = 0;
        for row in 0..count.min(ROWS) {
            self.rows[row] = self.read_row(&mut at).ok_or(Damaged)?;
            self.count = row + 1;
        }
        Ok(())
    }

    #[inline]
    fn read_row(&mut self, at: &mut usize) -> Option<(u8, u8)> {
        let head = *self.block.get(*at)?;
        let mut has_row = self.has_clustering;
        if head & NEW_PARTITION != 0 {
            self.keys.read(self.block, at)?;
            has_row &= head & STATIC == 0;
        } else if !has_row {
            return None;
        }
        let key = u8::try_from(self.keys.count.checked_sub(1)?).ok()?;
        if has_row {
            self.clusterings.read(self.block, at)?;
            return Some((key, u8::try_from(self.clusterings.count - 1).ok()?));
        }
        // Without clustering columns, all rows have the empty clustering.
        Some((key, if self.has_clustering { IS_STATIC } else { 0 }))
    }

    /// Number of decoded rows.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Copies the key of a row.
    pub(super) fn key(&self, row: usize, out: &mut Vec<u8>) {
        let (key, _) = self.rows[row];
        self.keys.copy(usize::from(key), self.block, out);
    }

    /// Copies the encoded clustering of a row; false for a static row.
    pub(super) fn clustering(&self, row: usize, out: &mut Vec<u8>) -> bool {
        let (_, clustering) = self.rows[row];
        if clustering == IS_STATIC {
            return false;
        }
        self.clusterings.copy(usize::from(clustering), self.block, out);
        true
    }
}

#[inline]
fn read_uvint(block: &[u8], at: &mut usize) -> Option<u32> {
    if let Some(byte) = block.get(*at).filter(|byte| **byte < 0x80) {
        *at += 1;
        return Some(u32::from(*byte));
    }
    let mut input = Reader::new(block.get(*at..)?);
    let number = u32::try_from(input.uvint().ok()?).ok()?;
    *at += input.offset();
    Some(number)
}
