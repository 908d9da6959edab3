//! [`Record`]: one record of the meta log.
//!
//! ```text
//! record := version: u8, cluster: uuid, kind: u8, fields of the kind, crc: u32 (of all before it)      (big-endian)
//! ```
//! The record is the body of a log envelope, which has the origin and the time. A kind or version that is not known here is an error of
//! its own ([`Unreadable::Newer`]): the reader must be upgraded. Not here: whether a record makes sense (`apply`).

use bytes::Bytes;
use ilion_codec::{Error as CodecError, Reader, Writer, crc32};
use ilion_commitlog::Position;
use uuid::Uuid;

use crate::fields::{
    Endpoint, decode_endpoint, decode_list, decode_location, decode_name, decode_option, decode_place,
    decode_strategy, decode_uuid, encode_endpoint, encode_list, encode_location, encode_name, encode_option,
    encode_place, encode_strategy, encode_uuid,
};
use crate::logged_snapshot::SnapshotPart;
use crate::outcomes::BlockDigest;
use crate::placement::{Location, Node, Strategy};

/// The largest record. Logs accept 1 MiB by default, envelope included.
pub const RECORD_BYTES_MAX: usize = (1 << 20) - 1024;

const VERSION: u8 = 1;
const CRC_BYTES: usize = 4;

/// One change of the cluster, as its sender wants it. Whether it takes effect is decided when it is applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// The cluster that the sender belongs to.
    pub cluster: Uuid,
    /// The change.
    pub change: Change,
}

/// A requested change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The first record: creates the cluster.
    Create {
        /// Number of tablets, for ever.
        tablets: u32,
        /// The rules by which records are evaluated.
        level: u32,
        /// How long a silent node's records are kept in the logs.
        down_max_micros: i64,
    },
    /// A new node. Its sender has no number yet.
    Join(Join),
    /// A member's process started; the envelope has the new incarnation.
    Start {
        /// Distinguishes processes with the same host id.
        session: Uuid,
        /// Where it listens now.
        endpoint: Endpoint,
        /// The highest feature level that it understands.
        understands: u32,
    },
    /// The sender has copied its data of the transition, and follows the logs.
    Ready {
        /// Which transition.
        transition: u64,
        /// The schema epoch at which the sender computed what it must copy.
        schema_epoch: u64,
    },
    /// A member gives all of its slices away and leaves.
    Leave {
        /// The node that leaves: the sender, or a lost node.
        node: Node,
        /// The new owner of each of its slices.
        moves: Vec<(u32, Node)>,
    },
    /// Slices change their owner.
    Move {
        /// The new owners.
        moves: Vec<(u32, Node)>,
    },
    /// The transition is given up.
    Cancel {
        /// Which transition.
        transition: u64,
    },
    /// A change of the schema.
    Schema(SchemaRecord),
    /// How much of the logs the sender has on disk.
    Flushed {
        /// For each tablet, the position up to which it is flushed.
        positions: Vec<(u32, Position)>,
    },
    /// Asks to delete the logs up to these positions.
    Trim {
        /// For each tablet.
        positions: Vec<(u32, Position)>,
    },
    /// The sender is alive.
    Heartbeat {
        /// The schema that it has applied.
        schema_epoch: u64,
    },
    /// Records are evaluated by the rules of this level from here on.
    Level {
        /// The new level.
        level: u32,
    },
    /// A part of what the sender knows from this log.
    Snapshot(SnapshotPart),
    /// The sender's release. A member logs it once the cluster has [`crate::Feature::Releases`].
    Release {
        /// The release of Cassandra that its clients see.
        release: String,
    },
    /// What the commands in some blocks came to on the sender. A member logs it once the cluster has [`crate::Feature::EqualDigests`].
    Digests {
        /// A block of each of some tablets.
        blocks: Vec<(u32, BlockDigest)>,
    },
}

/// A node that wants to be a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Join {
    /// Its id, for as long as its data directory lives.
    pub host: Uuid,
    /// Distinguishes processes with the same host id.
    pub session: Uuid,
    /// Where it listens.
    pub endpoint: Endpoint,
    /// Its data center and rack.
    pub location: Location,
    /// The highest feature level that it understands.
    pub understands: u32,
    /// The slices that it takes over.
    pub takes: Takes,
}

/// The slices that a joining node takes over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// These slices, whoever owns them.
    Slices(Vec<u32>),
    /// All slices of a node, which it replaces.
    PlaceOf(Node),
}

/// A change of the schema, checked by its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaRecord {
    /// The schema epoch that the change was checked against. If there is a newer one, the sender must check again.
    pub checked_at: u64,
    /// The keyspaces whose replication it sets; `None` drops the keyspace.
    pub keyspaces: Vec<(String, Option<Strategy>)>,
    /// The change itself, opaque here.
    pub body: Bytes,
}

/// Why bytes are not a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The bytes break the format.
    #[error("the record is damaged: {0}")]
    Damaged(#[from] CodecError),
    /// A newer version wrote it.
    #[error(
        "the record has {what}, which this version of Ilion does not know; upgrade this node and start it again"
    )]
    Newer {
        /// What is unknown here.
        what: String,
    },
}

mod kind {
    pub(super) const CREATE: u8 = 1;
    pub(super) const JOIN: u8 = 2;
    pub(super) const START: u8 = 3;
    pub(super) const READY: u8 = 4;
    pub(super) const LEAVE: u8 = 5;
    pub(super) const MOVE: u8 = 6;
    pub(super) const CANCEL: u8 = 7;
    pub(super) const SCHEMA: u8 = 8;
    pub(super) const FLUSHED: u8 = 9;
    pub(super) const TRIM: u8 = 10;
    pub(super) const HEARTBEAT: u8 = 11;
    pub(super) const LEVEL: u8 = 12;
    pub(super) const SNAPSHOT: u8 = 13;
    pub(super) const RELEASE: u8 = 14;
    pub(super) const DIGESTS: u8 = 15;
}

impl Record {
    /// The bytes of the record. The caller refuses a record above [`RECORD_BYTES_MAX`] before it appends.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(VERSION);
        encode_uuid(self.cluster, &mut out);
        self.change.encode(&mut out);
        let crc = crc32(out.as_slice());
        out.u32(crc);
        out.into_vec()
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Damage, or a version or kind that is not known here. The caller must stop: a record is never skipped.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unreadable> {
        let whole = Reader::new(bytes);
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(whole.error("a record of at most 1 MiB").into());
        }
        if let Some(version) = bytes.first().filter(|version| **version != VERSION) {
            return Err(newer(format!("version {version}")));
        }
        let (content, crc) = bytes
            .split_last_chunk::<CRC_BYTES>()
            .ok_or_else(|| whole.error("a record with a checksum"))?;
        if crc32(content) != u32::from_be_bytes(*crc) {
            return Err(whole.error("a record that its checksum fits").into());
        }
        let mut input = Reader::new(content);
        input.u8()?;
        let cluster = decode_uuid(&mut input)?;
        let change = Change::decode(&mut input)?;
        if !input.is_empty() {
            return Err(input.error("the end of the record").into());
        }
        Ok(Self { cluster, change })
    }
}

fn newer(what: String) -> Unreadable {
    Unreadable::Newer { what }
}

impl Change {
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Create {
                tablets,
                level,
                down_max_micros,
            } => {
                out.u8(kind::CREATE);
                out.u32(*tablets);
                out.u32(*level);
                out.i64(*down_max_micros);
            }
            Self::Join(join) => {
                out.u8(kind::JOIN);
                join.encode(out);
            }
            Self::Start {
                session,
                endpoint,
                understands,
            } => {
                out.u8(kind::START);
                encode_uuid(*session, out);
                encode_endpoint(endpoint, out);
                out.u32(*understands);
            }
            Self::Ready {
                transition,
                schema_epoch,
            } => {
                out.u8(kind::READY);
                out.u64(*transition);
                out.u64(*schema_epoch);
            }
            Self::Leave { node, moves } => {
                out.u8(kind::LEAVE);
                out.u32(*node);
                encode_moves(moves, out);
            }
            Self::Move { moves } => {
                out.u8(kind::MOVE);
                encode_moves(moves, out);
            }
            Self::Cancel { transition } => {
                out.u8(kind::CANCEL);
                out.u64(*transition);
            }
            Self::Schema(schema) => {
                out.u8(kind::SCHEMA);
                schema.encode(out);
            }
            Self::Flushed { positions } => {
                out.u8(kind::FLUSHED);
                encode_positions(positions, out);
            }
            Self::Trim { positions } => {
                out.u8(kind::TRIM);
                encode_positions(positions, out);
            }
            Self::Heartbeat { schema_epoch } => {
                out.u8(kind::HEARTBEAT);
                out.u64(*schema_epoch);
            }
            Self::Level { level } => {
                out.u8(kind::LEVEL);
                out.u32(*level);
            }
            Self::Snapshot(part) => {
                out.u8(kind::SNAPSHOT);
                part.encode(out);
            }
            Self::Release { release } => {
                out.u8(kind::RELEASE);
                encode_name(release, out);
            }
            Self::Digests { blocks } => {
                out.u8(kind::DIGESTS);
                encode_list(blocks, out, |(tablet, told), out| {
                    out.u32(*tablet);
                    out.u64(told.block);
                    out.bytes(&told.digest);
                });
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Unreadable> {
        Ok(match input.u8()? {
            kind::CREATE => Self::Create {
                tablets: input.u32()?,
                level: input.u32()?,
                down_max_micros: input.i64()?,
            },
            kind::JOIN => Self::Join(Join::decode(input)?),
            kind::START => Self::Start {
                session: decode_uuid(input)?,
                endpoint: decode_endpoint(input)?,
                understands: input.u32()?,
            },
            kind::READY => Self::Ready {
                transition: input.u64()?,
                schema_epoch: input.u64()?,
            },
            kind::LEAVE => Self::Leave {
                node: input.u32()?,
                moves: decode_moves(input)?,
            },
            kind::MOVE => Self::Move {
                moves: decode_moves(input)?,
            },
            kind::CANCEL => Self::Cancel {
                transition: input.u64()?,
            },
            kind::SCHEMA => Self::Schema(SchemaRecord::decode(input)?),
            kind::FLUSHED => Self::Flushed {
                positions: decode_positions(input)?,
            },
            kind::TRIM => Self::Trim {
                positions: decode_positions(input)?,
            },
            kind::HEARTBEAT => Self::Heartbeat {
                schema_epoch: input.u64()?,
            },
            kind::LEVEL => Self::Level { level: input.u32()? },
            kind::SNAPSHOT => Self::Snapshot(SnapshotPart::decode(input)?),
            kind::RELEASE => Self::Release {
                release: decode_name(input)?,
            },
            kind::DIGESTS => Self::Digests {
                blocks: decode_list(input, |input| {
                    let (tablet, block) = (input.u32()?, input.u64()?);
                    let digest = input.uuid_bytes()?;
                    Ok((tablet, BlockDigest { block, digest }))
                })?,
            },
            unknown => return Err(newer(format!("kind {unknown}"))),
        })
    }
}

impl Join {
    fn encode(&self, out: &mut Writer) {
        encode_uuid(self.host, out);
        encode_uuid(self.session, out);
        encode_endpoint(&self.endpoint, out);
        encode_location(&self.location, out);
        out.u32(self.understands);
        match &self.takes {
            Takes::Slices(slices) => {
                out.u8(0);
                encode_list(slices, out, |slice, out| out.u32(*slice));
            }
            Takes::PlaceOf(node) => {
                out.u8(1);
                out.u32(*node);
            }
        }
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let host = decode_uuid(input)?;
        let session = decode_uuid(input)?;
        let endpoint = decode_endpoint(input)?;
        let location = decode_location(input)?;
        let understands = input.u32()?;
        let start = input.clone();
        let takes = match input.u8()? {
            0 => Takes::Slices(decode_list(input, Reader::u32)?),
            1 => Takes::PlaceOf(input.u32()?),
            _ => return Err(start.error("slices (0) or a node to replace (1)")),
        };
        Ok(Self {
            host,
            session,
            endpoint,
            location,
            understands,
            takes,
        })
    }
}

impl SchemaRecord {
    fn encode(&self, out: &mut Writer) {
        out.u64(self.checked_at);
        encode_list(&self.keyspaces, out, |(name, strategy), out| {
            encode_name(name, out);
            encode_option(strategy.as_ref(), out, encode_strategy);
        });
        out.bytes_vint(&self.body);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let checked_at = input.u64()?;
        let keyspaces = decode_list(input, |input| {
            Ok((decode_name(input)?, decode_option(input, decode_strategy)?))
        })?;
        let body = Bytes::copy_from_slice(input.bytes_vint()?);
        Ok(Self {
            checked_at,
            keyspaces,
            body,
        })
    }
}

fn encode_moves(moves: &[(u32, Node)], out: &mut Writer) {
    encode_list(moves, out, |(slice, node), out| {
        out.u32(*slice);
        out.u32(*node);
    });
}

fn decode_moves(input: &mut Reader<'_>) -> Result<Vec<(u32, Node)>, CodecError> {
    decode_list(input, |input| Ok((input.u32()?, input.u32()?)))
}

fn encode_positions(positions: &[(u32, Position)], out: &mut Writer) {
    encode_list(positions, out, |(tablet, position), out| {
        out.u32(*tablet);
        encode_place(*position, out);
    });
}

fn decode_positions(input: &mut Reader<'_>) -> Result<Vec<(u32, Position)>, CodecError> {
    decode_list(input, |input| Ok((input.u32()?, decode_place(input)?)))
}
