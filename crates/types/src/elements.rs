//! The parts of serialized collections, tuples and vectors, without decoding them.
//!
//! ```text
//! list, set := n: i32, n * bytes32        map := n: i32, n * (key: bytes32, value: bytes32)
//! tuple, udt := (bytes32 | -1: i32)*      vector := n * fixed bytes | n * (len: uvint, bytes)
//! ```
//!
//! After an error, an iterator returns `None`. Null (a negative length) is legal inside tuples only.

use ilion_codec::{Reader, Writer};

use crate::{CqlType, Error};

/// Elements of a serialized list or set; the keys and values of a map, in turn.
#[derive(Clone, Debug)]
pub struct Elements<'a> {
    reader: Reader<'a>,
    left: usize,
}

/// The elements of a serialized list or set. An empty value has no elements.
///
/// # Errors
/// The count is missing, negative, or more than the bytes can hold.
pub fn collection_elements(bytes: &[u8]) -> Result<Elements<'_>, Error> {
    elements(bytes, 1)
}

/// The entries of a serialized map. An empty value has no entries.
///
/// # Errors
/// The count is missing, negative, or more than the bytes can hold.
pub fn map_entries(bytes: &[u8]) -> Result<MapEntries<'_>, Error> {
    elements(bytes, 2).map(MapEntries)
}

fn elements(bytes: &[u8], parts: usize) -> Result<Elements<'_>, Error> {
    let mut reader = Reader::new(bytes);
    if bytes.is_empty() {
        return Ok(Elements { reader, left: 0 });
    }
    let count = reader.i32().ok().and_then(|count| usize::try_from(count).ok());
    match count.and_then(|count| count.checked_mul(parts)) {
        Some(left) if left <= reader.remaining() / 4 => Ok(Elements { reader, left }),
        _ => Err(Error::bytes("Not enough bytes to read a collection")),
    }
}

impl<'a> Elements<'a> {
    /// Number of elements left (for a map, of keys and values).
    pub fn remaining(&self) -> usize {
        self.left
    }

    /// True if there are bytes behind the elements returned so far.
    pub(crate) fn has_trailing_bytes(&self) -> bool {
        !self.reader.is_empty()
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Result<&'a [u8], Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        Some(self.reader.bytes32().map_err(|_| {
            self.left = 0;
            Error::bytes("Not enough bytes to read a collection element")
        }))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (0, Some(self.left))
    }
}

/// Entries of a serialized map.
#[derive(Clone, Debug)]
pub struct MapEntries<'a>(pub(crate) Elements<'a>);

impl<'a> Iterator for MapEntries<'a> {
    type Item = Result<(&'a [u8], &'a [u8]), Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let key = match self.0.next()? {
            Ok(key) => key,
            Err(error) => return Some(Err(error)),
        };
        Some(self.0.next()?.map(|value| (key, value)))
    }
}

/// Components of a serialized tuple or user type; `None` is null. Missing trailing components are not returned.
#[derive(Clone, Debug)]
pub struct Components<'a> {
    reader: Reader<'a>,
    index: usize,
}

/// The components of a serialized tuple or user type.
pub fn tuple_components(bytes: &[u8]) -> Components<'_> {
    Components {
        reader: Reader::new(bytes),
        index: 0,
    }
}

impl<'a> Iterator for Components<'a> {
    type Item = Result<Option<&'a [u8]>, Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.is_empty() {
            return None;
        }
        let index = self.index;
        self.index += 1;
        Some(self.reader.bytes32_or_null().map_err(|_| {
            self.reader = Reader::new(&[]);
            Error::bytes(format!("Not enough bytes to read component {index} of a tuple"))
        }))
    }
}

/// Elements of a serialized vector.
#[derive(Clone, Debug)]
pub struct VectorElements<'a> {
    reader: Reader<'a>,
    fixed_len: Option<usize>,
    left: u32,
}

/// The elements of a serialized `vector<element, dimension>`.
pub fn vector_elements<'a>(bytes: &'a [u8], element: &CqlType, dimension: u32) -> VectorElements<'a> {
    VectorElements {
        reader: Reader::new(bytes),
        fixed_len: element.fixed_len(),
        left: dimension,
    }
}

impl VectorElements<'_> {
    /// Number of bytes behind the elements returned so far.
    pub(crate) fn trailing_len(&self) -> usize {
        self.reader.remaining()
    }
}

impl<'a> Iterator for VectorElements<'a> {
    type Item = Result<&'a [u8], Error>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let element = match self.fixed_len {
            Some(len) => self.reader.take(len),
            None => self.reader.bytes_vint(),
        };
        Some(element.map_err(|_| {
            self.left = 0;
            Error::bytes("Not enough bytes to read a vector element")
        }))
    }
}

/// Serializes a list, or a set from its sorted elements.
pub fn encode_list<'a, I>(elements: I) -> Vec<u8>
where
    I: IntoIterator<Item = &'a [u8]>,
{
    let mut out = Writer::from_vec(vec![0; 4]);
    let mut count = 0;
    for element in elements {
        out.bytes32(element);
        count += 1;
    }
    set_count(&mut out, count);
    out.into_vec()
}

/// Serializes a map from its entries in key order.
pub fn encode_map<'a, I>(entries: I) -> Vec<u8>
where
    I: IntoIterator<Item = (&'a [u8], &'a [u8])>,
{
    let mut out = Writer::from_vec(vec![0; 4]);
    let mut count = 0;
    for (key, value) in entries {
        out.bytes32(key);
        out.bytes32(value);
        count += 1;
    }
    set_count(&mut out, count);
    out.into_vec()
}

/// Writes the count into the first four bytes. Each element has at least four bytes, so the buffer would be full before the
/// count exceeds `i32`.
fn set_count(out: &mut Writer, count: usize) {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    out.as_mut_slice()[..4].copy_from_slice(&count.to_be_bytes());
}

/// Serializes a tuple or user type; `None` is null.
pub fn encode_tuple<'a, I>(components: I) -> Vec<u8>
where
    I: IntoIterator<Item = Option<&'a [u8]>>,
{
    let mut out = Writer::new();
    for component in components {
        out.bytes32_or_null(component);
    }
    out.into_vec()
}

/// Serializes a vector of `element`s. Requires: there are as many elements as the type's dimension, each valid.
pub fn encode_vector<'a, I>(elements: I, element: &CqlType) -> Vec<u8>
where
    I: IntoIterator<Item = &'a [u8]>,
{
    let fixed = element.fixed_len().is_some();
    let mut out = Writer::new();
    for element in elements {
        if fixed {
            out.bytes(element);
        } else {
            out.bytes_vint(element);
        }
    }
    out.into_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_gives_back_its_elements() {
        let bytes = encode_list([&b"a"[..], b"", b"ccc"]);
        let back: Result<Vec<_>, _> = collection_elements(&bytes).unwrap().collect();
        assert_eq!(back.unwrap(), [&b"a"[..], b"", b"ccc"]);
        let entries: Result<Vec<_>, _> = map_entries(&encode_map([(&b"k"[..], &b"v"[..])]))
            .unwrap()
            .map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())))
            .collect();
        assert_eq!(entries.unwrap(), [(b"k".to_vec(), b"v".to_vec())]);
    }

    #[test]
    fn counts_that_lie_are_refused() {
        assert!(collection_elements(&[0x7F, 0xFF, 0xFF, 0xFF]).is_err());
        assert!(collection_elements(&[0xFF, 0xFF, 0xFF, 0xFF]).is_err());
        assert!(map_entries(&[0, 0, 0, 1, 0, 0, 0, 0]).is_err());
        let mut short = collection_elements(&[0, 0, 0, 1, 0, 0, 0, 9]).unwrap();
        assert!(short.next().unwrap().is_err());
        assert!(short.next().is_none());
    }

    #[test]
    fn a_tuple_keeps_null_apart_from_empty() {
        let bytes = encode_tuple([Some(&b"x"[..]), None, Some(b"")]);
        let back: Result<Vec<_>, _> = tuple_components(&bytes).collect();
        assert_eq!(back.unwrap(), [Some(&b"x"[..]), None, Some(b"")]);
    }
}
