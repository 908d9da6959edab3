//! Decodes clustering values, bounds, and the prefixes of indexes.
//!
//! ```text
//! values := batch*                      up to 32 values each
//! batch  := header:uvint value*         two bits per value: empty, null; a value follows only if neither is set
//! value  := bytes of the fixed length of the type | bytesV
//! bound  := kind:u8 count:u16 values    markers; fewer values than clustering columns are allowed
//! prefix := 4:u8 values | bound         in indexes
//! ```

use std::cmp::Ordering;

use bytes::Bytes;
use ilion_rows::{Bound, BoundKind, Clustering, ClusteringComparator, Values};

use crate::error::Step;
use crate::row::format::VALUES_PER_HEADER;
use crate::row::rest::Rest;
use crate::row::source::ByteSource;

/// The kind of a row's clustering (`ClusteringPrefix.Kind.CLUSTERING`).
const KIND_ROW: u8 = 4;

/// The first or last clustering or bound of a block of an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ClusteringPrefix {
    Row(Clustering),
    Bound(Bound),
}

impl ClusteringPrefix {
    /// Compares the prefix with a bound.
    pub(crate) fn compare(&self, bound: &Bound, comparator: &ClusteringComparator) -> Ordering {
        match self {
            Self::Row(clustering) => comparator.compare_bound_to_row(bound, clustering).reverse(),
            Self::Bound(own) => comparator.compare_bounds(own, bound),
        }
    }
}

/// Value lengths of the clustering columns.
#[derive(Clone, Debug)]
pub(crate) struct ClusteringFormat {
    /// Fixed length of each column's values; `None` if values are stored with their length.
    pub(in crate::row) fixed_lens: Box<[Option<usize>]>,
    /// Encoded length of a clustering in which no value is empty or null. `None` if it has several headers, or a value has no fixed
    /// length.
    whole_len: Option<usize>,
}

impl ClusteringFormat {
    pub(crate) fn new(fixed_lens: Box<[Option<usize>]>) -> Self {
        let has_one_header = (1..=VALUES_PER_HEADER).contains(&fixed_lens.len());
        let whole_len = fixed_lens.iter().copied().sum::<Option<usize>>();
        Self {
            whole_len: whole_len.filter(|_| has_one_header),
            fixed_lens,
        }
    }

    /// Decodes the clustering of a row.
    #[inline]
    pub(crate) fn clustering(&self, input: &mut impl ByteSource) -> Step<Clustering> {
        Ok(Clustering::new(self.values(input, self.fixed_lens.len())?))
    }

    /// Skips the values of a row's clustering in memory. `None` if they are incomplete or damaged.
    #[inline]
    pub(in crate::row) fn skip_at_hand(&self, rest: &mut Rest<'_>) -> Option<()> {
        match (self.whole_len, rest.0) {
            (Some(len), [0, ..]) => rest.take(1 + len).map(drop),
            _ => self.values_at_hand(rest, |_, _| {}),
        }
    }

    /// Decodes the values of a row's clustering from bytes in memory: passes each value, and the bytes behind it, to `each`.
    /// `None` if they are incomplete or damaged.
    #[inline]
    pub(in crate::row) fn values_at_hand<'w>(
        &self,
        rest: &mut Rest<'w>,
        mut each: impl FnMut(Option<&'w [u8]>, Rest<'w>),
    ) -> Option<()> {
        for batch in self.fixed_lens.chunks(VALUES_PER_HEADER) {
            let header = rest.uvint()?;
            for (index, fixed_len) in batch.iter().enumerate() {
                let value = match header >> (2 * index) & 3 {
                    0 => Some(rest.value(*fixed_len)?),
                    1 => Some(&[][..]),
                    2 => None,
                    _ => return None,
                };
                each(value, *rest);
            }
        }
        Some(())
    }

    #[inline]
    fn values(&self, input: &mut impl ByteSource, count: usize) -> Step<Values> {
        if count == 0 {
            return Ok(Values::new());
        }
        let mut values = Values::with_capacity(count);
        for batch in self.fixed_lens[..count].chunks(VALUES_PER_HEADER) {
            let header = input.uvint()?;
            for (index, fixed_len) in batch.iter().enumerate() {
                values.push(read_value(input, header >> (2 * index), *fixed_len)?);
            }
        }
        Ok(values)
    }

    /// Decodes the bound of a marker, whose kind was already read.
    pub(crate) fn bound_of(&self, kind: u8, input: &mut impl ByteSource) -> Step<Bound> {
        let Some(kind) = BoundKind::from_ordinal(kind) else {
            return Err(input.corrupt("the kind of a bound before it"));
        };
        let count = usize::from(u16::from_be_bytes(input.array()?));
        if count > self.fixed_lens.len() {
            return Err(input.corrupt("at most as many values as clustering columns before it"));
        }
        Ok(Bound::new(kind, self.values(input, count)?))
    }

    /// Decodes a prefix in an index.
    pub(crate) fn prefix(&self, input: &mut impl ByteSource) -> Step<ClusteringPrefix> {
        match input.u8()? {
            KIND_ROW => Ok(ClusteringPrefix::Row(self.clustering(input)?)),
            kind => Ok(ClusteringPrefix::Bound(self.bound_of(kind, input)?)),
        }
    }
}

#[inline]
fn read_value(input: &mut impl ByteSource, bits: u64, fixed_len: Option<usize>) -> Step<Option<Bytes>> {
    match (bits & 3, fixed_len) {
        (0, Some(len)) => input.take(len).map(Some),
        (0, None) => input.bytes_vint().map(Some),
        (1, _) => Ok(Some(Bytes::new())),
        (2, _) => Ok(None),
        _ => Err(input.corrupt("clustering values that are either empty or null")),
    }
}
