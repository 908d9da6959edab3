//! The bytes of fields that records and snapshots share. Numbers are big-endian, counts and lengths are Cassandra's vints.
//!
//! ```text
//! name     := length: vint, UTF-8          at most NAME_BYTES_MAX, not empty
//! endpoint := family: u8 (4 or 6), ip: [u8; 4 or 16], native_port: u16, storage_port: u16
//! location := datacenter: name, rack: name
//! place    := segment: u64, offset: u32
//! list<T>  := count: vint, T...
//! strategy := 0 | 1, factor: u32 | 2, list<name, factor: u32>
//! ```

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ilion_codec::{Error, Reader, Writer};
use ilion_commitlog::Position;
use uuid::Uuid;

use crate::placement::{Location, Strategy};

/// Longest name of a data center, rack or keyspace.
pub(crate) const NAME_BYTES_MAX: usize = 255;

/// Where a node listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its address.
    pub ip: IpAddr,
    /// The port of drivers.
    pub native_port: u16,
    /// The port of other nodes.
    pub storage_port: u16,
}

pub(crate) fn encode_uuid(id: Uuid, out: &mut Writer) {
    out.bytes(id.as_bytes());
}

pub(crate) fn decode_uuid(input: &mut Reader<'_>) -> Result<Uuid, Error> {
    input.uuid_bytes().map(Uuid::from_bytes)
}

pub(crate) fn encode_name(name: &str, out: &mut Writer) {
    out.bytes_vint(name.as_bytes());
}

pub(crate) fn decode_name(input: &mut Reader<'_>) -> Result<String, Error> {
    let start = input.clone();
    let name = input.string_vint()?;
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(start.error("a name of 1 to 255 bytes"));
    }
    Ok(name.to_owned())
}

pub(crate) fn encode_endpoint(endpoint: &Endpoint, out: &mut Writer) {
    match endpoint.ip {
        IpAddr::V4(ip) => {
            out.u8(4);
            out.bytes(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.u8(6);
            out.bytes(&ip.octets());
        }
    }
    out.u16(endpoint.native_port);
    out.u16(endpoint.storage_port);
}

pub(crate) fn decode_endpoint(input: &mut Reader<'_>) -> Result<Endpoint, Error> {
    let start = input.clone();
    let ip = match input.u8()? {
        4 => IpAddr::V4(Ipv4Addr::from(input.u32()?)),
        6 => IpAddr::V6(Ipv6Addr::from(input.uuid_bytes()?)),
        _ => return Err(start.error("an address family (4 or 6)")),
    };
    let native_port = input.u16()?;
    let storage_port = input.u16()?;
    Ok(Endpoint {
        ip,
        native_port,
        storage_port,
    })
}

pub(crate) fn encode_location(location: &Location, out: &mut Writer) {
    encode_name(&location.datacenter, out);
    encode_name(&location.rack, out);
}

pub(crate) fn decode_location(input: &mut Reader<'_>) -> Result<Location, Error> {
    let datacenter = decode_name(input)?;
    let rack = decode_name(input)?;
    Ok(Location { datacenter, rack })
}

pub(crate) fn encode_place(place: Position, out: &mut Writer) {
    out.u64(place.segment.0);
    out.u32(place.offset);
}

pub(crate) fn decode_place(input: &mut Reader<'_>) -> Result<Position, Error> {
    let segment = input.u64()?;
    let offset = input.u32()?;
    Ok(Position::new(segment, offset))
}

pub(crate) fn encode_strategy(strategy: &Strategy, out: &mut Writer) {
    match strategy {
        Strategy::Local => out.u8(0),
        Strategy::Simple(factor) => {
            out.u8(1);
            out.u32(*factor);
        }
        Strategy::Network(factors) => {
            out.u8(2);
            encode_list(factors, out, |(name, factor), out| {
                encode_name(name, out);
                out.u32(*factor);
            });
        }
    }
}

pub(crate) fn decode_strategy(input: &mut Reader<'_>) -> Result<Strategy, Error> {
    let start = input.clone();
    match input.u8()? {
        0 => Ok(Strategy::Local),
        1 => Ok(Strategy::Simple(input.u32()?)),
        2 => {
            let factors = decode_list(input, |input| Ok((decode_name(input)?, input.u32()?)))?;
            Ok(Strategy::Network(in_order(factors, &start)?))
        }
        _ => Err(start.error("a replication strategy known here")),
    }
}

pub(crate) fn encode_list<T>(
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    out: &mut Writer,
    encode: impl Fn(T, &mut Writer),
) {
    let items = items.into_iter();
    out.uvint(items.len() as u64);
    items.for_each(|item| encode(item, out));
}

/// Decodes a list. Each element has at least one byte, so a wrong count cannot allocate more memory than the input justifies.
pub(crate) fn decode_list<'a, T>(
    input: &mut Reader<'a>,
    decode: impl Fn(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let start = input.clone();
    let count = input.uvint()?;
    if count > input.remaining() as u64 {
        return Err(start.error("a count of elements that follow"));
    }
    (0..count).map(|_| decode(input)).collect()
}

/// A map of these entries. Keys must ascend, so that a state has only one encoding.
pub(crate) fn in_order<K: Ord, V>(entries: Vec<(K, V)>, start: &Reader<'_>) -> Result<BTreeMap<K, V>, Error> {
    if entries.is_sorted_by(|one, other| one.0 < other.0) {
        Ok(entries.into_iter().collect())
    } else {
        Err(start.error("keys that ascend"))
    }
}

pub(crate) fn encode_option<T>(value: Option<T>, out: &mut Writer, encode: impl Fn(T, &mut Writer)) {
    out.bool(value.is_some());
    if let Some(value) = value {
        encode(value, out);
    }
}

pub(crate) fn decode_option<'a, T>(
    input: &mut Reader<'a>,
    decode: impl Fn(&mut Reader<'a>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    input.bool()?.then(|| decode(input)).transpose()
}
