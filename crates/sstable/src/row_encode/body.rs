//! The body of a row, encoded before its size can be written. Large values are not copied: a row of hundreds of MiB takes no
//! more memory than its values do.

use bytes::Bytes;
use ilion_codec::Writer;

/// Values from here on stay where they are.
pub(crate) const LARGE_VALUE_BYTES: usize = 4 << 10;

/// What follows the sizes.
#[derive(Debug, Default)]
pub(crate) struct EncodedBody {
    encoded: Writer,
    /// Large values, and before which of the encoded bytes they come.
    values: Vec<(usize, Bytes)>,
    values_length: u64,
    /// Encoded bytes before the first column.
    pub(super) columns_at: usize,
}

impl EncodedBody {
    #[inline]
    pub(super) fn clear(&mut self) {
        if !self.is_empty() {
            self.forget();
        }
        self.columns_at = 0;
    }

    fn forget(&mut self) {
        self.encoded.clear();
        self.values.clear();
        self.values_length = 0;
    }

    #[inline]
    pub(crate) fn len(&self) -> u64 {
        self.encoded.len() as u64 + self.values_length
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.encoded.is_empty() && self.values.is_empty()
    }

    /// To be appended to.
    #[inline]
    pub(super) fn encoded(&mut self) -> &mut Writer {
        &mut self.encoded
    }

    /// Appends a value.
    #[inline]
    pub(super) fn value(&mut self, value: &Bytes) {
        if value.len() < LARGE_VALUE_BYTES {
            self.encoded.bytes(value);
            return;
        }
        self.values.push((self.encoded.len(), value.clone()));
        self.values_length += value.len() as u64;
    }

    /// What stands before the columns.
    pub(crate) fn before_columns(&self) -> &[u8] {
        &self.encoded.as_slice()[..self.columns_at]
    }

    /// All of it, if it has no large value.
    #[inline]
    pub(crate) fn as_slice(&self) -> Option<&[u8]> {
        self.values.is_empty().then_some(self.encoded.as_slice())
    }

    /// All of it, piece by piece.
    pub(crate) fn pieces(&self) -> impl Iterator<Item = &[u8]> {
        let encoded = self.encoded.as_slice();
        let mut from = 0;
        let before = self.values.iter().flat_map(move |(at, value)| {
            let piece = &encoded[from..*at];
            from = *at;
            [piece, &value[..]]
        });
        let last = self.values.last().map_or(0, |(at, _)| *at);
        before.chain([&encoded[last..]])
    }

    /// Lets go of the large values.
    pub(crate) fn forget_values(&mut self) {
        self.values.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_stand_where_they_were_appended() {
        let (small, large) = (
            Bytes::from_static(b"small"),
            Bytes::from(vec![7; LARGE_VALUE_BYTES]),
        );
        let mut body = EncodedBody::default();
        body.encoded().u8(1);
        body.value(&small);
        assert_eq!(body.as_slice(), Some(&b"\x01small"[..]));
        body.value(&large);
        body.encoded().u8(2);
        body.value(&large);
        assert_eq!(body.as_slice(), None);
        let expected = [b"\x01small", &large[..], b"\x02", &large].concat();
        assert_eq!(body.len(), expected.len() as u64);
        assert_eq!(body.pieces().collect::<Vec<_>>().concat(), expected);
        body.clear();
        assert_eq!(body.pieces().collect::<Vec<_>>().concat(), b"");
    }
}
