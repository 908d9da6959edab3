//! Serializes values of system tables; the server uses this for its own system tables, too.

use std::net::IpAddr;

use bytes::Bytes;
use uuid::Uuid;

/// A text.
pub fn text(value: &str) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// An `int`.
pub fn int(value: i32) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A `bigint`. A value that is too large becomes the largest `bigint`.
pub fn bigint(value: u64) -> Bytes {
    Bytes::copy_from_slice(&i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes())
}

/// A `timestamp`: milliseconds since 1970.
pub fn timestamp(millis: i64) -> Bytes {
    Bytes::copy_from_slice(&millis.to_be_bytes())
}

/// A `double`.
pub fn double(value: f64) -> Bytes {
    Bytes::copy_from_slice(&value.to_be_bytes())
}

/// A `boolean`.
pub fn boolean(value: bool) -> Bytes {
    Bytes::copy_from_slice(&[u8::from(value)])
}

/// A `uuid`.
pub fn uuid(value: Uuid) -> Bytes {
    Bytes::copy_from_slice(value.as_bytes())
}

/// An `inet`.
pub fn inet(value: IpAddr) -> Bytes {
    match value {
        IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
        IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
    }
}

/// A column of a row.
pub fn cell(name: &str, value: Bytes) -> (String, Option<Bytes>) {
    (name.to_owned(), Some(value))
}

/// A frozen map of texts.
pub fn text_map<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Bytes {
    map(&pairs
        .map(|(key, value)| (text(key), text(value)))
        .collect::<Vec<_>>())
}

/// A frozen map: `n: i32, n x (key, value)`, each with its length.
pub fn map(pairs: &[(Bytes, Bytes)]) -> Bytes {
    let mut out = Vec::new();
    put_length(&mut out, pairs.len());
    for bytes in pairs.iter().flat_map(|(key, value)| [key, value]) {
        put_length(&mut out, bytes.len());
        out.extend_from_slice(bytes);
    }
    out.into()
}

fn put_length(out: &mut Vec<u8>, length: usize) {
    out.extend_from_slice(&i32::try_from(length).unwrap_or(i32::MAX).to_be_bytes());
}
