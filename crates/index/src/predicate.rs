//! What an index can be asked. Values are serialized by the type that the predicate speaks of.

use bytes::Bytes;

/// An end of a range of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The value.
    pub value: Bytes,
    /// The value itself belongs to the range.
    pub is_inclusive: bool,
}

/// One restriction on the indexed column.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `c = v`; of a frozen collection under `full()`.
    Equal(Bytes),
    /// `c IN (...)`: any of them.
    AnyOf(Vec<Bytes>),
    /// `c > v`, `c <= v`, ..., in the order of the type; at least one end.
    Range {
        /// Lower end.
        from: Option<Limit>,
        /// Upper end.
        to: Option<Limit>,
    },
    /// `c CONTAINS v`.
    Contains(Bytes),
    /// `c CONTAINS KEY k`.
    ContainsKey(Bytes),
    /// `c[k] = v`.
    Entry(Bytes, Bytes),
    /// `c[k] > v`, ...: values of one key of a map.
    EntryRange {
        /// The key.
        key: Bytes,
        /// Lower end.
        from: Option<Limit>,
        /// Upper end.
        to: Option<Limit>,
    },
    /// `c : 'text'`: every term that the index's analyzer makes of the text.
    Matches(Bytes),
    /// `c LIKE 'abc%'`.
    LikePrefix(Bytes),
    /// `c LIKE '%abc'`.
    LikeSuffix(Bytes),
    /// `c LIKE '%abc%'`.
    LikeContains(Bytes),
    /// `c LIKE 'abc'`.
    LikeEqual(Bytes),
}
