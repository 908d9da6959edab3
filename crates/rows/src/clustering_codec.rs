//! Clusterings and bounds as bytes: in mutations, and in messages between nodes.
//!
//! ```text
//! bytes  := size: uvint, size * u8
//! value  := 0 (null) | size + 1: uvint, size * u8
//! values := count: uvint, value*count
//! bound  := kind: u8 (`BoundKind`), values
//! ```
//! Decoded values are slices of the decoded buffer, and keep it alive.

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};

use crate::{Bound, BoundKind, Values};

/// Appends a bound.
pub fn encode_bound(bound: &Bound, out: &mut Writer) {
    out.u8(bound.kind as u8);
    encode_values(&bound.values, out);
}

/// Reads a bound of at most `columns` values. `whole` is the buffer that `input` reads.
///
/// # Errors
/// The bytes are not a bound.
pub fn decode_bound(whole: &Bytes, columns: usize, input: &mut Reader<'_>) -> Result<Bound, Error> {
    let kind = BoundKind::from_ordinal(input.u8()?)
        .ok_or_else(|| input.error("the kind of an end of a range before this"))?;
    let values = decode_values(whole, columns, input)?;
    Ok(Bound::new(kind, values))
}

/// Appends values and their number.
pub fn encode_values(values: &Values, out: &mut Writer) {
    out.uvint(values.len() as u64);
    values.iter().for_each(|value| encode_value(value, out));
}

/// Reads a number of values, at most `columns`, and the values. `whole` is the buffer that `input` reads.
///
/// # Errors
/// The bytes do not encode values, or there are more than `columns`.
pub fn decode_values(whole: &Bytes, columns: usize, input: &mut Reader<'_>) -> Result<Values, Error> {
    let count = input.uvint_len()?;
    if count > columns {
        return Err(input.error("at most the table's clustering columns before this"));
    }
    decode_counted(whole, count, input)
}

#[inline]
pub(crate) fn encode_value(value: &Option<Bytes>, out: &mut Writer) {
    match value {
        None => out.uvint(0),
        Some(value) => {
            out.uvint(value.len() as u64 + 1);
            out.bytes(value);
        }
    }
}

pub(crate) fn decode_counted(whole: &Bytes, count: usize, input: &mut Reader<'_>) -> Result<Values, Error> {
    (0..count)
        .map(|_| match input.uvint()?.checked_sub(1) {
            None => Ok(None),
            Some(size) => {
                let size = usize::try_from(size).unwrap_or(usize::MAX);
                slice(whole, size, input).map(Some)
            }
        })
        .collect()
}

/// Reads a size and that many bytes, without a copy. `whole` is the buffer that `input` reads.
///
/// # Errors
/// There are fewer bytes than the size says.
#[inline]
pub fn decode_bytes(whole: &Bytes, input: &mut Reader<'_>) -> Result<Bytes, Error> {
    let size = input.uvint_len()?;
    slice(whole, size, input)
}

#[inline]
fn slice(whole: &Bytes, size: usize, input: &mut Reader<'_>) -> Result<Bytes, Error> {
    let at = input.offset();
    input.skip(size)?;
    Ok(whole.slice(at..at + size))
}
