//! Messages of a copy.
//!
//! ```text
//! request := version: u8, schema epoch: u64, tablets: list of (tablet: u32, needed: u64)                 (big-endian)
//! part := 0, state of the replica (`ilion_replica::CopiedState`) of the tablets that it has   the first part
//!       | 1, table: uuid, name: string, components: list of (name: string, bytes: u64)    an SSTable begins
//!       | 2, component: u16, offset: u64, crc: u32 (of the bytes), bytes                   the next bytes of its components, in order
//!       | 3                                                                               the last part
//! list := count: vint, elements    string := length: vint, bytes
//! ```

use bytes::Bytes;
use ilion_codec::{Error as CodecError, Reader, Writer, crc32};
use ilion_schema::TableId;
use uuid::Uuid;

const VERSION: u8 = 1;
const STATE: u8 = 0;
const SSTABLE: u8 = 1;
const PIECE: u8 = 2;
const END: u8 = 3;
/// A number and an offset.
const TABLET_BYTES: usize = 4 + 8;
/// An empty name and a size.
const COMPONENT_BYTES_MIN: usize = 1 + 8;

/// The request for tablets of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CopyRequest {
    /// The schema of the node that asks; only a node with the same schema can answer.
    pub schema_epoch: u64,
    /// The tablets. The copy must have all records below the offset.
    pub tablets: Vec<(u32, u64)>,
}

/// A part of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CopyMessage {
    State(Bytes),
    SSTable {
        table: TableId,
        name: String,
        components: Vec<(String, u64)>,
    },
    Piece {
        component: u16,
        offset: u64,
        crc: u32,
        bytes: Bytes,
    },
    End,
}

impl CopyRequest {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(VERSION);
        out.u64(self.schema_epoch);
        out.uvint(self.tablets.len() as u64);
        for (tablet, needed) in &self.tablets {
            out.u32(*tablet);
            out.u64(*needed);
        }
        out.into_vec()
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let mut input = Reader::new(bytes);
        let start = input.clone();
        if input.u8()? != VERSION {
            return Err(start.error("version 1 of a request to copy (a newer Ilion sent this)"));
        }
        let schema_epoch = input.u64()?;
        let count = input.uvint_len()?;
        if count > input.remaining() / TABLET_BYTES {
            return Err(input.error("tablets that the request has room for"));
        }
        let mut tablets = Vec::with_capacity(count);
        for _ in 0..count {
            tablets.push((input.u32()?, input.u64()?));
        }
        ended(&input)?;
        Ok(Self {
            schema_epoch,
            tablets,
        })
    }
}

impl CopyMessage {
    pub fn encode(&self) -> Bytes {
        let mut out = Writer::new();
        match self {
            Self::State(state) => {
                out.u8(STATE);
                out.bytes(state);
            }
            Self::SSTable {
                table,
                name,
                components,
            } => {
                out.u8(SSTABLE);
                out.bytes(table.0.as_bytes());
                out.bytes_vint(name.as_bytes());
                out.uvint(components.len() as u64);
                for (name, bytes) in components {
                    out.bytes_vint(name.as_bytes());
                    out.u64(*bytes);
                }
            }
            Self::Piece {
                component,
                offset,
                crc,
                bytes,
            } => {
                out.u8(PIECE);
                out.u16(*component);
                out.u64(*offset);
                out.u32(*crc);
                out.bytes(bytes);
            }
            Self::End => out.u8(END),
        }
        out.into_vec().into()
    }

    /// The next bytes of a component, as a part.
    pub fn piece(component: u16, offset: u64, bytes: Bytes) -> Self {
        let crc = crc32(&bytes);
        Self::Piece {
            component,
            offset,
            crc,
            bytes,
        }
    }

    pub fn decode(bytes: &Bytes) -> Result<Self, CodecError> {
        let mut input = Reader::new(bytes);
        let start = input.clone();
        let part = match input.u8()? {
            STATE => return Ok(Self::State(bytes.slice(1..))),
            SSTABLE => {
                let table = TableId(Uuid::from_bytes(input.uuid_bytes()?));
                let name = text(&mut input)?;
                let count = input.uvint_len()?;
                if count > input.remaining() / COMPONENT_BYTES_MIN {
                    return Err(input.error("components that the part has room for"));
                }
                let mut components = Vec::with_capacity(count);
                for _ in 0..count {
                    components.push((text(&mut input)?, input.u64()?));
                }
                Self::SSTable {
                    table,
                    name,
                    components,
                }
            }
            PIECE => {
                let (component, offset, crc) = (input.u16()?, input.u64()?, input.u32()?);
                let at = bytes.len() - input.remaining();
                return Ok(Self::Piece {
                    component,
                    offset,
                    crc,
                    bytes: bytes.slice(at..),
                });
            }
            END => Self::End,
            _ => return Err(start.error("a part of a copy (a newer Ilion sent this)")),
        };
        ended(&input)?;
        Ok(part)
    }
}

fn text(input: &mut Reader<'_>) -> Result<String, CodecError> {
    let start = input.clone();
    let bytes = input.bytes_vint()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| start.error("a name in UTF-8"))
}

fn ended(input: &Reader<'_>) -> Result<(), CodecError> {
    match input.is_empty() {
        true => Ok(()),
        false => Err(input.error("the end of the message")),
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::Seeded;

    use super::*;

    fn parts() -> Vec<CopyMessage> {
        vec![
            CopyMessage::State(Bytes::from_static(b"state")),
            CopyMessage::SSTable {
                table: TableId(Uuid::from_u128(7)),
                name: "nb-1-big".to_owned(),
                components: vec![("Statistics.db".to_owned(), 9), ("Data.db".to_owned(), 1 << 40)],
            },
            CopyMessage::piece(1, 300, Bytes::from_static(b"bytes")),
            CopyMessage::piece(0, 0, Bytes::new()),
            CopyMessage::End,
        ]
    }

    fn request() -> CopyRequest {
        CopyRequest {
            schema_epoch: 3,
            tablets: vec![(1, 0), (7, 1 << 40)],
        }
    }

    #[test]
    fn messages_are_read_back() {
        assert_eq!(CopyRequest::decode(&request().encode()), Ok(request()));
        for part in parts() {
            assert_eq!(CopyMessage::decode(&part.encode()), Ok(part));
        }
    }

    #[test]
    fn damaged_messages_are_errors_or_others_and_never_take_more_memory_than_they_have_bytes() {
        let mut random = Seeded::new(1);
        let requests = std::iter::once(Bytes::from(request().encode()));
        for bytes in requests.chain(parts().iter().map(CopyMessage::encode)) {
            for _ in 0..2000 {
                let mut changed = bytes.to_vec();
                for _ in 0..=random.below(2) {
                    let at = random.below(changed.len() as u64) as usize;
                    changed[at] = random.next_u64() as u8;
                }
                changed.truncate(random.below(changed.len() as u64 + 1) as usize);
                let changed = Bytes::from(changed);
                drop((CopyRequest::decode(&changed), CopyMessage::decode(&changed)));
            }
        }
        let many = [&[VERSION][..], &[0; 8], &[0xf0, 0xff, 0xff, 0xff, 0xff]].concat();
        assert!(CopyRequest::decode(&many).is_err());
    }
}
