//! Entries as bytes.
//!
//! ```text
//! record := token_len:u32  value_len:u32  key_code:u64  token  value  part *  state      little-endian
//! part   := (len + 1):u32  bytes                    of the clustering; null is 0
//! state  := [timestamp:i64  ttl:u32  expires:u32]  [marked_at:i64  local:u32]  flags:u8
//! flags  := 1: liveness, 2: deletion, 4: the first of these changes added the entry ([`Entry::is_first`])
//! ```
//! The head of a record is the first eight bytes of its token. Only this module makes records, so a record that is too short is a bug;
//! missing bytes are read as zeros. Not here: when records are sorted (`ilion_runs`).

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    Bound, Clustering, ClusteringComparator, DecoratedKey, DeletionTime, Entry, EntryPlace, EntryRow,
    KeyBound, Liveness, Row, Values,
};
use ilion_runs::{Order, Room, head_of};
use ilion_schema::TableSchema;
use ilion_types::{CqlType, Partitioner, Token};

const HEADER_BYTES: usize = 16;
const HEAD_BYTES: usize = 8;
const LIVENESS: u8 = 1;
const DELETION: u8 = 2;
const IS_FIRST: u8 = 4;
const LIVENESS_BYTES: usize = 16;
const DELETION_BYTES: usize = 12;

/// The order of entries: value, then clustering.
#[derive(Clone, Debug)]
pub(super) struct EntryOrder {
    table: Arc<TableSchema>,
    comparator: ClusteringComparator,
    /// The order of keys of the indexed table.
    partitioner: Partitioner,
    /// True if values with equal tokens have equal bytes.
    is_value_told: bool,
}

pub(super) fn bytes_of(token: &Token) -> &[u8] {
    match token {
        Token::Comparable(bytes) | Token::Bytes(bytes) => bytes,
        Token::Murmur3(_) | Token::Random(_) => &[],
    }
}

#[inline]
fn u32_at(record: &[u8], at: usize) -> usize {
    let bytes = record.get(at..at + 4).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes) as usize)
}

#[inline]
fn u64_at(record: &[u8], at: usize) -> u64 {
    let bytes = record.get(at..at + 8).and_then(|bytes| bytes.first_chunk());
    bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[inline]
pub(super) fn token_of(record: &[u8]) -> &[u8] {
    &record[HEADER_BYTES..HEADER_BYTES + u32_at(record, 0)]
}

#[inline]
fn parts_at(record: &[u8]) -> usize {
    HEADER_BYTES + u32_at(record, 0) + u32_at(record, 4)
}

#[inline]
pub(super) fn value_of(record: &[u8]) -> &[u8] {
    &record[HEADER_BYTES + u32_at(record, 0)..parts_at(record)]
}

fn flags_of(record: &[u8]) -> u8 {
    record.last().copied().unwrap_or(0)
}

/// True if the entry was added in this memtable, and removed.
pub(super) fn was_only_here(record: &[u8]) -> bool {
    flags_of(record) == DELETION | IS_FIRST
}

fn state_len(flags: u8) -> usize {
    let len = |flag, len| if flags & flag == 0 { 0 } else { len };
    1 + len(LIVENESS, LIVENESS_BYTES) + len(DELETION, DELETION_BYTES)
}

#[inline]
fn parts_of(record: &[u8]) -> &[u8] {
    &record[parts_at(record)..record.len() - state_len(flags_of(record))]
}

/// Iterates over the values of a clustering.
struct Parts<'r>(&'r [u8]);

impl<'r> Iterator for Parts<'r> {
    type Item = Option<&'r [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let len = u32_at(self.0, 0);
        let rest = &self.0[4..];
        let (part, rest) = rest.split_at(len.saturating_sub(1));
        self.0 = rest;
        Some((len > 0).then_some(part))
    }
}

fn number32(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

fn len32(len: usize) -> [u8; 4] {
    number32(len).to_le_bytes()
}

#[inline]
fn two_words(low: u64, high: u64) -> [u8; 16] {
    (u128::from(low) | u128::from(high) << 64).to_le_bytes()
}

/// True if two records are of one partition.
pub(super) fn is_same_value(a: &[u8], b: &[u8]) -> bool {
    token_of(a) == token_of(b) && value_of(a) == value_of(b)
}

/// True if the record's partition comes before the bound.
pub(super) fn is_before_bound(record: &[u8], bound: &KeyBound) -> bool {
    let compare_token = |token: &Token| bytes_of(token).cmp(token_of(record));
    let compare_key = |key: &DecoratedKey| {
        let values = || key.key[..].cmp(value_of(record));
        compare_token(&key.token).then_with(values)
    };
    bound.compare_by(compare_token, compare_key).is_gt()
}

/// The head of the records of a bound's token; the smallest or largest head for the ends of the ring.
pub(super) fn head_of_bound(bound: &KeyBound) -> u64 {
    match bound {
        KeyBound::Start => 0,
        KeyBound::End => u64::MAX,
        KeyBound::BeforeToken(token) | KeyBound::AfterToken(token) => head_of(bytes_of(token)),
        KeyBound::Before(key) | KeyBound::After(key) => head_of(bytes_of(&key.token)),
    }
}

pub(super) fn key_of(record: &[u8]) -> DecoratedKey {
    DecoratedKey {
        token: Token::Comparable(token_of(record).into()),
        key: Bytes::copy_from_slice(value_of(record)),
    }
}

/// The row of an entry.
pub(super) fn row_of(record: &[u8]) -> Row {
    let (liveness, deletion) = state_of(record);
    // One allocation for all values.
    let parts = Bytes::copy_from_slice(parts_of(record));
    let values: Values = Parts(&parts)
        .map(|part| part.map(|part| parts.slice_ref(part)))
        .collect();
    Row {
        liveness,
        deletion,
        ..Row::empty(Clustering::new(values))
    }
}

/// The entry of a record, without a copy.
#[inline]
pub(super) fn entry_of(record: &[u8]) -> EntryRow<'_> {
    let (liveness, deletion) = state_of(record);
    EntryRow {
        clustering: Parts(parts_of(record)).collect(),
        liveness,
        deletion,
    }
}

fn state_of(record: &[u8]) -> (Liveness, DeletionTime) {
    let flags = flags_of(record);
    let mut at = record.len() - state_len(flags);
    let (mut liveness, mut deletion) = (Liveness::NONE, DeletionTime::LIVE);
    let secs = |at| u32::try_from(u32_at(record, at)).unwrap_or(0);
    if flags & LIVENESS != 0 {
        liveness = Liveness {
            timestamp_micros: u64_at(record, at).cast_signed(),
            ttl_secs: secs(at + 8),
            expires_secs: secs(at + 12),
        };
        at += LIVENESS_BYTES;
    }
    if flags & DELETION != 0 {
        deletion = DeletionTime::new(u64_at(record, at).cast_signed(), secs(at + 8));
    }
    (liveness, deletion)
}

/// An encoded place: the bytes that all records of the place have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct EncodedPlace {
    pub(super) code: u64,
    pub(super) parts_len: usize,
}

impl EncodedPlace {
    /// Encodes a place; appends its parts to `out`.
    #[inline]
    pub(super) fn of(place: &EntryPlace<'_>, out: &mut Vec<u8>) -> Self {
        let start = out.len();
        for part in place.clustering {
            match part {
                None => out.extend_from_slice(&len32(0)),
                Some(part) => {
                    out.extend_from_slice(&len32(part.len() + 1));
                    out.extend_from_slice(part);
                }
            }
        }
        Self {
            code: place.key_token.code(),
            parts_len: out.len() - start,
        }
    }
}

/// A record to be written.
pub(super) struct NewRecord<'r> {
    pub(super) token: &'r [u8],
    /// `EncodedPlace::code` of the record's place.
    pub(super) code: u64,
    /// Encoded values of the clustering of the record's place.
    pub(super) parts: &'r [u8],
    pub(super) entry: &'r Entry<'r>,
}

impl NewRecord<'_> {
    #[inline]
    pub(super) fn len(&self) -> usize {
        let flags = flags_of_state(&self.entry.liveness, &self.entry.deletion);
        HEADER_BYTES + self.token.len() + self.entry.value.len() + self.parts.len() + state_len(flags)
    }

    #[inline]
    pub(super) fn write(&self, room: &mut Room<'_>) {
        let Entry {
            value,
            liveness,
            deletion,
            is_first,
        } = self.entry;
        let lens = u64::from(number32(self.token.len())) | u64::from(number32(value.len())) << 32;
        room.array(two_words(lens, self.code));
        room.bytes(self.token);
        room.bytes(value);
        room.bytes(self.parts);
        encode_state(liveness, deletion, *is_first, |bytes| room.bytes(bytes));
    }
}

#[inline]
fn flags_of_state(liveness: &Liveness, deletion: &DeletionTime) -> u8 {
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    flag(!liveness.is_none(), LIVENESS) | flag(!deletion.is_live(), DELETION)
}

/// Encodes a state. Calls `append` as seldom as possible, since this runs for each entry.
#[inline]
fn encode_state(liveness: &Liveness, deletion: &DeletionTime, is_first: bool, mut append: impl FnMut(&[u8])) {
    let state = flags_of_state(liveness, deletion);
    let flags = state | if is_first { IS_FIRST } else { 0 };
    let mut bytes = [flags; LIVENESS_BYTES + 1];
    if state & LIVENESS != 0 {
        let ends = u64::from(liveness.ttl_secs) | u64::from(liveness.expires_secs) << 32;
        let times = two_words(liveness.timestamp_micros.cast_unsigned(), ends);
        bytes[..LIVENESS_BYTES].copy_from_slice(&times);
        if state == LIVENESS {
            return append(&bytes);
        }
        append(&times);
    }
    if state & DELETION != 0 {
        bytes[..8].copy_from_slice(&deletion.marked_at_micros.to_le_bytes());
        bytes[8..DELETION_BYTES].copy_from_slice(&deletion.local_secs.to_le_bytes());
        bytes[DELETION_BYTES] = flags;
        return append(&bytes[..=DELETION_BYTES]);
    }
    append(&[flags]);
}

/// True if equal values of the type always have equal bytes.
fn is_told(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Timestamp
            | CqlType::Date
            | CqlType::Time
            | CqlType::Text
            | CqlType::Ascii
            | CqlType::Blob
    )
}

impl EntryOrder {
    /// The order of a table's entries; `None` if the table is not a hidden table of an index.
    pub(super) fn of(table: &Arc<TableSchema>) -> Option<Self> {
        let keys = &table.clustering().next()?.ty;
        Some(Self {
            table: table.clone(),
            comparator: ClusteringComparator::of(table),
            partitioner: keys.partitioner_of_keys()?,
            is_value_told: table
                .partition_key()
                .next()
                .is_some_and(|value| is_told(&value.ty)),
        })
    }

    /// True if the record's partition is not after that of another record.
    pub(super) fn is_not_after_value(&self, record: &[u8], other: &[u8]) -> bool {
        let values = token_of(record)
            .cmp(token_of(other))
            .then_with(|| value_of(record).cmp(value_of(other)));
        values.is_le()
    }

    pub(super) fn token_of_key(&self, key: &[u8]) -> Token {
        self.partitioner.token(key)
    }

    /// The partition key of an entry's row.
    pub(super) fn base_key_of(&self, record: &[u8]) -> DecoratedKey {
        let key = Parts(parts_of(record)).next().flatten().unwrap_or_default();
        DecoratedKey::new(self.partitioner, Bytes::copy_from_slice(key))
    }

    /// Orders two values of a column of the clustering. Requires: for the first column (`index` 0), the codes were equal.
    fn compare_values(&self, index: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (index, a, b) {
            // Equal codes mean equal tokens.
            (0, Some(a), Some(b)) if self.partitioner == Partitioner::Murmur3 => a.cmp(b),
            _ => self.comparator.compare_values(index, a, b),
        }
    }

    /// Orders a bound of clusterings and a record. Never returns `Equal`.
    pub(super) fn compare_bound(&self, bound: &Bound, record: &[u8]) -> Ordering {
        let mut parts = Parts(parts_of(record));
        for (index, wanted) in bound.values.iter().enumerate() {
            let (wanted, part) = (wanted.as_deref(), parts.next().flatten());
            let codes = match (index, wanted) {
                (0, Some(key)) => self.token_of_key(key).code().cmp(&u64_at(record, 8)),
                _ => Ordering::Equal,
            };
            let ordering = codes.then_with(|| self.compare_values(index, wanted, part));
            if ordering.is_ne() {
                return ordering;
            }
        }
        match bound.kind.is_before() {
            true => Ordering::Less,
            false => Ordering::Greater,
        }
    }
}

impl Order for EntryOrder {
    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let values = token_of(a)
            .cmp(token_of(b))
            .then_with(|| value_of(a).cmp(value_of(b)));
        let ordering = values.then_with(|| u64_at(a, 8).cmp(&u64_at(b, 8)));
        if ordering.is_ne() {
            return ordering;
        }
        let (a, b) = (parts_of(a), parts_of(b));
        if a == b {
            return Ordering::Equal;
        }
        for (index, (a, b)) in Parts(a).zip(Parts(b)).enumerate() {
            let ordering = self.compare_values(index, a, b);
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// Orders records with the same head: by the length of the token if the head contains all of it, then by the first bits of the
    /// code. Longer tokens come last.
    #[inline]
    fn second(&self, record: &[u8]) -> u64 {
        match u32_at(record, 0) {
            len if len <= HEAD_BYTES && self.is_value_told => (len as u64) << 60 | u64_at(record, 8) >> 4,
            _ => u64::MAX,
        }
    }

    fn is_removal(&self, record: &[u8]) -> bool {
        flags_of(record) & LIVENESS == 0
    }

    /// A flush decides by the SSTables whether an entry that was only here has to be written.
    const KEEPS_VOID: bool = true;

    /// Before an entry was added for the first time, it was not there, as after its removal.
    fn is_void(&self, record: &[u8]) -> bool {
        was_only_here(record)
    }

    fn merge(&self, older: &[u8], newer: &[u8], out: &mut Vec<u8>) {
        let row = |record| {
            let (liveness, deletion) = state_of(record);
            Row {
                liveness,
                deletion,
                ..Row::empty(Clustering::empty())
            }
        };
        let mut merged = row(older);
        merged.merge(row(newer), &self.table);
        out.extend_from_slice(&older[..older.len() - state_len(flags_of(older))]);
        let is_first = flags_of(older) & IS_FIRST != 0;
        encode_state(&merged.liveness, &merged.deletion, is_first, |bytes| {
            out.extend_from_slice(bytes);
        });
    }
}
