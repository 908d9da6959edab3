//! The body of a row, encoded before its size is known. Large values are not copied: a row of hundreds of MiB needs no memory
//! beyond that of its values.

use bytes::Bytes;
use ilion_codec::{Append, Filling, Writer};

/// Values of at least this length are not copied.
pub(crate) const LARGE_VALUE_BYTES: usize = 4 << 10;

/// The part of a row behind its sizes.
#[derive(Debug, Default)]
pub(crate) struct EncodedBody {
    encoded: Writer,
    /// Large values, with the number of encoded bytes before each.
    values: Vec<(usize, Bytes)>,
    values_length: u64,
    /// Number of encoded bytes before the first column.
    columns_at: usize,
}

/// Receives the bytes of a row's body.
pub(super) trait BodySink: Append {
    /// Called before the first column.
    #[inline(always)]
    fn begin_columns(&mut self) {}

    /// Appends a value, or shares it if it has its own memory.
    #[inline(always)]
    fn value(&mut self, value: &[u8], _shared: Option<&Bytes>) {
        self.bytes(value);
    }
}

/// A body that is written in place, behind the space reserved for its size.
impl BodySink for Filling<'_> {}

impl BodySink for EncodedBody {
    fn begin_columns(&mut self) {
        self.columns_at = self.encoded.len();
    }

    #[inline]
    fn value(&mut self, value: &[u8], shared: Option<&Bytes>) {
        match (value.len() < LARGE_VALUE_BYTES, shared) {
            (true, _) => self.encoded.bytes(value),
            (false, Some(shared)) => self.push_large(shared.clone()),
            (false, None) => self.push_large(Bytes::copy_from_slice(value)),
        }
    }
}

impl Append for EncodedBody {
    #[inline]
    fn array<const N: usize>(&mut self, bytes: [u8; N]) {
        self.encoded.bytes(&bytes);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.encoded.bytes(bytes);
    }

    #[inline]
    fn uvint(&mut self, value: u64) {
        self.encoded.uvint(value);
    }
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

    fn push_large(&mut self, value: Bytes) {
        self.values_length += value.len() as u64;
        self.values.push((self.encoded.len(), value));
    }

    /// The bytes before the columns.
    pub(crate) fn before_columns(&self) -> &[u8] {
        &self.encoded.as_slice()[..self.columns_at]
    }

    /// All bytes; `None` if there is a large value.
    #[inline]
    pub(crate) fn as_slice(&self) -> Option<&[u8]> {
        self.values.is_empty().then_some(self.encoded.as_slice())
    }

    /// All bytes, in pieces.
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

    /// Drops the large values.
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
        body.u8(1);
        body.value(&small, Some(&small));
        assert_eq!(body.as_slice(), Some(&b"\x01small"[..]));
        body.value(&large, Some(&large));
        body.u8(2);
        body.value(&large, Some(&large));
        assert_eq!(body.as_slice(), None);
        let expected = [b"\x01small", &large[..], b"\x02", &large].concat();
        assert_eq!(body.len(), expected.len() as u64);
        assert_eq!(body.pieces().collect::<Vec<_>>().concat(), expected);
        body.clear();
        assert_eq!(body.pieces().collect::<Vec<_>>().concat(), b"");
    }
}
