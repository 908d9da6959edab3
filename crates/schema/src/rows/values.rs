//! Serialized values of cells and clusterings.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_types::{CqlType, encode_list, encode_map};

pub(super) fn key(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub(super) fn text(text: &str) -> Option<Bytes> {
    Some(key(text))
}

pub(super) fn boolean(value: bool) -> Option<Bytes> {
    Some(Bytes::copy_from_slice(&[u8::from(value)]))
}

pub(super) fn text_map(map: &BTreeMap<String, String>) -> Option<Bytes> {
    Some(encode_map(map.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()))).into())
}

/// A list of texts, or a set of texts that are already sorted.
pub(super) fn text_list(texts: impl Iterator<Item = String>) -> Option<Bytes> {
    let texts: Vec<String> = texts.collect();
    Some(encode_list(texts.iter().map(String::as_bytes)).into())
}

pub(super) fn type_list<'a>(types: impl Iterator<Item = &'a CqlType>) -> Bytes {
    let texts: Vec<String> = types.map(ToString::to_string).collect();
    encode_list(texts.iter().map(String::as_bytes)).into()
}
