//! Rows of a block: each one tells in what it differs from the one before. A block is readable on its own.

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_rows::Clustering;
use smallvec::SmallVec;

const NEW_PARTITION: u8 = 1;
const STATIC: u8 = 2;
const SAME_LEN: u8 = 4;
const SHARED_SHIFT: u32 = 3;
/// The shared length does not fit the head.
const SHARED_LONG: usize = 31;

/// Rows that will be a block.
#[derive(Default)]
pub(super) struct Draft {
    out: Writer,
    key: Vec<u8>,
    clustering: Vec<u8>,
    /// The clustering being added.
    next: Vec<u8>,
    count: u32,
}

impl Draft {
    pub(super) fn len(&self) -> u32 {
        self.count
    }

    /// Adds a row; `clustering` is nothing for a static row.
    pub(super) fn add(&mut self, key: &[u8], is_new: bool, clustering: Option<&Clustering>) {
        let is_new = is_new || self.count == 0;
        if is_new {
            let kind = if clustering.is_none() { STATIC } else { 0 };
            write_part(&mut self.out, NEW_PARTITION | kind, &self.key, key);
            self.key.clear();
            self.key.extend_from_slice(key);
        }
        if let Some(clustering) = clustering.filter(|clustering| !clustering.is_empty()) {
            self.next.clear();
            encode_clustering(clustering, &mut self.next);
            write_part(&mut self.out, 0, &self.clustering, &self.next);
            std::mem::swap(&mut self.clustering, &mut self.next);
        }
        self.count += 1;
    }

    /// The block, which is empty again after this.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let out = std::mem::take(&mut self.out).into_vec();
        self.key.clear();
        self.clustering.clear();
        self.count = 0;
        out
    }
}

fn write_part(out: &mut Writer, flags: u8, last: &[u8], next: &[u8]) {
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

/// `(len + 1:uvint  bytes)*`, null is 0.
fn encode_clustering(clustering: &Clustering, out: &mut Vec<u8>) {
    let mut writer = Writer::from_vec(std::mem::take(out));
    for value in clustering.values() {
        match value {
            None => writer.uvint(0),
            Some(value) => {
                writer.uvint(value.len() as u64 + 1);
                writer.bytes(value);
            }
        }
    }
    *out = writer.into_vec();
}

/// The values of an encoded clustering. Ends at what makes no sense.
#[derive(Clone)]
pub(super) struct ValuesOf<'b>(Reader<'b>);

impl<'b> ValuesOf<'b> {
    pub(super) fn of(bytes: &'b [u8]) -> Self {
        Self(Reader::new(bytes))
    }
}

impl<'b> Iterator for ValuesOf<'b> {
    type Item = Option<&'b [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let len = self.0.uvint().ok().and_then(|len| usize::try_from(len).ok())?;
        match len.checked_sub(1) {
            None => Some(None),
            Some(len) => self.0.take(len).ok().map(Some),
        }
    }
}

/// One part of a row: what it shares with the part before, and where its rest is in the block.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    shared: u32,
    at: u32,
    rest: u32,
}

/// The rows of a block, each as places in it: nothing is copied until a row is asked for.
pub(super) struct Rows<'b> {
    block: &'b [u8],
    keys: SmallVec<[Part; INLINE]>,
    clusterings: SmallVec<[Part; INLINE]>,
    /// Of each row its key, and its clustering; nothing: it is a static row.
    rows: SmallVec<[(u8, Option<u8>); INLINE]>,
}

/// Rows that need no allocation: those of a block.
const INLINE: usize = 64;

/// The block is not one.
pub(super) struct Damaged;

impl From<ilion_codec::Error> for Damaged {
    fn from(_: ilion_codec::Error) -> Self {
        Self
    }
}

impl<'b> Rows<'b> {
    /// Reads the first `count` rows of a block, no more than a block has.
    pub(super) fn read(block: &'b [u8], has_clustering: bool, count: usize) -> Result<Self, Damaged> {
        let mut input = Reader::new(block);
        let mut rows = Self {
            block,
            keys: SmallVec::new(),
            clusterings: SmallVec::new(),
            rows: SmallVec::new(),
        };
        for _ in 0..count.min(INLINE) {
            rows.read_row(&mut input, has_clustering)?;
        }
        Ok(rows)
    }

    #[inline]
    fn read_row(&mut self, input: &mut Reader<'b>, has_clustering: bool) -> Result<(), Damaged> {
        let head = input.peek_u8()?;
        let mut has_row = has_clustering;
        if head & NEW_PARTITION != 0 {
            self.keys.push(read_part(input, self.keys.last())?);
            has_row &= head & STATIC == 0;
        } else if !has_row {
            return Err(Damaged);
        }
        if has_row {
            self.clusterings.push(read_part(input, self.clusterings.last())?);
        }
        let key = self.keys.len().checked_sub(1).ok_or(Damaged)?;
        let clustering = match (has_row, has_clustering) {
            (true, _) => Some(self.clusterings.len() - 1),
            (false, true) => None,
            // All rows have the same, which is empty.
            (false, false) => Some(0),
        };
        // Both are below the number of rows of a block.
        let small = |index: usize| u8::try_from(index).unwrap_or(u8::MAX);
        self.rows.push((small(key), clustering.map(small)));
        Ok(())
    }

    /// Rows that were read.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Copies the key of a row.
    pub(super) fn key(&self, row: usize, out: &mut Vec<u8>) {
        out.clear();
        if let Some((key, _)) = self.rows.get(row) {
            self.copy(&self.keys, usize::from(*key), out);
        }
    }

    /// Copies the encoded clustering of a row; false for a static row.
    pub(super) fn clustering(&self, row: usize, out: &mut Vec<u8>) -> bool {
        out.clear();
        match self.rows.get(row) {
            Some((_, Some(clustering))) => {
                self.copy(&self.clusterings, usize::from(*clustering), out);
                true
            }
            _ => false,
        }
    }

    /// Puts a part together, from its end to its start.
    fn copy(&self, parts: &[Part], index: usize, out: &mut Vec<u8>) {
        let Some(last) = parts.get(index) else {
            return;
        };
        let mut end = (last.shared + last.rest) as usize;
        out.resize(end, 0);
        for part in parts[..=index].iter().rev() {
            let shared = part.shared as usize;
            if shared < end {
                let at = part.at as usize;
                out[shared..end].copy_from_slice(&self.block[at..at + (end - shared)]);
                end = shared;
            }
            if end == 0 {
                break;
            }
        }
    }
}

/// The values of an encoded clustering.
pub(super) fn decode_clustering(bytes: &[u8]) -> Clustering {
    let copied = |value: Option<&[u8]>| value.map(Bytes::copy_from_slice);
    Clustering::new(ValuesOf::of(bytes).map(copied).collect())
}

#[inline]
fn read_part(input: &mut Reader<'_>, last: Option<&Part>) -> Result<Part, Damaged> {
    let head = input.u8()?;
    let last_len = last.map_or(0, |last| (last.shared + last.rest) as usize);
    let mut shared = usize::from(head >> SHARED_SHIFT);
    if shared == SHARED_LONG {
        shared = usize::try_from(input.uvint()?).map_err(|_| Damaged)?;
    }
    let beyond = last_len.checked_sub(shared).ok_or(Damaged)?;
    let rest = if head & SAME_LEN != 0 {
        beyond
    } else {
        input.uvint_len()?
    };
    let at = input.offset();
    input.skip(rest)?;
    let small = |number: usize| u32::try_from(number).map_err(|_| Damaged);
    // A part is no longer than the block is, and a block is below 4 GiB.
    small(shared + rest)?;
    Ok(Part {
        shared: small(shared)?,
        at: small(at)?,
        rest: small(rest)?,
    })
}
