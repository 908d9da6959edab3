//! The parts of a written unfiltered that indexes need.

use bytes::Bytes;
use ilion_rows::{BoundKind, Marker, Unfiltered, Values};

/// The clustering of an unfiltered that was written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Written<'a> {
    /// A row with these clustering values.
    Row(&'a Values),
    /// A row that is read in place, without building it, by its clustering values.
    Shown(&'a [Option<&'a [u8]>]),
    Marker(&'a Marker),
}

impl<'a> From<&'a Unfiltered> for Written<'a> {
    #[inline]
    fn from(unfiltered: &'a Unfiltered) -> Self {
        match unfiltered {
            Unfiltered::Row(row) => Self::Row(row.clustering.values()),
            Unfiltered::Marker(marker) => Self::Marker(marker),
        }
    }
}

impl Written<'_> {
    /// The kind of a marker's bound; `None` for a row.
    #[inline]
    pub(super) fn kind(self) -> Option<BoundKind> {
        match self {
            Self::Row(_) | Self::Shown(_) => None,
            Self::Marker(marker) => Some(marker.bound.kind),
        }
    }

    /// A copy of the clustering values.
    pub(super) fn to_values(self) -> Values {
        match self {
            Self::Row(values) => values.clone(),
            Self::Shown(values) => {
                let values = values.iter();
                values.map(|value| value.map(Bytes::copy_from_slice)).collect()
            }
            Self::Marker(marker) => marker.bound.values.clone(),
        }
    }
}
