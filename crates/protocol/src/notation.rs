//! The primitive types in bodies: `[string]`, `[bytes]`, `[inet]` and so on.
//!
//! ```text
//! string := u16 + UTF-8         long string := i32 + UTF-8        short bytes := u16 + bytes
//! bytes  := i32 + bytes, < 0 is null                              uuid := 16 bytes
//! inet   := u8 size, address, i32 port                            inetaddr := inet without port
//! string list := u16 + strings      string map := u16 + pairs     bytes map := u16 + (string, bytes) pairs
//! ```
//!
//! `put_*` is for responses and never fails: it truncates what is too long for the format (only texts of errors and warnings can be
//! that long). `try_*` is for requests, whose content comes from the user: it returns an error.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::Bytes;
use ilion_codec::Reader;
use uuid::Uuid;

use crate::consistency::Consistency;
use crate::error::Error;
use crate::version::Version;

/// Opaque key-value pairs in a message (v4 and later).
pub type CustomPayload = Vec<(String, Option<Bytes>)>;

/// A reader of a body. The byte values that it returns are slices of the body.
pub(crate) struct Input<'a> {
    body: &'a Bytes,
    reader: Reader<'a>,
}

impl<'a> Input<'a> {
    pub fn new(body: &'a Bytes) -> Self {
        Self {
            body,
            reader: Reader::new(body),
        }
    }

    pub fn body(&self) -> &'a Bytes {
        self.body
    }

    pub fn reader(&mut self) -> &mut Reader<'a> {
        &mut self.reader
    }

    pub fn rest(&self) -> Bytes {
        self.body.slice(self.reader.offset()..)
    }

    #[inline]
    pub fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.reader.u8()?)
    }

    #[inline]
    pub fn u16(&mut self) -> Result<u16, Error> {
        Ok(self.reader.u16()?)
    }

    #[inline]
    pub fn i32(&mut self) -> Result<i32, Error> {
        Ok(self.reader.i32()?)
    }

    #[inline]
    pub fn i64(&mut self) -> Result<i64, Error> {
        Ok(self.reader.i64()?)
    }

    pub fn uuid(&mut self) -> Result<Uuid, Error> {
        Ok(Uuid::from_bytes(self.reader.uuid_bytes()?))
    }

    pub fn string(&mut self) -> Result<String, Error> {
        Ok(self.reader.string16()?.to_owned())
    }

    pub fn long_string(&mut self) -> Result<String, Error> {
        let at = self.reader.offset();
        let bytes = self.reader.bytes32()?;
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(Error::Malformed {
                offset: at,
                expected: "UTF-8",
            }),
        }
    }

    #[inline]
    pub fn short_bytes(&mut self) -> Result<Bytes, Error> {
        let bytes = self.reader.bytes16()?;
        Ok(self.body.slice_ref(bytes))
    }

    /// The id of the metadata of a result; empty before v5, where it does not exist.
    pub fn result_metadata_id(&mut self, version: Version) -> Result<Bytes, Error> {
        match version >= Version::V5 {
            true => self.short_bytes(),
            false => Ok(Bytes::new()),
        }
    }

    #[inline]
    pub fn bytes(&mut self) -> Result<Option<Bytes>, Error> {
        let bytes = self.reader.bytes32_or_null()?;
        Ok(bytes.map(|bytes| self.body.slice_ref(bytes)))
    }

    #[inline]
    pub fn consistency(&mut self) -> Result<Consistency, Error> {
        let number = self.u16()?;
        Consistency::from_number(number)
            .ok_or_else(|| Error::refused(format!("Unknown code {number} for a consistency level")))
    }

    /// A list with a `u16` count; `element` reads one element of at least `element_min_bytes`.
    pub fn list<T>(
        &mut self,
        element_min_bytes: usize,
        mut element: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let count = usize::from(self.u16()?);
        let mut list = Vec::with_capacity(self.reader.capacity_for(count, element_min_bytes));
        for _ in 0..count {
            list.push(element(self)?);
        }
        Ok(list)
    }

    pub fn string_list(&mut self) -> Result<Vec<String>, Error> {
        self.list(2, Self::string)
    }

    pub fn string_map(&mut self) -> Result<Vec<(String, String)>, Error> {
        self.list(4, |input| Ok((input.string()?, input.string()?)))
    }

    pub fn bytes_map(&mut self) -> Result<CustomPayload, Error> {
        self.list(6, |input| Ok((input.string()?, input.bytes()?)))
    }

    pub fn inet_address(&mut self) -> Result<IpAddr, Error> {
        let at = self.reader.offset();
        let size = self.u8()?;
        let bytes = self.reader.take(usize::from(size))?;
        if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
            return Ok(IpAddr::V4(Ipv4Addr::from(v4)));
        }
        if let Ok(v6) = <[u8; 16]>::try_from(bytes) {
            return Ok(IpAddr::V6(Ipv6Addr::from(v6)));
        }
        Err(Error::Malformed {
            offset: at,
            expected: "an address of 4 or 16 bytes",
        })
    }

    pub fn inet(&mut self) -> Result<SocketAddr, Error> {
        let address = self.inet_address()?;
        let at = self.reader.offset();
        let port = u16::try_from(self.i32()?).map_err(|_| Error::Malformed {
            offset: at,
            expected: "a port number",
        })?;
        Ok(SocketAddr::new(address, port))
    }
}

#[inline]
pub(crate) fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

#[inline]
pub(crate) fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Writes a count or size as `[int]`. It never saturates: the limit of an envelope is far below `i32::MAX`.
#[inline]
pub(crate) fn put_size(out: &mut Vec<u8>, size: usize) {
    put_i32(out, i32::try_from(size).unwrap_or(i32::MAX));
}

/// Writes a count, at most `u16::MAX`; returns the written count.
pub(crate) fn put_count(out: &mut Vec<u8>, len: usize) -> usize {
    let count = u16::try_from(len).unwrap_or(u16::MAX);
    put_u16(out, count);
    usize::from(count)
}

pub(crate) fn put_string(out: &mut Vec<u8>, text: &str) {
    let text = &text[..text.floor_char_boundary(usize::from(u16::MAX))];
    put_count(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

pub(crate) fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let count = put_count(out, bytes.len());
    out.extend_from_slice(&bytes[..count]);
}

#[inline]
pub(crate) fn put_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_size(out, bytes.len());
            out.extend_from_slice(bytes);
        }
        None => put_i32(out, -1),
    }
}

pub(crate) fn put_consistency(out: &mut Vec<u8>, consistency: Consistency) {
    put_u16(out, consistency.number());
}

pub(crate) fn put_string_list(out: &mut Vec<u8>, list: &[String]) {
    let count = put_count(out, list.len());
    for text in &list[..count] {
        put_string(out, text);
    }
}

pub(crate) fn put_bytes_map(out: &mut Vec<u8>, map: &[(String, Option<Bytes>)]) {
    let count = put_count(out, map.len());
    for (name, bytes) in &map[..count] {
        put_string(out, name);
        put_bytes(out, bytes.as_deref());
    }
}

pub(crate) fn put_inet_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(v4) => {
            out.push(4);
            out.extend_from_slice(&v4.octets());
        }
        IpAddr::V6(v6) => {
            out.push(16);
            out.extend_from_slice(&v6.octets());
        }
    }
}

pub(crate) fn put_inet(out: &mut Vec<u8>, address: SocketAddr) {
    put_inet_address(out, address.ip());
    put_i32(out, i32::from(address.port()));
}

/// Writes a `u16` count; fails if it is too large.
pub(crate) fn try_count(out: &mut Vec<u8>, what: &'static str, len: usize) -> Result<(), Error> {
    let count = u16::try_from(len).map_err(|_| Error::TooLarge {
        what,
        size: len,
        max: usize::from(u16::MAX),
    })?;
    put_u16(out, count);
    Ok(())
}

/// Writes an `i32` size; fails if it is too large.
#[inline]
pub(crate) fn try_size(out: &mut Vec<u8>, what: &'static str, len: usize) -> Result<(), Error> {
    let size = i32::try_from(len).map_err(|_| Error::TooLarge {
        what,
        size: len,
        max: i32::MAX as usize,
    })?;
    put_i32(out, size);
    Ok(())
}

pub(crate) fn try_string(out: &mut Vec<u8>, what: &'static str, text: &str) -> Result<(), Error> {
    try_short_bytes(out, what, text.as_bytes())
}

pub(crate) fn try_short_bytes(out: &mut Vec<u8>, what: &'static str, bytes: &[u8]) -> Result<(), Error> {
    try_count(out, what, bytes.len())?;
    out.extend_from_slice(bytes);
    Ok(())
}

pub(crate) fn try_long_string(out: &mut Vec<u8>, what: &'static str, text: &str) -> Result<(), Error> {
    try_size(out, what, text.len())?;
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
