//! The bytes of a [`ClusterState`]. A node stores them and then logs [`crate::Change::Flushed`] for [`crate::META_TABLET`], so that the
//! meta log may be trimmed. The node stores the changes of the schema beside it.
//!
//! ```text
//! snapshot := magic: "ILCS", version: u8, the fields of the state in their order, crc: u32
//! ```

use std::collections::BTreeSet;

use ilion_codec::{Error as CodecError, Reader, Writer, crc32};

use crate::fields::{
    decode_endpoint, decode_list, decode_location, decode_name, decode_option, decode_place, decode_strategy,
    decode_uuid, encode_endpoint, encode_list, encode_location, encode_name, encode_option, encode_place,
    encode_strategy, encode_uuid, in_order,
};
use crate::logged_snapshot::Snapshots;
use crate::placement::Node;
use crate::state::{
    ClusterState, FEATURE_LEVEL_MAX, MEMBERS_MAX, Member, Phase, SchemaState, Transition, TransitionKind,
};
use crate::tablets::Tablets;
use crate::topology::FORMER_MAX;
use crate::window::Windows;

const MAGIC: &[u8; 4] = b"ILCS";
const VERSION: u8 = 2;

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SnapshotError {
    /// The bytes break the format.
    #[error("the snapshot of the cluster's state is damaged: {0}; take that of another node")]
    Damaged(#[from] CodecError),
    /// The bytes are well formed, but the state breaks a rule.
    #[error("the snapshot of the cluster's state is damaged: expected {rule}; take that of another node")]
    Inconsistent {
        /// The rule.
        rule: &'static str,
    },
    /// A newer version wrote it.
    #[error(
        "the snapshot has {what} {found}, this version of Ilion understands {known}; upgrade this node and start it again"
    )]
    Newer {
        /// What is unknown here.
        what: &'static str,
        /// Its number.
        found: u32,
        /// The highest that is known here.
        known: u32,
    },
}

impl ClusterState {
    /// The bytes of the state.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(MAGIC);
        out.u8(VERSION);
        self.encode_fields(&mut out);
        let crc = crc32(out.as_slice());
        out.u32(crc);
        out.into_vec()
    }

    /// Reads a state.
    ///
    /// # Errors
    /// The bytes are damaged, or a newer version wrote them.
    pub fn decode(bytes: &[u8]) -> Result<Self, SnapshotError> {
        let whole = Reader::new(bytes);
        let content = bytes
            .strip_prefix(MAGIC)
            .ok_or_else(|| whole.error("a snapshot (ILCS)"))?;
        match content.first() {
            Some(&VERSION) => {}
            Some(version) => return Err(newer("version", u32::from(*version), u32::from(VERSION))),
            None => return Err(whole.error("a version").into()),
        }
        let (checked, crc) = bytes
            .split_last_chunk()
            .ok_or_else(|| whole.error("a checksum"))?;
        if crc32(checked) != u32::from_be_bytes(*crc) {
            return Err(whole.error("a snapshot that its checksum fits").into());
        }
        let mut input = Reader::new(checked);
        input.skip(MAGIC.len() + 1)?;
        let state = Self::decode_fields(&mut input)?;
        if !input.is_empty() {
            return Err(input.error("the end of the snapshot").into());
        }
        state
            .check()
            .map_err(|rule| SnapshotError::Inconsistent { rule })?;
        Ok(state)
    }

    fn encode_fields(&self, out: &mut Writer) {
        encode_uuid(self.cluster, out);
        out.u32(self.level);
        out.u32(self.tablets.count());
        out.i64(self.down_max_micros);
        encode_place(self.position, out);
        out.i64(self.time_micros);
        out.u32(self.next_node);
        out.u64(self.next_transition);
        encode_list(&self.members, out, |(node, member), out| {
            out.u32(*node);
            member.encode(out);
        });
        encode_list(&self.former, out, |(host, node), out| {
            encode_uuid(*host, out);
            out.u32(*node);
        });
        // No node has the number 0.
        encode_list(&self.owners, out, |owner, out| out.u32(owner.unwrap_or(0)));
        out.u64(self.ring_version);
        encode_option(self.transition.as_ref(), out, |transition, out| {
            transition.encode(out)
        });
        self.schema.encode(out);
        encode_list(&self.flushed, out, |((tablet, node), position), out| {
            out.u32(*tablet);
            out.u32(*node);
            encode_place(*position, out);
        });
        encode_list(&self.trimmed, out, |(tablet, position), out| {
            out.u32(*tablet);
            encode_place(*position, out);
        });
        self.snapshots.encode(out);
        self.windows.encode(out);
    }

    fn decode_fields(input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
        let cluster = decode_uuid(input)?;
        let level = input.u32()?;
        if level > FEATURE_LEVEL_MAX {
            return Err(newer("feature level", level, FEATURE_LEVEL_MAX));
        }
        let tablets = Tablets::new(input.u32()?).ok_or_else(|| input.error("1 to 4096 tablets"))?;
        let down_max_micros = input.i64()?;
        let position = decode_place(input)?;
        let time_micros = input.i64()?;
        let next_node = input.u32()?;
        let next_transition = input.u64()?;
        let start = input.clone();
        let members = in_order(
            decode_list(input, |input| Ok((input.u32()?, Member::decode(input)?)))?,
            &start,
        )?;
        let former = in_order(
            decode_list(input, |input| Ok((decode_uuid(input)?, input.u32()?)))?,
            &start,
        )?;
        if members.len() > MEMBERS_MAX || former.len() > FORMER_MAX {
            return Err(start.error("at most 1024 members").into());
        }
        let owners = decode_list(input, |input| Ok(Some(input.u32()?).filter(|node| *node != 0)))?;
        let ring_version = input.u64()?;
        let transition = decode_option(input, Transition::decode)?;
        let schema = SchemaState::decode(input)?;
        let flushed = decode_list(input, |input| {
            Ok(((input.u32()?, input.u32()?), decode_place(input)?))
        })?;
        let trimmed = decode_list(input, |input| Ok((input.u32()?, decode_place(input)?)))?;
        let snapshots = Snapshots::decode(input)?;
        let windows = Windows::decode(input)?;
        Ok(Self {
            cluster,
            tablets,
            down_max_micros,
            level,
            position,
            time_micros,
            next_node,
            next_transition,
            members,
            former,
            owners,
            ring_version,
            transition,
            schema,
            flushed: in_order(flushed, &start)?,
            trimmed: in_order(trimmed, &start)?,
            snapshots,
            windows,
        })
    }
}

fn newer(what: &'static str, found: u32, known: u32) -> SnapshotError {
    SnapshotError::Newer { what, found, known }
}

impl Member {
    fn encode(&self, out: &mut Writer) {
        encode_uuid(self.host, out);
        encode_uuid(self.session, out);
        out.u32(self.incarnation);
        encode_endpoint(&self.endpoint, out);
        encode_location(&self.location, out);
        out.u8(match self.phase {
            Phase::Joining => 0,
            Phase::Normal => 1,
            Phase::Leaving => 2,
        });
        out.u32(self.understands);
        out.i64(self.heard_micros);
        out.u64(self.schema_epoch);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            host: decode_uuid(input)?,
            session: decode_uuid(input)?,
            incarnation: input.u32()?,
            endpoint: decode_endpoint(input)?,
            location: decode_location(input)?,
            phase: match input.u8()? {
                0 => Phase::Joining,
                1 => Phase::Normal,
                2 => Phase::Leaving,
                _ => return Err(input.error("a phase before this byte")),
            },
            understands: input.u32()?,
            heard_micros: input.i64()?,
            schema_epoch: input.u64()?,
        })
    }
}

impl Transition {
    fn encode(&self, out: &mut Writer) {
        out.u64(self.number);
        match &self.kind {
            TransitionKind::Join { node, replaces } => {
                out.u8(0);
                out.u32(*node);
                encode_option(*replaces, out, |node, out| out.u32(node));
            }
            TransitionKind::Leave { node } => {
                out.u8(1);
                out.u32(*node);
            }
            TransitionKind::Move => out.u8(2),
            TransitionKind::Replication { keyspace, strategy } => {
                out.u8(3);
                encode_name(keyspace, out);
                encode_strategy(strategy, out);
            }
        }
        encode_list(&self.moves, out, |(slice, node), out| {
            out.u32(*slice);
            out.u32(*node);
        });
        encode_list(&self.ready, out, |node, out| out.u32(*node));
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let start = input.clone();
        let number = input.u64()?;
        let kind = match input.u8()? {
            0 => TransitionKind::Join {
                node: input.u32()?,
                replaces: decode_option(input, Reader::u32)?,
            },
            1 => TransitionKind::Leave { node: input.u32()? },
            2 => TransitionKind::Move,
            3 => TransitionKind::Replication {
                keyspace: decode_name(input)?,
                strategy: decode_strategy(input)?,
            },
            _ => return Err(start.error("a kind of transition known here")),
        };
        let moves = decode_list(input, |input| Ok((input.u32()?, input.u32()?)))?;
        let ready: Vec<Node> = decode_list(input, Reader::u32)?;
        Ok(Self {
            number,
            kind,
            moves: in_order(moves, &start)?,
            ready: ready.into_iter().collect::<BTreeSet<_>>(),
        })
    }
}

impl SchemaState {
    fn encode(&self, out: &mut Writer) {
        out.u64(self.epoch);
        out.bytes(&self.digest);
        out.u64(self.placement_epoch);
        encode_list(&self.keyspaces, out, |(name, strategy), out| {
            encode_name(name, out);
            encode_strategy(strategy, out);
        });
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, CodecError> {
        let epoch = input.u64()?;
        let digest = input.uuid_bytes()?;
        let placement_epoch = input.u64()?;
        let start = input.clone();
        let keyspaces = decode_list(input, |input| Ok((decode_name(input)?, decode_strategy(input)?)))?;
        Ok(Self {
            epoch,
            digest,
            placement_epoch,
            keyspaces: in_order(keyspaces, &start)?,
        })
    }
}
