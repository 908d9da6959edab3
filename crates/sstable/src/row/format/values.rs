//! Clustering values, as in rows, markers, indexes and statistics.
//!
//! ```text
//! values := batch*                     of at most 32 values
//! batch  := header:uvint  value*       two bits per value in the header: 1 empty, 2 null; such values are not stored
//! value  := bytes                      of a type of fixed length
//!         | bytesV
//! bound  := kind:u8  count:u16  values
//! ```
//!
//! Not here: decoding the clusterings of rows, whose values share the bytes of a chunk (`row::decode`).

use std::ops::Deref;

use bytes::Bytes;
use ilion_codec::{Append, Error as Malformed, Reader};
use ilion_rows::{Bound, BoundKind, Values};

use super::VALUES_PER_HEADER;

const EMPTY: u64 = 1;
const NULL: u64 = 2;

/// Length of non-empty values, for types of fixed length; `None` if values are stored with their length.
pub(crate) type FixedLen = Option<u32>;

/// Why data cannot be stored: a bug of the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unstorable {
    #[error("it has more clustering values than the table has clustering columns")]
    TooManyValues,
    #[error("it does not have a value for every clustering column")]
    PartialClustering,
    #[error("a value does not have the length of its type")]
    WrongLength,
    #[error("it has a column that the table did not have when the SSTable was begun")]
    UnknownColumn,
    #[error("it has a simple value for a complex column, or the reverse")]
    WrongShape,
    #[error("it has a column twice")]
    TwoOfAColumn,
    #[error("a range tombstone marker does not have the deletions of its kind")]
    MarkerSides,
    #[error("partition deletions with negative timestamps cannot be stored by this version")]
    NegativeDeletion,
}

/// Appends leading clustering values of types with these lengths.
#[inline]
pub(crate) fn encode_values<V: Deref<Target = [u8]>>(
    lens: &[FixedLen],
    values: &[Option<V>],
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    // Most tables have no clustering column, or one: no loop is needed.
    match (lens, values) {
        (_, []) => return Ok(()),
        ([len], [Some(value)]) if !value.is_empty() => {
            out.u8(0);
            return encode_value(*len, value, out);
        }
        _ => {}
    }
    if values.len() > lens.len() {
        return Err(Unstorable::TooManyValues);
    }
    for (lens, values) in lens
        .chunks(VALUES_PER_HEADER)
        .zip(values.chunks(VALUES_PER_HEADER))
    {
        out.uvint(batch_header(values));
        for (len, value) in lens.iter().zip(values) {
            match value {
                Some(value) if !value.is_empty() => encode_value(*len, value, out)?,
                _ => {}
            }
        }
    }
    Ok(())
}

#[inline]
fn batch_header<V: Deref<Target = [u8]>>(values: &[Option<V>]) -> u64 {
    let mut header = 0;
    for (index, value) in values.iter().enumerate() {
        match value {
            None => header |= NULL << (2 * index),
            Some(value) if value.is_empty() => header |= EMPTY << (2 * index),
            Some(_) => {}
        }
    }
    header
}

/// Appends a value that is not empty.
#[inline]
pub(crate) fn encode_value(len: FixedLen, value: &[u8], out: &mut impl Append) -> Result<(), Unstorable> {
    match len {
        None => out.bytes_vint(value),
        Some(len) if len as usize == value.len() => append_fixed(value, out),
        Some(_) => return Err(Unstorable::WrongLength),
    }
    Ok(())
}

/// Appends a value of fixed length. The usual lengths are copied with one instruction, any other with a call.
#[inline(always)]
pub(crate) fn append_fixed(value: &[u8], out: &mut impl Append) {
    if let Ok(value) = <[u8; 4]>::try_from(value) {
        out.array(value);
    } else if let Ok(value) = <[u8; 8]>::try_from(value) {
        out.array(value);
    } else {
        out.bytes(value);
    }
}

/// Decodes one value for each of `lens`.
pub(crate) fn decode_values(lens: &[FixedLen], input: &mut Reader<'_>) -> Result<Values, Malformed> {
    let mut values = Values::new();
    for lens in lens.chunks(VALUES_PER_HEADER) {
        let header = input.uvint()?;
        for (index, len) in lens.iter().enumerate() {
            values.push(match header >> (2 * index) & 3 {
                0 => Some(Bytes::copy_from_slice(match len {
                    Some(len) => input.take(*len as usize)?,
                    None => input.bytes_vint()?,
                })),
                EMPTY => Some(Bytes::new()),
                NULL => None,
                _ => return Err(input.error("a value that is empty or null, not both")),
            });
        }
    }
    Ok(values)
}

/// Appends a bound. `kind` may be a value without a [`BoundKind`] (a row's clustering, 4).
pub(crate) fn encode_bound(
    lens: &[FixedLen],
    bound: &Bound,
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    let count = u16::try_from(bound.values.len()).map_err(|_| Unstorable::TooManyValues)?;
    out.u8(bound.kind as u8);
    out.u16(count);
    encode_values(lens, &bound.values, out)
}

/// Decodes a bound.
pub(crate) fn decode_bound(lens: &[FixedLen], input: &mut Reader<'_>) -> Result<Bound, Malformed> {
    let refused = input.error("a kind of range bound");
    let kind = BoundKind::from_ordinal(input.u8()?).ok_or(refused)?;
    let refused = input.error("at most one value a clustering column");
    let lens = lens.get(..usize::from(input.u16()?)).ok_or(refused)?;
    Ok(Bound::new(kind, decode_values(lens, input)?))
}

#[cfg(test)]
mod tests {
    use ilion_codec::Writer;

    use super::*;

    fn value(text: &'static str) -> Option<Bytes> {
        Some(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn values_of_all_kinds_round_trip_in_batches_of_32() {
        let lens: Vec<FixedLen> = (0..70).map(|index| (index % 3 == 0).then_some(4)).collect();
        let values: Values = (0..65)
            .map(|index| match index % 5 {
                0 => None,
                1 => value(""),
                _ => value("1234"),
            })
            .collect();
        let mut out = Writer::new();
        encode_values(&lens, &values, &mut out).unwrap();
        out.u8(0xAA);
        let mut input = Reader::new(out.as_slice());
        assert_eq!(decode_values(&lens[..65], &mut input), Ok(values));
        assert_eq!(input.rest(), [0xAA]);
    }

    #[test]
    fn a_bound_is_stored_as_in_the_notes() {
        let bound = Bound::new(BoundKind::InclStart, Values::from_iter([value("c1")]));
        let mut out = Writer::new();
        encode_bound(&[None, Some(4), None], &bound, &mut out).unwrap();
        assert_eq!(out.as_slice(), [1, 0, 1, 0, 2, b'c', b'1']);
        let decoded = decode_bound(&[None, Some(4), None], &mut Reader::new(out.as_slice()));
        assert_eq!(decoded, Ok(bound));
        assert!(decode_bound(&[], &mut Reader::new(out.as_slice())).is_err());
    }

    #[test]
    fn what_would_not_be_read_back_is_not_stored() {
        let mut out = Writer::new();
        let wrong = encode_values(&[Some(4)], &[value("123")], &mut out);
        assert_eq!(wrong, Err(Unstorable::WrongLength));
        let many = encode_values(&[], &[value("123")], &mut out);
        assert_eq!(many, Err(Unstorable::TooManyValues));
    }
}
