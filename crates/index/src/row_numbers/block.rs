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

/// Bytes of which the next ones differ little.
type Last = SmallVec<[u8; 64]>;

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

/// Steps through the rows of a block.
pub(super) struct Rows<'b> {
    input: Reader<'b>,
    has_clustering: bool,
    key: Last,
    clustering: Last,
    is_static: bool,
    is_new: bool,
}

/// The block is not one.
pub(super) struct Damaged;

impl From<ilion_codec::Error> for Damaged {
    fn from(_: ilion_codec::Error) -> Self {
        Self
    }
}

impl<'b> Rows<'b> {
    pub(super) fn of(block: &'b [u8], has_clustering: bool) -> Self {
        Self {
            input: Reader::new(block),
            has_clustering,
            key: Last::new(),
            clustering: Last::new(),
            is_static: false,
            is_new: false,
        }
    }

    /// Goes to the next row.
    #[inline]
    pub(super) fn step(&mut self) -> Result<(), Damaged> {
        let head = self.input.peek_u8()?;
        self.is_new = head & NEW_PARTITION != 0;
        if self.is_new {
            read_part(&mut self.input, &mut self.key)?;
            self.is_static = head & STATIC != 0;
        } else {
            self.is_static = false;
        }
        if self.has_clustering && !self.is_static {
            return read_part(&mut self.input, &mut self.clustering);
        }
        if self.is_new { Ok(()) } else { Err(Damaged) }
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// True if the row is of another partition than the one before.
    pub(super) fn is_new(&self) -> bool {
        self.is_new
    }

    /// The encoded clustering; nothing for a static row.
    #[inline]
    pub(super) fn clustering(&self) -> Option<&[u8]> {
        (!self.is_static).then_some(&self.clustering)
    }

    /// The clustering, nothing for a static row.
    pub(super) fn decode_clustering(&self) -> Option<Clustering> {
        let copied = |value: Option<&[u8]>| value.map(Bytes::copy_from_slice);
        let values = ValuesOf::of(self.clustering()?).map(copied).collect();
        Some(Clustering::new(values))
    }
}

#[inline]
fn read_part(input: &mut Reader<'_>, last: &mut Last) -> Result<(), Damaged> {
    let head = input.u8()?;
    let mut shared = usize::from(head >> SHARED_SHIFT);
    if shared == SHARED_LONG {
        shared = usize::try_from(input.uvint()?).map_err(|_| Damaged)?;
    }
    if shared > last.len() {
        return Err(Damaged);
    }
    let rest = if head & SAME_LEN != 0 {
        last.len() - shared
    } else {
        input.uvint_len()?
    };
    let rest = input.take(rest)?;
    last.truncate(shared);
    last.extend_from_slice(rest);
    Ok(())
}
