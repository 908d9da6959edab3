//! The searches of an index. Values are serialized by the type of the restricted column, element, key or value.

use bytes::Bytes;

/// An end of a range of values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The value.
    pub value: Bytes,
    /// True if the range includes the value.
    pub is_inclusive: bool,
}

/// One restriction on the indexed column.
#[derive(Clone, Debug, PartialEq)]
pub enum Predicate {
    /// `c = v`; for a frozen collection with `full()`.
    Equal(Bytes),
    /// `c IN (...)`.
    AnyOf(Vec<Bytes>),
    /// `c > v`, `c <= v` and so on, in the order of the type; at least one end is set.
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
    /// `c[k] > v` and so on: values of one key of a map.
    EntryRange {
        /// The key.
        key: Bytes,
        /// Lower end.
        from: Option<Limit>,
        /// Upper end.
        to: Option<Limit>,
    },
    /// `c : 'text'`: the value has every term that the index's analyzer makes of the text.
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
