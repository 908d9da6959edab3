//! [`MetaSnapshot`]: what a node knows from the meta log up to a record. It stands for all records up to there.
//!
//! A node stores it, and logs it now and then, so that the beginning of the log can be deleted. It has every change of the schema since
//! the cluster was made: a newcomer adopts them one after another, as if it had read them in the log. They are checked against the digest
//! in the state.
//!
//! ```text
//! snapshot := magic: "ILMS", version: u8, state: bytes (length: vint), count: vint, changes, crc: u32 (of all before it)
//! change   := time: i64 (micros), body: bytes (length: vint)         ordered by epoch, beginning with 1             (big-endian)
//! ```

use bytes::Bytes;
use ilion_cluster::{ClusterState, SNAPSHOT_PARTS_MAX, SchemaState, SnapshotError, SnapshotPart};
use ilion_codec::{Error as CodecError, Reader, Writer, crc32};

const MAGIC: &[u8; 4] = b"ILMS";
const VERSION: u8 = 1;
const CRC_BYTES: usize = 4;
/// A time, and an empty body.
const CHANGE_BYTES_MIN: usize = 8 + 1;
/// Far below what a log takes in a record.
const PART_BYTES: usize = 256 << 10;

/// A change of the schema. Its epoch is its place in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SchemaLogged {
    /// When it was logged.
    pub time_micros: i64,
    /// The change, as [`ilion_replica::FencedChange`] encodes it.
    pub body: Bytes,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetaSnapshot {
    pub state: ClusterState,
    /// All changes of the schema, from the first one on.
    pub changes: Vec<SchemaLogged>,
}

/// Why bytes are not a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unusable {
    #[error("the snapshot of the meta log is damaged: {0}")]
    Damaged(#[from] CodecError),
    #[error(transparent)]
    State(#[from] SnapshotError),
    #[error("the snapshot of the meta log lacks changes of the schema, or has others")]
    Schema,
}

impl MetaSnapshot {
    /// The bytes of the snapshot.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.bytes(MAGIC);
        out.u8(VERSION);
        out.bytes_vint(&self.state.encode());
        out.uvint(self.changes.len() as u64);
        for change in &self.changes {
            out.i64(change.time_micros);
            out.bytes_vint(&change.body);
        }
        let crc = crc32(out.as_slice());
        out.u32(crc);
        out.into_vec()
    }

    /// Reads a snapshot, and checks that its changes are those of its state.
    pub fn decode(bytes: &[u8]) -> Result<Self, Unusable> {
        let whole = Reader::new(bytes);
        let (content, crc) = bytes
            .split_last_chunk::<CRC_BYTES>()
            .ok_or_else(|| whole.error("a snapshot with a checksum"))?;
        if crc32(content) != u32::from_be_bytes(*crc) {
            return Err(whole.error("a snapshot that its checksum fits").into());
        }
        let content = content
            .strip_prefix(MAGIC)
            .ok_or_else(|| whole.error("a snapshot (ILMS)"))?;
        let input = &mut Reader::new(content);
        if input.u8()? != VERSION {
            return Err(whole.error("version 1 (a newer Ilion wrote this)").into());
        }
        let state = ClusterState::decode(input.bytes_vint()?)?;
        let count = input.uvint_len()?;
        if count > input.remaining() / CHANGE_BYTES_MIN {
            return Err(input.error("changes that the snapshot has room for").into());
        }
        let mut changes = Vec::with_capacity(count);
        for _ in 0..count {
            changes.push(SchemaLogged {
                time_micros: input.i64()?,
                body: Bytes::copy_from_slice(input.bytes_vint()?),
            });
        }
        if !input.is_empty() {
            return Err(input.error("the end of the snapshot").into());
        }
        let mut schema = SchemaState::default();
        for change in &changes {
            schema.count(&change.body);
        }
        match (schema.epoch, schema.digest) == (state.schema.epoch, state.schema.digest) {
            true => Ok(Self { state, changes }),
            false => Err(Unusable::Schema),
        }
    }

    /// The snapshot as records of the meta log; `None` if it is too long for them.
    pub fn parts(&self) -> Option<Vec<SnapshotPart>> {
        let bytes = Bytes::from(self.encode());
        let count = u32::try_from(bytes.len().div_ceil(PART_BYTES)).ok()?;
        let part = |part: u32| {
            let start = part as usize * PART_BYTES;
            SnapshotPart {
                position: self.state.position,
                part,
                parts: count,
                bytes: bytes.slice(start..bytes.len().min(start + PART_BYTES)),
            }
        };
        (count <= SNAPSHOT_PARTS_MAX).then(|| (0..count).map(part).collect())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use ilion_cluster::{Change, Entry, Record, apply};
    use ilion_commitlog::Origin;
    use uuid::Uuid;

    use super::*;
    use crate::meta::position_of;

    /// A snapshot of cluster 7 at a record, with changes of the schema of these lengths.
    pub(crate) fn snapshot_at(offset: u64, lengths: &[usize]) -> MetaSnapshot {
        let entry = Entry {
            position: position_of(offset),
            time_micros: 9,
            origin: Origin::default(),
            record: Record {
                cluster: Uuid::from_u128(7),
                change: Change::Create {
                    tablets: 8,
                    level: 1,
                    down_max_micros: 1,
                },
            },
        };
        let (mut state, _) = apply(None, &entry).unwrap();
        let changes: Vec<SchemaLogged> = (1..)
            .zip(lengths)
            .map(|(time_micros, length)| SchemaLogged {
                time_micros,
                body: vec![b'x'; *length].into(),
            })
            .collect();
        for change in &changes {
            state.schema.count(&change.body);
        }
        MetaSnapshot { state, changes }
    }

    #[test]
    fn ten_thousand_changes_of_the_schema_fit_into_a_logged_snapshot() {
        // Of a table with some columns each.
        let snapshot = snapshot_at(7, &[2000; 10_000]);
        let parts = snapshot.parts().unwrap();
        assert!(
            parts.len() < SNAPSHOT_PARTS_MAX as usize / 10,
            "{} parts",
            parts.len()
        );
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.bytes.to_vec()).collect();
        assert_eq!(MetaSnapshot::decode(&bytes), Ok(snapshot));
    }
}
