//! The bytes of a clustering in files of indexes: `(len + 1:uvint  bytes)*`, null is 0.

use bytes::Bytes;
use ilion_codec::{Reader, Writer};
use ilion_rows::Clustering;

/// Appends the values of a clustering.
#[inline]
pub(crate) fn encode_clustering(clustering: &Clustering, out: &mut Vec<u8>) {
    let mut writer = Writer::from_vec(std::mem::take(out));
    for value in clustering.values() {
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

/// The values of an encoded clustering. Stops at the first bytes that cannot be decoded.
#[derive(Clone)]
pub(crate) struct ValuesOf<'b>(Reader<'b>);

impl<'b> ValuesOf<'b> {
    pub(crate) fn of(bytes: &'b [u8]) -> Self {
        Self(Reader::new(bytes))
    }
}

impl<'b> Iterator for ValuesOf<'b> {
    type Item = Option<&'b [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let len = self.0.uvint().ok().and_then(|len| usize::try_from(len).ok())?;
        match len.checked_sub(1) {
            None => Some(None),
            Some(len) => self.0.take(len).ok().map(Some),
        }
    }
}

/// Decodes a clustering.
pub(crate) fn decode_clustering(bytes: &[u8]) -> Clustering {
    let copied = |value: Option<&[u8]>| value.map(Bytes::copy_from_slice);
    Clustering::new(ValuesOf::of(bytes).map(copied).collect())
}
