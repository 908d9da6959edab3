//! Parameters of statements: the tail of QUERY and EXECUTE, and (without values and paging) of BATCH.
//!
//! ```text
//! params := consistency, flags (v3, v4: u8; v5: i32), then each if flagged:
//!           values, page_size: i32, paging_state: bytes, serial_consistency: u16, timestamp_micros: i64,
//!           keyspace: string, now_secs: i32
//! ```

use bytes::Bytes;

use crate::consistency::Consistency;
use crate::error::Error;
use crate::notation::{Input, put_bytes, put_consistency, put_i32, try_string};
use crate::request::Values;
use crate::version::Version;

const VALUES: u32 = 0x001;
const SKIP_METADATA: u32 = 0x002;
const PAGE_SIZE: u32 = 0x004;
const PAGING_STATE: u32 = 0x008;
const SERIAL_CONSISTENCY: u32 = 0x010;
const TIMESTAMP: u32 = 0x020;
const NAMES: u32 = 0x040;
const KEYSPACE: u32 = 0x080;
const NOW: u32 = 0x100;

/// Parameters of a statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueryParams {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The bind values.
    pub values: Values,
    /// The client knows the result metadata, so the answer may leave it out.
    pub skip_metadata: bool,
    /// Rows in a page; `None` means no paging (on the wire, also a size of zero or less).
    pub page_size: Option<u32>,
    /// The paging state of the previous page.
    pub paging_state: Option<Bytes>,
    /// Consistency of the conditional part of lightweight transactions. The decoder does not check that it is SERIAL or LOCAL_SERIAL.
    pub serial_consistency: Option<Consistency>,
    /// The client's write timestamp.
    pub timestamp_micros: Option<i64>,
    /// Overrides the keyspace of the connection (v5).
    pub keyspace: Option<String>,
    /// Overrides the server's clock for TTLs (v5).
    pub now_secs: Option<i32>,
}

impl QueryParams {
    fn flags(&self) -> u32 {
        let bit = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        bit(!self.values.is_empty(), VALUES)
            | bit(self.skip_metadata, SKIP_METADATA)
            | bit(self.page_size.is_some(), PAGE_SIZE)
            | bit(self.paging_state.is_some(), PAGING_STATE)
            | bit(!self.values.is_empty() && self.values.names().is_some(), NAMES)
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        let tail = Tail {
            serial_consistency: self.serial_consistency,
            timestamp_micros: self.timestamp_micros,
            keyspace: self.keyspace.as_deref(),
            now_secs: self.now_secs,
        };
        put_consistency(out, self.consistency);
        put_flags(out, version, self.flags() | tail.flags())?;
        if !self.values.is_empty() {
            self.values.encode(out, version)?;
        }
        if let Some(page_size) = self.page_size {
            put_i32(out, i32::try_from(page_size).unwrap_or(i32::MAX));
        }
        if let Some(paging_state) = &self.paging_state {
            put_bytes(out, Some(paging_state));
        }
        tail.encode(out)
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let consistency = input.consistency()?;
        let flags = take_flags(input, version)?;
        let values = match (flags & VALUES != 0, flags & NAMES != 0) {
            (false, _) => Values::default(),
            (true, false) => Values::decode(input, version)?,
            (true, true) => Values::decode_named(input, version)?,
        };
        let page_size = if flags & PAGE_SIZE != 0 {
            u32::try_from(input.i32()?).ok().filter(|&size| size > 0)
        } else {
            None
        };
        let paging_state = if flags & PAGING_STATE != 0 {
            input.bytes()?
        } else {
            None
        };
        let tail = OwnedTail::decode(input, flags)?;
        Ok(Self {
            consistency,
            values,
            skip_metadata: flags & SKIP_METADATA != 0,
            page_size,
            paging_state,
            serial_consistency: tail.serial_consistency,
            timestamp_micros: tail.timestamp_micros,
            keyspace: tail.keyspace,
            now_secs: tail.now_secs,
        })
    }
}

/// The flags field: one byte in v3 and v4, four in v5.
pub(super) fn put_flags(out: &mut Vec<u8>, version: Version, flags: u32) -> Result<(), Error> {
    if version >= Version::V5 {
        out.extend_from_slice(&flags.to_be_bytes());
        return Ok(());
    }
    if flags & (KEYSPACE | NOW) != 0 {
        return Err(Error::refused(
            "a keyspace or a time of now in a request needs protocol v5",
        ));
    }
    out.push(flags.to_be_bytes()[3]);
    Ok(())
}

/// Reads the flags field.
pub(super) fn take_flags(input: &mut Input<'_>, version: Version) -> Result<u32, Error> {
    if version >= Version::V5 {
        Ok(input.reader().u32()?)
    } else {
        Ok(u32::from(input.u8()?))
    }
}

/// The last fields of QUERY, EXECUTE and BATCH, for encoding.
pub(super) struct Tail<'a> {
    pub serial_consistency: Option<Consistency>,
    pub timestamp_micros: Option<i64>,
    pub keyspace: Option<&'a str>,
    pub now_secs: Option<i32>,
}

/// The fields of [`Tail`], decoded.
pub(super) struct OwnedTail {
    pub serial_consistency: Option<Consistency>,
    pub timestamp_micros: Option<i64>,
    pub keyspace: Option<String>,
    pub now_secs: Option<i32>,
}

impl Tail<'_> {
    pub fn flags(&self) -> u32 {
        let bit = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
        bit(self.serial_consistency.is_some(), SERIAL_CONSISTENCY)
            | bit(self.timestamp_micros.is_some(), TIMESTAMP)
            | bit(self.keyspace.is_some(), KEYSPACE)
            | bit(self.now_secs.is_some(), NOW)
    }

    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), Error> {
        if let Some(consistency) = self.serial_consistency {
            put_consistency(out, consistency);
        }
        if let Some(timestamp_micros) = self.timestamp_micros {
            out.extend_from_slice(&timestamp_micros.to_be_bytes());
        }
        if let Some(keyspace) = self.keyspace {
            try_string(out, "the keyspace", keyspace)?;
        }
        if let Some(now_secs) = self.now_secs {
            put_i32(out, now_secs);
        }
        Ok(())
    }
}

impl OwnedTail {
    pub fn decode(input: &mut Input<'_>, flags: u32) -> Result<Self, Error> {
        let serial_consistency = if flags & SERIAL_CONSISTENCY != 0 {
            Some(input.consistency()?)
        } else {
            None
        };
        let timestamp_micros = if flags & TIMESTAMP != 0 {
            Some(timestamp(input.i64()?)?)
        } else {
            None
        };
        let keyspace = if flags & KEYSPACE != 0 {
            Some(input.string()?)
        } else {
            None
        };
        let now_secs = if flags & NOW != 0 {
            Some(input.i32()?)
        } else {
            None
        };
        Ok(Self {
            serial_consistency,
            timestamp_micros,
            keyspace,
            now_secs,
        })
    }
}

/// Compat: the smallest `i64` means "no timestamp" inside Cassandra, so clients may not send it.
fn timestamp(micros: i64) -> Result<i64, Error> {
    if micros == i64::MIN {
        return Err(Error::refused(format!(
            "Out of bound timestamp, must be in [{}, {}] (got {micros})",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(micros)
}
