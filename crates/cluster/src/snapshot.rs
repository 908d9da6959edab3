//! The bytes of a [`ClusterState`]. A node stores them and then logs [`crate::Change::Flushed`] for [`crate::META_TABLET`], so that the
//! meta log may be trimmed. The node stores the changes of the schema beside it.
//!
//! ```text
//! snapshot := magic: "ILCS", version: u8, the fields of the state in their order, crc: u32
//! ```
//! Version 3 has the releases of members, version 4 also the digests of outcomes. They are written from feature levels 2 and 3 on, so every
//! member can read them.

use std::collections::BTreeSet;

use ilion_codec::{Error as CodecError, Reader, Writer, crc32};

use crate::fields::{
    decode_endpoint, decode_list, decode_location, decode_name, decode_option, decode_place, decode_strategy,
    decode_uuid, encode_endpoint, encode_list, encode_location, encode_name, encode_option, encode_place,
    encode_strategy, encode_uuid, in_order,
};
use crate::levels::{FEATURE_LEVEL_MAX, Feature};
use crate::logged_snapshot::Snapshots;
use crate::outcomes::Outcomes;
use crate::placement::Node;
use crate::state::{ClusterState, MEMBERS_MAX, Member, Phase, SchemaState, Transition, TransitionKind};
use crate::tablets::Tablets;
use crate::topology::FORMER_MAX;
use crate::window::Windows;

const MAGIC: &[u8; 4] = b"ILCS";
const VERSION: u8 = 2;
const VERSION_WITH_RELEASES: u8 = 3;
const VERSION_WITH_DIGESTS: u8 = 4;

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
        let version = self.snapshot_version();
        out.u8(version);
        self.encode_fields(version, &mut out);
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
        let version = match content.first() {
            Some(version @ (&VERSION | &VERSION_WITH_RELEASES | &VERSION_WITH_DIGESTS)) => *version,
            Some(version) => {
                return Err(newer(
                    "version",
                    u32::from(*version),
                    u32::from(VERSION_WITH_DIGESTS),
                ));
            }
            None => return Err(whole.error("a version").into()),
        };
        let (checked, crc) = bytes
            .split_last_chunk()
            .ok_or_else(|| whole.error("a checksum"))?;
        if crc32(checked) != u32::from_be_bytes(*crc) {
            return Err(whole.error("a snapshot that its checksum fits").into());
        }
        let mut input = Reader::new(checked);
        input.skip(MAGIC.len() + 1)?;
        let state = Self::decode_fields(version, &mut input)?;
        if !input.is_empty() {
            return Err(input.error("the end of the snapshot").into());
        }
        if version != state.snapshot_version() {
            return Err(whole
                .error("a snapshot of the version that belongs to its feature level")
                .into());
        }
        state
            .check()
            .map_err(|rule| SnapshotError::Inconsistent { rule })?;
        Ok(state)
    }

    fn snapshot_version(&self) -> u8 {
        match (self.has(Feature::Releases), self.has(Feature::Digests)) {
            (_, true) => VERSION_WITH_DIGESTS,
            (true, false) => VERSION_WITH_RELEASES,
            (false, false) => VERSION,
        }
    }

    fn encode_fields(&self, version: u8, out: &mut Writer) {
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
            member.encode(version, out);
        });
        encode_list(&self.former, out, |(host, node), out| {
            encode_uuid(*host, out);
            out.u32(*node);
        });
        // No node has the number 0, so 0 means no owner.
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
        if version >= VERSION_WITH_DIGESTS {
            self.outcomes.encode(out);
        }
        self.snapshots.encode(out);
        self.windows.encode(out);
    }

    fn decode_fields(version: u8, input: &mut Reader<'_>) -> Result<Self, SnapshotError> {
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
            decode_list(input, |input| Ok((input.u32()?, Member::decode(version, input)?)))?,
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
        let outcomes = match version {
            VERSION_WITH_DIGESTS.. => Outcomes::decode(input)?,
            _ => Outcomes::default(),
        };
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
            outcomes,
            snapshots,
            windows,
        })
    }
}

fn newer(what: &'static str, found: u32, known: u32) -> SnapshotError {
    SnapshotError::Newer { what, found, known }
}

impl Member {
    fn encode(&self, version: u8, out: &mut Writer) {
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
        if version >= VERSION_WITH_RELEASES {
            encode_option(self.release.as_deref(), out, encode_name);
        }
    }

    fn decode(version: u8, input: &mut Reader<'_>) -> Result<Self, CodecError> {
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
            release: match version {
                VERSION_WITH_RELEASES.. => decode_option(input, decode_name)?,
                _ => None,
            },
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

#[cfg(test)]
mod tests {
    use ilion_commitlog::{Origin, Position};
    use uuid::Uuid;

    use super::*;
    use crate::{BlockDigest, Change, Endpoint, Entry, Join, Location, Record, Takes, apply};

    /// The state of [`state`], as the version before feature level 2 wrote it.
    const OF_LEVEL_1: &str = "494c435302000000000000000000000000000000c10000000100000002000000000000003c00000000000000020000000000000000000000\
                              020000000200000000000000010100000001000000000000000000000000000000010000000000000000000000000000000200000001047f\
                              00000123521b58036463310272310100000001000000000000000200000000000000000002000000010000000100000000000000010000\
                              000000000000000000000000000000000000000000000000000000000000000000000000000f0770dd";

    /// A cluster of one node.
    fn state(level: u32) -> ClusterState {
        let cluster = Uuid::from_u128(0xC1);
        let entry = |number: u64, change| Entry {
            position: Position::new(number, 0),
            time_micros: i64::try_from(number).unwrap(),
            origin: Origin::default(),
            record: Record { cluster, change },
        };
        let create = Change::Create {
            tablets: 2,
            level,
            down_max_micros: 60,
        };
        let join = Change::Join(Join {
            host: Uuid::from_u128(1),
            session: Uuid::from_u128(2),
            endpoint: Endpoint {
                ip: [127, 0, 0, 1].into(),
                native_port: 9042,
                storage_port: 7000,
            },
            location: Location {
                datacenter: "dc1".to_owned(),
                rack: "r1".to_owned(),
            },
            understands: level,
            takes: Takes::Slices(vec![0, 1]),
        });
        let (created, _) = apply(None, &entry(1, create)).unwrap();
        apply(Some(&created), &entry(2, join)).unwrap().0
    }

    #[test]
    fn snapshots_of_level_1_are_those_of_older_versions() {
        let bytes = state(1).encode();
        let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, OF_LEVEL_1);
        assert_eq!(ClusterState::decode(&bytes), Ok(state(1)));
    }

    #[test]
    fn releases_are_in_snapshots_of_level_2() {
        let mut state = state(2);
        state.members.get_mut(&1).unwrap().release = Some("5.0.9".to_owned());
        let bytes = state.encode();
        assert_eq!(bytes[4], 3);
        assert_eq!(ClusterState::decode(&bytes), Ok(state));
    }

    #[test]
    fn digests_are_in_snapshots_of_level_3() {
        let mut state = state(3);
        let told = BlockDigest {
            block: 7,
            digest: [8; 16],
        };
        state.tell_digests(1, &[(1, told)]).unwrap();
        let bytes = state.encode();
        assert_eq!(bytes[4], 4);
        assert_eq!(ClusterState::decode(&bytes), Ok(state));
    }
}
