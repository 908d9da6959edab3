//! Clusterings, bounds, and the order of both.
//!
//! Order (`org.apache.cassandra.db.ClusteringComparator`): values are compared one by one. Null comes first; other values
//! compare by the column's type, in reverse for DESC columns. If one prefix is shorter and all its values are equal, the kind
//! of the shorter prefix decides: a "before" kind sorts before everything with that prefix, an "after" kind after it.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{CqlType, Partitioner};
use smallvec::SmallVec;

/// Values of leading clustering columns; a value is null only in old compact tables.
pub type Values = SmallVec<[Option<Bytes>; 1]>;

/// The full clustering of a row; empty for tables without clustering columns and for static rows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Clustering(Values);

impl Clustering {
    /// The clustering of a static row, or of a row in a table without clustering columns.
    pub fn empty() -> Self {
        Self::default()
    }

    /// A clustering of these values, in clustering order.
    pub fn new(values: Values) -> Self {
        Self(values)
    }

    /// A clustering of non-null values, in clustering order.
    pub fn of(values: impl IntoIterator<Item = Bytes>) -> Self {
        Self(values.into_iter().map(Some).collect())
    }

    /// The values, in the order of the clustering columns.
    #[inline]
    pub fn values(&self) -> &Values {
        &self.0
    }

    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Kinds of range ends, with the ordinals of the file format (`ClusteringPrefix.Kind`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BoundKind {
    /// `)`: an end that excludes the prefix.
    ExclEnd = 0,
    /// `[`: a start that includes the prefix.
    InclStart = 1,
    /// `)[`: ends one range before the prefix and starts the next with it.
    ExclEndInclStart = 2,
    /// `](`: ends one range with the prefix and starts the next behind it.
    InclEndExclStart = 5,
    /// `]`: an end that includes the prefix.
    InclEnd = 6,
    /// `(`: a start that excludes the prefix.
    ExclStart = 7,
}

impl BoundKind {
    /// The kind with this ordinal of the file format.
    pub fn from_ordinal(ordinal: u8) -> Option<Self> {
        Some(match ordinal {
            0 => Self::ExclEnd,
            1 => Self::InclStart,
            2 => Self::ExclEndInclStart,
            5 => Self::InclEndExclStart,
            6 => Self::InclEnd,
            7 => Self::ExclStart,
            _ => return None,
        })
    }

    /// True if a bound of this kind sorts before rows that have its prefix.
    #[inline]
    pub fn is_before(self) -> bool {
        (self as u8) < 3
    }

    /// True for a start that is not a boundary.
    pub fn is_start(self) -> bool {
        matches!(self, Self::InclStart | Self::ExclStart)
    }

    /// True for an end that is not a boundary.
    pub fn is_end(self) -> bool {
        matches!(self, Self::InclEnd | Self::ExclEnd)
    }

    /// The kind at the same position that faces the other way: `)` for `[`, `(` for `]`, and back. A boundary stays as it is.
    #[must_use]
    pub fn invert(self) -> Self {
        match self {
            Self::ExclEnd => Self::InclStart,
            Self::InclStart => Self::ExclEnd,
            Self::InclEnd => Self::ExclStart,
            Self::ExclStart => Self::InclEnd,
            boundary => boundary,
        }
    }

    /// True for an end and a start in one.
    pub fn is_boundary(self) -> bool {
        matches!(self, Self::ExclEndInclStart | Self::InclEndExclStart)
    }

    /// The end kind of a boundary; other kinds stay as they are.
    pub fn closing_side(self) -> Self {
        match self {
            Self::ExclEndInclStart => Self::ExclEnd,
            Self::InclEndExclStart => Self::InclEnd,
            other => other,
        }
    }

    /// The start kind of a boundary; other kinds stay as they are.
    pub fn opening_side(self) -> Self {
        match self {
            Self::ExclEndInclStart => Self::InclStart,
            Self::InclEndExclStart => Self::ExclStart,
            other => other,
        }
    }
}

/// An end of a range of clusterings.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Bound {
    /// Start, end or boundary, and whether the prefix itself is included.
    pub kind: BoundKind,
    /// Values of the leading clustering columns; may be fewer than the columns, or empty.
    pub values: Values,
}

impl Bound {
    /// A bound at a prefix.
    pub fn new(kind: BoundKind, values: Values) -> Self {
        Self { kind, values }
    }

    /// The same position, with the kind inverted (see [`BoundKind::invert`]).
    #[must_use]
    pub fn invert(&self) -> Self {
        Self::new(self.kind.invert(), self.values.clone())
    }

    /// The same position as the start of a range.
    #[must_use]
    pub fn as_start(&self) -> Self {
        let kind = match self.kind.is_end() {
            true => self.kind.invert(),
            false => self.kind.opening_side(),
        };
        Self::new(kind, self.values.clone())
    }

    /// The same position as the end of a range.
    #[must_use]
    pub fn as_end(&self) -> Self {
        let kind = match self.kind.is_start() {
            true => self.kind.invert(),
            false => self.kind.closing_side(),
        };
        Self::new(kind, self.values.clone())
    }

    /// The start before all rows.
    pub fn bottom() -> Self {
        Self {
            kind: BoundKind::InclStart,
            values: Values::new(),
        }
    }

    /// The end after all rows.
    pub fn top() -> Self {
        Self {
            kind: BoundKind::InclEnd,
            values: Values::new(),
        }
    }
}

/// The clustering order of one table. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClusteringComparator {
    columns: Arc<[ColumnOrder]>,
}

/// The order of one column's values.
#[derive(Debug)]
struct ColumnOrder {
    ty: CqlType,
    order: ClusteringOrder,
    /// If the values are partition keys: the partitioner. They compare by its tokens.
    partitioner: Option<Partitioner>,
}

impl ColumnOrder {
    fn of(ty: CqlType, order: ClusteringOrder) -> Self {
        Self {
            partitioner: ty.partitioner_of_keys(),
            ty,
            order,
        }
    }

    #[inline]
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        match self.partitioner {
            None => self.ty.compare(a, b),
            Some(partitioner) => compare_keys(partitioner, a, b),
        }
    }
}

#[inline(never)]
fn compare_keys(partitioner: Partitioner, a: &[u8], b: &[u8]) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let tokens = (partitioner.token(a), partitioner.token(b));
    tokens.0.cmp(&tokens.1).then_with(|| a.cmp(b))
}

impl ClusteringComparator {
    /// The comparator of a table.
    pub fn of(table: &TableSchema) -> Self {
        Self {
            columns: table
                .clustering()
                .map(|column| ColumnOrder::of(column.ty.clone(), column.order))
                .collect(),
        }
    }

    /// A comparator for these types and directions (from SSTable headers).
    pub fn new(columns: impl IntoIterator<Item = (CqlType, ClusteringOrder)>) -> Self {
        let columns = columns.into_iter();
        Self {
            columns: columns.map(|(ty, order)| ColumnOrder::of(ty, order)).collect(),
        }
    }

    /// The number of clustering columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// True for a table without clustering columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Type of clustering column `index`.
    pub fn ty(&self, index: usize) -> Option<&CqlType> {
        self.columns.get(index).map(|column| &column.ty)
    }

    /// Orders two values of one column.
    #[inline]
    pub fn compare_values(&self, index: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        let Some(column) = self.columns.get(index) else {
            return Ordering::Equal;
        };
        match (a, b) {
            (Some(a), Some(b)) if column.order == ClusteringOrder::Desc => column.compare(a, b).reverse(),
            (Some(a), Some(b)) => column.compare(a, b),
            (None, None) => Ordering::Equal,
            // Compat: null is first in a DESC column, too (`ClusteringComparator.compareComponent`).
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
        }
    }

    #[inline]
    fn compare_common(&self, a: &Values, b: &Values) -> Ordering {
        self.compare_leading(a.iter().map(Option::as_deref), b.iter().map(Option::as_deref))
    }

    /// Compares only the leading values that both rows or bounds have; returns `Equal` if one is a prefix of the other.
    #[inline]
    pub fn compare_leading<'a, 'b>(
        &self,
        mut a: impl Iterator<Item = Option<&'a [u8]>>,
        b: impl Iterator<Item = Option<&'b [u8]>>,
    ) -> Ordering {
        for (index, b) in b.enumerate() {
            let Some(a) = a.next() else {
                break;
            };
            let ordering = self.compare_values(index, a, b);
            if ordering != Ordering::Equal {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// Orders two rows.
    #[inline]
    pub fn compare(&self, a: &Clustering, b: &Clustering) -> Ordering {
        self.compare_common(&a.0, &b.0)
    }

    /// Orders a bound and a row. Never returns `Equal`.
    pub fn compare_bound_to_row(&self, bound: &Bound, row: &Clustering) -> Ordering {
        let common = self.compare_common(&bound.values, &row.0);
        if common != Ordering::Equal {
            return common;
        }
        if bound.kind.is_before() {
            Ordering::Less
        } else {
            Ordering::Greater
        }
    }

    /// As [`Self::compare_bound_to_row`], for a row given by its values. Never returns `Equal`.
    pub fn compare_bound_to_values(&self, bound: &Bound, values: &[Option<&[u8]>]) -> Ordering {
        let bound_values = bound.values.iter().map(Option::as_deref);
        match self.compare_leading(values.iter().copied(), bound_values) {
            Ordering::Equal if bound.kind.is_before() => Ordering::Less,
            Ordering::Equal => Ordering::Greater,
            common => common.reverse(),
        }
    }

    /// The bound that comes first; `None` counts as behind all bounds.
    pub fn lesser<'b>(&self, a: Option<&'b Bound>, b: Option<&'b Bound>) -> Option<&'b Bound> {
        match (a, b) {
            (Some(bound), Some(other)) if self.compare_bounds(other, bound).is_lt() => Some(other),
            (a, b) => a.or(b),
        }
    }

    /// Orders two bounds. `Equal` means the same position; the kinds may still differ in which ranges they open or close there.
    pub fn compare_bounds(&self, a: &Bound, b: &Bound) -> Ordering {
        let common = self.compare_common(&a.values, &b.values);
        if common != Ordering::Equal {
            return common;
        }
        let side = |bound: &Bound| {
            if bound.kind.is_before() {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        };
        match a.values.len().cmp(&b.values.len()) {
            Ordering::Less => side(a),
            Ordering::Greater => side(b).reverse(),
            Ordering::Equal => a.kind.is_before().cmp(&b.kind.is_before()).reverse(),
        }
    }

    /// True if values of the first column are partition keys, ordered by their Murmur3 tokens.
    pub(crate) fn begins_with_murmur3_keys(&self) -> bool {
        self.columns.first().is_some_and(|first| {
            first.partitioner == Some(Partitioner::Murmur3) && first.order == ClusteringOrder::Asc
        })
    }
}
