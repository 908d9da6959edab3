//! An entry of a memtable's index: a term and the place of a row, encoded so that entries compare without decoding.
//!
//! ```text
//! record     := token:u64  term_len:u32  order_len:u32  key_len:u32  rest of the term  order  key  clustering  state:u8
//! state      := 1: the row has the term; 2: the first of these changes added it
//! clustering := (len + 1:uvint  bytes) *              null is 0
//! ```
//! Numbers are little-endian. The head of a record is the first eight bytes of its term. The clustering is stored twice: in a form
//! whose bytes have the order of clusterings (`order`), and in a form that can be decoded. Records that differ only in their state are
//! merged: the newer one says whether the row has the term.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{Clustering, ClusteringComparator, DecoratedKey};
use ilion_runs::{Order, Record, head_of};
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{CqlType, Partitioner, STATIC_CLUSTERING};

use crate::clustering_bytes::{decode_clustering, encode_clustering};
use crate::{Place, RowPart};

const TERM_HEAD_LEN: usize = 8;
const IS_THERE: u8 = 1;
const IS_FIRST: u8 = 2;
/// Length of the token and the three length fields.
const HEADER: usize = 20;

/// The order of entries: by term, then by place.
#[derive(Clone, Copy, Debug)]
pub(super) struct TermOrder;

impl Order for TermOrder {
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = (Entry { head: 0, bytes: a }, Entry { head: 0, bytes: b });
        a.compare_tails(&b).then_with(|| a.compare_places(&b))
    }

    /// The length of a term that fits the head, then the leading bits of the token; longer terms come last.
    #[inline]
    fn second(&self, record: &[u8]) -> u64 {
        let entry = Entry {
            head: 0,
            bytes: record,
        };
        match entry.term_len() {
            len if len <= TERM_HEAD_LEN => (len as u64) << 60 | entry.token() >> 4,
            _ => u64::MAX,
        }
    }

    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>) {
        let state = state_of(older) & IS_FIRST | state_of(newer) & IS_THERE;
        out.extend_from_slice(&newer[..newer.len() - 1]);
        out.push(state);
    }

    fn is_removal(&self, record: &[u8]) -> bool {
        state_of(record) & IS_THERE == 0
    }

    /// A row does not get a term that it has. So before the first of these changes, it did not have the term, as after the last.
    fn is_void(&self, record: &[u8]) -> bool {
        state_of(record) == IS_FIRST
    }
}

fn state_of(record: &[u8]) -> u8 {
    record.last().copied().unwrap_or(0)
}

/// A term and a place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry<'r> {
    head: u64,
    bytes: &'r [u8],
}

impl<'r> From<Record<'r>> for Entry<'r> {
    fn from(record: Record<'r>) -> Self {
        Self {
            head: record.head,
            bytes: record.bytes,
        }
    }
}

impl<'r> Entry<'r> {
    /// The first bytes of its term.
    pub(super) fn head(&self) -> u64 {
        self.head
    }

    #[inline]
    fn len_at(&self, at: usize) -> usize {
        let bytes = self.bytes.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
        bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
    }

    #[inline]
    fn token(&self) -> u64 {
        self.bytes
            .first_chunk()
            .map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    fn term_len(&self) -> usize {
        self.len_at(8)
    }

    #[inline]
    fn order_at(&self) -> usize {
        HEADER + self.term_len().saturating_sub(TERM_HEAD_LEN)
    }

    #[inline]
    fn tail(&self) -> &'r [u8] {
        &self.bytes[HEADER..self.order_at()]
    }

    #[inline]
    fn key_at(&self) -> usize {
        self.order_at() + self.len_at(12)
    }

    #[inline]
    fn order(&self) -> &'r [u8] {
        &self.bytes[self.order_at()..self.key_at()]
    }

    #[inline]
    fn key(&self) -> &'r [u8] {
        let at = self.key_at();
        &self.bytes[at..at + self.len_at(16)]
    }

    fn clustering(&self) -> &'r [u8] {
        &self.bytes[self.key_at() + self.len_at(16)..self.bytes.len() - 1]
    }

    /// False if the row no longer has the term.
    pub(super) fn is_there(&self) -> bool {
        state_of(self.bytes) & IS_THERE != 0
    }

    /// Orders two entries with equal heads.
    #[inline]
    fn compare_tails(&self, other: &Entry<'_>) -> Ordering {
        let lens = (self.term_len(), other.term_len());
        if lens.0 <= TERM_HEAD_LEN && lens.1 <= TERM_HEAD_LEN {
            // The heads of short terms are padded with zeros, so equal heads may have different lengths.
            return lens.0.cmp(&lens.1);
        }
        self.tail().cmp(other.tail()).then_with(|| lens.0.cmp(&lens.1))
    }

    /// Orders two entries by their places only.
    #[inline]
    pub(super) fn compare_places(&self, other: &Entry<'_>) -> Ordering {
        self.token()
            .cmp(&other.token())
            .then_with(|| self.key().cmp(other.key()))
            .then_with(|| self.order().cmp(other.order()))
    }

    /// Orders two entries.
    #[inline]
    pub(super) fn compare(&self, other: &Entry<'_>) -> Ordering {
        let heads = self.head.cmp(&other.head);
        heads.then_with(|| TermOrder.compare(self.bytes, other.bytes))
    }

    /// Its place.
    pub(super) fn place(&self, partitioner: Partitioner) -> Place {
        let key = DecoratedKey::new(partitioner, Bytes::copy_from_slice(self.key()));
        let row = if self.order() == [STATIC_CLUSTERING] {
            RowPart::Static
        } else {
            RowPart::Row(decode_clustering(self.clustering()))
        };
        Place { key, row }
    }

    /// A copy that owns its bytes.
    pub(super) fn to_kept(self) -> KeptEntry {
        KeptEntry {
            head: self.head,
            bytes: self.bytes.into(),
        }
    }
}

/// An entry that owns its bytes.
#[derive(Clone, Debug)]
pub(super) struct KeptEntry {
    head: u64,
    bytes: Box<[u8]>,
}

impl KeptEntry {
    pub(super) fn as_entry(&self) -> Entry<'_> {
        Entry {
            head: self.head,
            bytes: &self.bytes,
        }
    }
}

/// An entry, ordered by its place.
#[derive(Clone, Debug)]
pub(super) struct ByPlace(pub(super) KeptEntry);

impl Ord for ByPlace {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.as_entry().compare_places(&other.0.as_entry())
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

/// The header of all entries of a row, without the length of their terms.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlaceHeader {
    /// The token, and the length of `order` in the highest 32 bits.
    words: u128,
    key_len: u32,
}

impl PlaceHeader {
    /// The length of an entry.
    #[inline]
    pub(super) fn entry_len(term: &[u8], place: &[u8]) -> usize {
        HEADER + term.len().saturating_sub(TERM_HEAD_LEN) + place.len() + 1
    }

    /// Appends the entry of a term; `place` is the encoded place that belongs to this header.
    #[inline]
    pub(super) fn encode(self, term: &[u8], place: &[u8], is_there: bool, mut append: impl FnMut(&[u8])) {
        let words = self.words | u128::from(number32(term.len())) << 64;
        append(&words.to_le_bytes());
        append(&self.key_len.to_le_bytes());
        if let Some(tail) = term.get(TERM_HEAD_LEN..) {
            append(tail);
        }
        append(place);
        append(&[if is_there { IS_THERE | IS_FIRST } else { 0 }]);
    }
}

/// Encodes the entries of a table.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Types of the clustering columns, and whether they are DESC.
    clusterings: Vec<(CqlType, bool)>,
    pub(super) comparator: ClusteringComparator,
}

impl Layout {
    pub(super) fn of(table: &Arc<TableSchema>) -> Self {
        let columns = table
            .clustering()
            .map(|column| (column.ty.clone(), column.order == ClusteringOrder::Desc));
        Self {
            clusterings: columns.collect(),
            comparator: ClusteringComparator::of(table),
        }
    }

    /// True if the table has clustering columns: then a row without a clustering is static.
    pub(super) fn has_clusterings(&self) -> bool {
        !self.clusterings.is_empty()
    }

    /// Appends the place of a row, which all its entries share; `row` is `None` for the static row.
    #[inline]
    pub(super) fn encode_place(
        &self,
        key: &DecoratedKey,
        row: Option<&Clustering>,
        out: &mut Vec<u8>,
    ) -> PlaceHeader {
        let start = out.len();
        match row {
            None => out.push(STATIC_CLUSTERING),
            Some(row) if self.has_clusterings() => self.encode_order(row, out),
            Some(_) => {}
        }
        let order_len = out.len() - start;
        out.extend_from_slice(&key.key);
        if let Some(row) = row {
            encode_clustering(row, out);
        }
        PlaceHeader {
            words: u128::from(key.token.code()) | u128::from(number32(order_len)) << 96,
            key_len: number32(key.key.len()),
        }
    }

    /// The position just before all entries of a term.
    pub(super) fn before_term(term: &[u8]) -> KeptEntry {
        let mut bytes = vec![0; 8];
        bytes.extend_from_slice(&number32(term.len()).to_le_bytes());
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(term.get(TERM_HEAD_LEN..).unwrap_or_default());
        bytes.push(0);
        KeptEntry {
            head: head_of(term),
            bytes: bytes.into(),
        }
    }

    /// The entry of a term at a place, for comparisons.
    pub(super) fn at(&self, term: &[u8], place: &Place) -> KeptEntry {
        let only = Clustering::default();
        let row = match &place.row {
            // The start of a partition. Without clustering columns there is no static row: this is the place of the only row.
            RowPart::Static if !self.has_clusterings() => Some(&only),
            RowPart::Static => None,
            RowPart::Row(clustering) => Some(clustering),
        };
        let (mut encoded, mut bytes) = (Vec::new(), Vec::new());
        let header = self.encode_place(&place.key, row, &mut encoded);
        header.encode(term, &encoded, true, |part| bytes.extend_from_slice(part));
        KeptEntry {
            head: head_of(term),
            bytes: bytes.into(),
        }
    }

    #[inline]
    fn encode_order(&self, row: &Clustering, out: &mut Vec<u8>) {
        for ((ty, is_reversed), value) in self.clusterings.iter().zip(row.values()) {
            let value = value.as_deref();
            let canonical = value.and_then(|value| not_a_number(ty, value));
            ty.encode_comparable_component(canonical.as_deref().or(value), *is_reversed, out);
        }
    }
}

/// CQL treats all NaN values as equal, but they have different bytes.
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

fn number32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
