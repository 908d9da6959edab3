//! The bytes of fields that commands and answers share. Numbers are big-endian, counts and lengths are Cassandra's vints.
//!
//! ```text
//! list<T>   := count: uvint, T...
//! bytes     := size: uvint, size * u8
//! name      := bytes (UTF-8)
//! key       := bytes, token: i64 (if there are no bytes: the place before all keys with this token)
//! key bound := 0 (start) | 1 (end) | 2 (before token), token: i64 | 3 (after token), token: i64
//!              | 4 (before key), key | 5 (after key), key
//! key range := start: key bound, end: key bound
//! place     := key, 0 (static row) | 1, values
//! limit     := 0 (none) | 1 (exclusive), bytes | 2 (inclusive), bytes
//! predicate := kind: u8, then bytes, limits or a list of bytes
//! estimate  := rows: uvint, files: uvint
//! ```
//! `values` and bounds of clusterings are those of `rows::clustering_codec`. Tokens of keys are computed by the reader: clusters use
//! Murmur3. A count that is larger than the bytes left is refused before memory is allocated for it.

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};
use ilion_index::{Estimate, Limit, Place, Predicate, RowPart};
use ilion_rows::clustering_codec::{decode_bytes, decode_values, encode_values};
use ilion_rows::{Clustering, DecoratedKey, KeyBound, KeyRange};
use ilion_types::{Partitioner, Token};

/// Bytes of a message, and how far they are read. Decoded values are slices of the message.
pub(crate) struct Input<'m> {
    pub whole: &'m Bytes,
    pub reader: Reader<'m>,
}

impl<'m> Input<'m> {
    pub fn new(whole: &'m Bytes) -> Self {
        Self {
            whole,
            reader: Reader::new(whole),
        }
    }

    pub fn bytes(&mut self) -> Result<Bytes, Error> {
        decode_bytes(self.whole, &mut self.reader)
    }

    pub fn name(&mut self) -> Result<String, Error> {
        self.reader.string_vint().map(str::to_owned)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        let number = self.reader.uvint()?;
        u32::try_from(number).map_err(|_| self.reader.error("a number of 32 bits before this"))
    }

    /// Reads a list. Each element takes at least one byte.
    pub fn list<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = self.reader.uvint_len()?;
        let mut list = Vec::new();
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    /// Reads an option: a byte, and if it is 1, the value that `decode` reads.
    pub fn option<T>(
        &mut self,
        decode: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match self.reader.bool()? {
            true => decode(self).map(Some),
            false => Ok(None),
        }
    }

    pub fn end(&self) -> Result<(), Error> {
        match self.reader.is_empty() {
            true => Ok(()),
            false => Err(self.reader.error("the end of the message")),
        }
    }
}

pub(crate) fn encode_list<T>(list: &[T], out: &mut Writer, mut element: impl FnMut(&T, &mut Writer)) {
    out.uvint(list.len() as u64);
    list.iter().for_each(|one| element(one, out));
}

pub(crate) fn encode_option<T>(option: Option<&T>, out: &mut Writer, encode: impl FnOnce(&T, &mut Writer)) {
    out.bool(option.is_some());
    if let Some(value) = option {
        encode(value, out);
    }
}

pub(crate) fn encode_key(key: &DecoratedKey, out: &mut Writer) {
    out.bytes_vint(&key.key);
    if key.key.is_empty() {
        encode_token(&key.token, out);
    }
}

pub(crate) fn decode_key(input: &mut Input<'_>) -> Result<DecoratedKey, Error> {
    let key = input.bytes()?;
    if key.is_empty() {
        let token = Token::Murmur3(input.reader.i64()?);
        return Ok(DecoratedKey { token, key });
    }
    Ok(DecoratedKey::new(Partitioner::Murmur3, key))
}

fn encode_token(token: &Token, out: &mut Writer) {
    // Tokens of a cluster are Murmur3's: `Shared::spread` lets no other table get here.
    out.i64(token.murmur3().unwrap_or_default());
}

fn encode_key_bound(bound: &KeyBound, out: &mut Writer) {
    match bound {
        KeyBound::Start => out.u8(0),
        KeyBound::End => out.u8(1),
        KeyBound::BeforeToken(token) => {
            out.u8(2);
            encode_token(token, out);
        }
        KeyBound::AfterToken(token) => {
            out.u8(3);
            encode_token(token, out);
        }
        KeyBound::Before(key) => {
            out.u8(4);
            encode_key(key, out);
        }
        KeyBound::After(key) => {
            out.u8(5);
            encode_key(key, out);
        }
    }
}

fn decode_key_bound(input: &mut Input<'_>) -> Result<KeyBound, Error> {
    Ok(match input.reader.u8()? {
        0 => KeyBound::Start,
        1 => KeyBound::End,
        2 => KeyBound::BeforeToken(Token::Murmur3(input.reader.i64()?)),
        3 => KeyBound::AfterToken(Token::Murmur3(input.reader.i64()?)),
        4 => KeyBound::Before(decode_key(input)?),
        5 => KeyBound::After(decode_key(input)?),
        _ => {
            return Err(input
                .reader
                .error("the kind of a bound of partitions before this"));
        }
    })
}

pub(crate) fn encode_key_range(range: &KeyRange, out: &mut Writer) {
    encode_key_bound(&range.start, out);
    encode_key_bound(&range.end, out);
}

pub(crate) fn decode_key_range(input: &mut Input<'_>) -> Result<KeyRange, Error> {
    let start = decode_key_bound(input)?;
    let end = decode_key_bound(input)?;
    Ok(KeyRange { start, end })
}

pub(crate) fn encode_place(place: &Place, out: &mut Writer) {
    encode_key(&place.key, out);
    match &place.row {
        RowPart::Static => out.bool(false),
        RowPart::Row(clustering) => {
            out.bool(true);
            encode_values(clustering.values(), out);
        }
    }
}

pub(crate) fn decode_place(input: &mut Input<'_>) -> Result<Place, Error> {
    let key = decode_key(input)?;
    let values = input.option(|input| decode_values(input.whole, usize::MAX, &mut input.reader))?;
    let row = values.map_or(RowPart::Static, |values| RowPart::Row(Clustering::new(values)));
    Ok(Place { key, row })
}

fn encode_limit(limit: Option<&Limit>, out: &mut Writer) {
    match limit {
        None => out.u8(0),
        Some(limit) => {
            out.u8(1 + u8::from(limit.is_inclusive));
            out.bytes_vint(&limit.value);
        }
    }
}

fn decode_limit(input: &mut Input<'_>) -> Result<Option<Limit>, Error> {
    let is_inclusive = match input.reader.u8()? {
        0 => return Ok(None),
        1 => false,
        2 => true,
        _ => return Err(input.reader.error("the kind of a limit before this")),
    };
    let value = input.bytes()?;
    Ok(Some(Limit { value, is_inclusive }))
}

pub(crate) fn encode_predicate(predicate: &Predicate, out: &mut Writer) {
    let mut one = |kind, value: &Bytes| {
        out.u8(kind);
        out.bytes_vint(value);
    };
    match predicate {
        Predicate::Equal(value) => one(0, value),
        Predicate::Contains(value) => one(1, value),
        Predicate::ContainsKey(value) => one(2, value),
        Predicate::Matches(value) => one(3, value),
        Predicate::LikePrefix(value) => one(4, value),
        Predicate::LikeSuffix(value) => one(5, value),
        Predicate::LikeContains(value) => one(6, value),
        Predicate::LikeEqual(value) => one(7, value),
        Predicate::Entry(key, value) => {
            one(8, key);
            out.bytes_vint(value);
        }
        Predicate::EntryRange { key, from, to } => {
            one(9, key);
            encode_limit(from.as_ref(), out);
            encode_limit(to.as_ref(), out);
        }
        Predicate::Range { from, to } => {
            out.u8(10);
            encode_limit(from.as_ref(), out);
            encode_limit(to.as_ref(), out);
        }
        Predicate::AnyOf(values) => {
            out.u8(11);
            encode_list(values, out, |value, out| out.bytes_vint(value));
        }
    }
}

pub(crate) fn decode_predicate(input: &mut Input<'_>) -> Result<Predicate, Error> {
    Ok(match input.reader.u8()? {
        0 => Predicate::Equal(input.bytes()?),
        1 => Predicate::Contains(input.bytes()?),
        2 => Predicate::ContainsKey(input.bytes()?),
        3 => Predicate::Matches(input.bytes()?),
        4 => Predicate::LikePrefix(input.bytes()?),
        5 => Predicate::LikeSuffix(input.bytes()?),
        6 => Predicate::LikeContains(input.bytes()?),
        7 => Predicate::LikeEqual(input.bytes()?),
        8 => {
            let key = input.bytes()?;
            let value = input.bytes()?;
            Predicate::Entry(key, value)
        }
        9 => {
            let key = input.bytes()?;
            let from = decode_limit(input)?;
            let to = decode_limit(input)?;
            Predicate::EntryRange { key, from, to }
        }
        10 => {
            let from = decode_limit(input)?;
            let to = decode_limit(input)?;
            Predicate::Range { from, to }
        }
        11 => Predicate::AnyOf(input.list(Input::bytes)?),
        _ => return Err(input.reader.error("the kind of a predicate before this")),
    })
}

pub(crate) fn encode_estimate(estimate: &Estimate, out: &mut Writer) {
    out.uvint(estimate.rows);
    out.uvint(estimate.files);
}

pub(crate) fn decode_estimate(input: &mut Input<'_>) -> Result<Estimate, Error> {
    let rows = input.reader.uvint()?;
    let files = input.reader.uvint()?;
    Ok(Estimate { rows, files })
}
