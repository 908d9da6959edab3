//! Entries of a memtable's index: a term and a place, in order of both.
//!
//! An entry is the term's first bytes, the token, and one allocation with the rest; a clustering is there twice, as bytes in
//! its order and as it is:
//!
//! ```text
//! rest       := term_len:u32  order_len:u32  key_len:u32  rest of the term  order  key  clustering
//! clustering := (len + 1:uvint  bytes) *              null is 0
//! ```

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_rows::{Clustering, DecoratedKey};
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{CqlType, Partitioner, STATIC_CLUSTERING};

use super::sorter::head_of;
use crate::row_numbers::code_of;
use crate::{Place, RowPart};

const TERM_HEAD_LEN: usize = 8;
const LENS: usize = 12;

/// A term and a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    head: u64,
    token: u64,
    rest: Box<[u8]>,
}

impl Entry {
    #[inline]
    fn len_at(&self, at: usize) -> usize {
        let bytes = self.rest.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    /// Bytes of its own.
    pub(super) fn rest_len(&self) -> usize {
        self.rest.len()
    }

    #[inline]
    fn term_len(&self) -> usize {
        self.len_at(0)
    }

    #[inline]
    fn order_at(&self) -> usize {
        LENS + self.term_len().saturating_sub(TERM_HEAD_LEN)
    }

    #[inline]
    fn tail(&self) -> &[u8] {
        &self.rest[LENS..self.order_at()]
    }

    #[inline]
    fn key_at(&self) -> usize {
        self.order_at() + self.len_at(4)
    }

    #[inline]
    fn order(&self) -> &[u8] {
        &self.rest[self.order_at()..self.key_at()]
    }

    #[inline]
    fn key(&self) -> &[u8] {
        let at = self.key_at();
        &self.rest[at..at + self.len_at(8)]
    }

    fn clustering(&self) -> &[u8] {
        &self.rest[self.key_at() + self.len_at(8)..]
    }

    /// Orders two entries by what follows the heads of their terms.
    #[inline]
    fn compare_tails(&self, other: &Self) -> Ordering {
        let lens = (self.term_len(), other.term_len());
        if lens.0 <= TERM_HEAD_LEN && lens.1 <= TERM_HEAD_LEN {
            // Heads of short terms have zeros in place of nothing.
            return lens.0.cmp(&lens.1);
        }
        self.tail().cmp(other.tail()).then_with(|| lens.0.cmp(&lens.1))
    }

    /// Orders two entries by their places alone.
    #[inline]
    pub(super) fn compare_places(&self, other: &Self) -> Ordering {
        self.token
            .cmp(&other.token)
            .then_with(|| self.key().cmp(other.key()))
            .then_with(|| self.order().cmp(other.order()))
    }

    /// Where it is.
    pub(super) fn place(&self, partitioner: Partitioner) -> Place {
        let key = DecoratedKey::new(partitioner, Bytes::copy_from_slice(self.key()));
        let row = if self.order() == [STATIC_CLUSTERING] {
            RowPart::Static
        } else {
            RowPart::Row(decode_clustering(self.clustering()))
        };
        Place { key, row }
    }
}

impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        self.head
            .cmp(&other.head)
            .then_with(|| self.compare_tails(other))
            .then_with(|| self.compare_places(other))
    }
}

impl PartialOrd for Entry {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// An entry in the order of places.
#[derive(Clone, Debug)]
pub(super) struct ByPlace(pub(super) Entry);

impl Ord for ByPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.compare_places(&other.0)
    }
}

impl PartialOrd for ByPlace {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByPlace {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ByPlace {}

/// Makes the entries of a table.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Types of clustering columns, and whether they are DESC.
    clusterings: Vec<(CqlType, bool)>,
}

impl Layout {
    pub(super) fn of(table: &TableSchema) -> Self {
        let columns = table
            .clustering()
            .map(|column| (column.ty.clone(), column.order == ClusteringOrder::Desc));
        Self {
            clusterings: columns.collect(),
        }
    }

    /// True if a row without a clustering is a static one.
    pub(super) fn has_clusterings(&self) -> bool {
        !self.clusterings.is_empty()
    }

    /// The entry of a term and a row; nothing for the clustering: the static row. `scratch` is memory to use.
    #[inline]
    pub(super) fn entry(
        &self,
        term: &[u8],
        key: &DecoratedKey,
        row: Option<&Clustering>,
        scratch: &mut Vec<u8>,
    ) -> Entry {
        let term_tail = term.get(TERM_HEAD_LEN..).unwrap_or_default();
        scratch.clear();
        match row {
            None => scratch.push(STATIC_CLUSTERING),
            Some(row) => self.encode_order(row, scratch),
        }
        let order_len = scratch.len();
        if let Some(row) = row {
            encode_clustering(row, scratch);
        }
        let mut lens = [0; LENS];
        lens[..4].copy_from_slice(&len32(term.len()));
        lens[4..8].copy_from_slice(&len32(order_len));
        lens[8..].copy_from_slice(&len32(key.key.len()));
        let (order, clustering) = scratch.split_at(order_len);
        let len = LENS + term_tail.len() + scratch.len() + key.key.len();
        let mut rest = Vec::with_capacity(len);
        rest.extend_from_slice(&lens);
        rest.extend_from_slice(term_tail);
        rest.extend_from_slice(order);
        rest.extend_from_slice(&key.key);
        rest.extend_from_slice(clustering);
        Entry {
            head: head_of(term),
            token: code_of(&key.token),
            rest: rest.into_boxed_slice(),
        }
    }

    /// Just before every entry of a term.
    pub(super) fn before_term(term: &[u8]) -> Entry {
        let mut rest = len32(term.len()).to_vec();
        rest.extend_from_slice(&[0; LENS - 4]);
        rest.extend_from_slice(term.get(TERM_HEAD_LEN..).unwrap_or_default());
        Entry {
            head: head_of(term),
            token: 0,
            rest: rest.into(),
        }
    }

    /// The entry of a term at a place, whether it is there or not.
    pub(super) fn at(&self, term: &[u8], place: &Place) -> Entry {
        let row = match &place.row {
            RowPart::Static => None,
            RowPart::Row(clustering) => Some(clustering),
        };
        self.entry(term, &place.key, row, &mut Vec::new())
    }

    fn encode_order(&self, row: &Clustering, out: &mut Vec<u8>) {
        for ((ty, is_reversed), value) in self.clusterings.iter().zip(row.values()) {
            let value = value.as_deref();
            let canonical = value.and_then(|value| not_a_number(ty, value));
            ty.encode_comparable_component(canonical.as_deref().or(value), *is_reversed, out);
        }
    }
}

/// Every NaN is the same to CQL, and has many bytes.
fn not_a_number(ty: &CqlType, value: &[u8]) -> Option<Vec<u8>> {
    match ty {
        CqlType::Float => {
            let number = f32::from_be_bytes(*value.first_chunk()?);
            number.is_nan().then(|| f32::NAN.to_be_bytes().to_vec())
        }
        CqlType::Double => {
            let number = f64::from_be_bytes(*value.first_chunk()?);
            number.is_nan().then(|| f64::NAN.to_be_bytes().to_vec())
        }
        _ => None,
    }
}

fn len32(len: usize) -> [u8; 4] {
    u32::try_from(len).unwrap_or(u32::MAX).to_le_bytes()
}

fn encode_clustering(row: &Clustering, out: &mut Vec<u8>) {
    if row.is_empty() {
        return;
    }
    let mut writer = Writer::from_vec(std::mem::take(out));
    for value in row.values() {
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

fn decode_clustering(bytes: &[u8]) -> Clustering {
    let mut input = Reader::new(bytes);
    let mut next = || {
        let len = input.uvint().ok().and_then(|len| usize::try_from(len).ok())?;
        match len.checked_sub(1) {
            None => Some(None),
            Some(len) => input
                .take(len)
                .ok()
                .map(|value| Some(Bytes::copy_from_slice(value))),
        }
    };
    Clustering::new(std::iter::from_fn(&mut next).collect())
}
