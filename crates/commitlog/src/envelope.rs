//! [`Envelope`]: the fields of a record beside its body.
//!
//! ```text
//! payload := version: u8, kind: u8, flags: u16 (1: captured), tablet: u32, schema_epoch: u64,
//!            node: u32, incarnation: u32, seq: u64, time: i64 (micros), body        (big-endian)
//! ```
//! All logs use the same payload (see [`crate::Log`]), so no field depends on segments.

use bytes::Bytes;

/// Size of the envelope, which precedes the body.
pub const ENVELOPE_BYTES: usize = 40;

const VERSION: u8 = 1;
/// Bit of `flags`: the record is captured for consumers of changes.
const CAPTURED: u16 = 1;

/// The kind of command in the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// Changes of one partition.
    Mutation = 1,
    /// Changes that depend on a read: a conditional write, a write of a table with views. They are only right if every record
    /// before them is applied.
    Cas = 2,
    /// A counter delta.
    Counter = 3,
    /// TRUNCATE of a table.
    Truncate = 4,
    /// Several mutations, all or none.
    Batch = 5,
    /// A record without a change; it only takes a place in the order.
    Noop = 6,
    /// A schema change. It depends on a read of the schema, so it is only right if every record before it is applied.
    Schema = 7,
    /// A batch over several tablets, applied in whole or not at all. Its parts follow as records of their tablets; if they do not,
    /// replicas send them.
    LoggedBatch = 8,
    /// All parts of logged batches of this log are in the logs of their tablets.
    BatchesDone = 9,
    /// In the local log of a node of a cluster: what a record of a shared log has changed in tables with change data capture, for consumers.
    /// A replay passes over it. Body: the offset of that record (8 bytes), then its mutations of these tables.
    Applied = 10,
}

impl Kind {
    const ALL: [Self; 10] = [
        Self::Mutation,
        Self::Cas,
        Self::Counter,
        Self::Truncate,
        Self::Batch,
        Self::Noop,
        Self::Schema,
        Self::LoggedBatch,
        Self::BatchesDone,
        Self::Applied,
    ];

    /// True if a record of this kind is only right if every record before it is applied.
    pub(crate) fn needs_all_before(self) -> bool {
        matches!(self, Self::Cas | Self::Schema)
    }

    fn decode(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// Who sent a record: replicas drop a repeated origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The node's number in the cluster.
    pub node: u32,
    /// How often the node was started.
    pub incarnation: u32,
    /// The record's number since that start.
    pub seq: u64,
}

/// A record to append, or one just read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// What kind of command the body is.
    pub kind: Kind,
    /// The tablet (a token range) that the record belongs to.
    pub tablet: u32,
    /// The schema that the sender knew.
    pub schema_epoch: u64,
    /// Who sent it.
    pub origin: Origin,
    /// When the record was logged. Replicas take this as the current time for decisions that they make when they apply it.
    pub time_micros: i64,
    /// Whether the record changes a table with change data capture, so that its segment is kept for consumers.
    pub is_captured: bool,
    /// The command, opaque here.
    pub body: &'a [u8],
}

/// A record that owns its body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// What kind of command the body is.
    pub kind: Kind,
    /// The tablet (a token range) that the record belongs to.
    pub tablet: u32,
    /// The schema that the sender knew.
    pub schema_epoch: u64,
    /// Who sent it.
    pub origin: Origin,
    /// When it was logged.
    pub time_micros: i64,
    /// Whether the record changes a table with change data capture, so that its segment is kept for consumers.
    pub is_captured: bool,
    /// The command, opaque here.
    pub body: Bytes,
}

impl<'a> Envelope<'a> {
    /// A mutation for a single node without a cluster; all fields but the kind and the body are zero.
    pub fn mutation(body: &'a [u8]) -> Self {
        let (tablet, schema_epoch, origin, time_micros) = (0, 0, Origin::default(), 0);
        Self {
            kind: Kind::Mutation,
            tablet,
            schema_epoch,
            origin,
            time_micros,
            is_captured: false,
            body,
        }
    }

    /// Encodes the envelope, which precedes the body.
    pub(crate) fn encode_head(&self) -> [u8; ENVELOPE_BYTES] {
        let mut head = [0; ENVELOPE_BYTES];
        head[0] = VERSION;
        head[1] = self.kind as u8;
        let flags = if self.is_captured { CAPTURED } else { 0 };
        head[2..4].copy_from_slice(&flags.to_be_bytes());
        head[4..8].copy_from_slice(&self.tablet.to_be_bytes());
        head[8..16].copy_from_slice(&self.schema_epoch.to_be_bytes());
        head[16..20].copy_from_slice(&self.origin.node.to_be_bytes());
        head[20..24].copy_from_slice(&self.origin.incarnation.to_be_bytes());
        head[24..32].copy_from_slice(&self.origin.seq.to_be_bytes());
        head[32..40].copy_from_slice(&self.time_micros.to_be_bytes());
        head
    }

    /// The whole payload, for logs that do not consist of segments.
    pub fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::with_capacity(ENVELOPE_BYTES + self.body.len());
        payload.extend(self.encode_head());
        payload.extend(self.body);
        payload
    }

    /// Decodes a payload whose checksum was verified; the error names what this version expects.
    pub(crate) fn decode(payload: &'a [u8]) -> Result<Self, &'static str> {
        let (head, body) = payload
            .split_first_chunk::<ENVELOPE_BYTES>()
            .ok_or("an envelope of 40 bytes")?;
        if head[0] != VERSION {
            return Err("an envelope of version 1 (a newer Ilion wrote this)");
        }
        let kind = Kind::decode(head[1]).ok_or("a record kind known here (a newer Ilion wrote this)")?;
        Ok(Self {
            kind,
            tablet: u32::from_be_bytes(part(head, 4)),
            schema_epoch: u64::from_be_bytes(part(head, 8)),
            origin: Origin {
                node: u32::from_be_bytes(part(head, 16)),
                incarnation: u32::from_be_bytes(part(head, 20)),
                seq: u64::from_be_bytes(part(head, 24)),
            },
            time_micros: i64::from_be_bytes(part(head, 32)),
            is_captured: u16::from_be_bytes(part(head, 2)) & CAPTURED != 0,
            body,
        })
    }

    /// A copy that owns its body.
    pub fn to_record(&self) -> Record {
        self.owning(Bytes::copy_from_slice(self.body))
    }

    /// A copy with these bytes as its body.
    fn owning(&self, body: Bytes) -> Record {
        let Self {
            kind,
            tablet,
            schema_epoch,
            origin,
            time_micros,
            is_captured,
            ..
        } = *self;
        Record {
            kind,
            tablet,
            schema_epoch,
            origin,
            time_micros,
            is_captured,
            body,
        }
    }
}

impl Record {
    /// Decodes a payload whose checksum was verified (see [`Envelope::encode`]).
    ///
    /// # Errors
    /// Names what this version expects.
    pub fn decode(payload: &Bytes) -> Result<Self, &'static str> {
        let envelope = Envelope::decode(payload)?;
        Ok(envelope.owning(payload.slice_ref(envelope.body)))
    }

    /// The envelope to append this record with.
    pub fn envelope(&self) -> Envelope<'_> {
        let Self {
            kind,
            tablet,
            schema_epoch,
            origin,
            time_micros,
            is_captured,
            ref body,
        } = *self;
        Envelope {
            kind,
            tablet,
            schema_epoch,
            origin,
            time_micros,
            is_captured,
            body,
        }
    }
}

/// The bytes of a field; `at` is a constant of the layout above.
pub(crate) fn part<const WHOLE: usize, const SIZE: usize>(bytes: &[u8; WHOLE], at: usize) -> [u8; SIZE] {
    std::array::from_fn(|index| bytes[at + index])
}

#[cfg(test)]
mod tests {
    use super::{Envelope, Kind, Origin};

    #[test]
    fn an_envelope_is_read_back() {
        let origin = Origin {
            node: 1,
            incarnation: 2,
            seq: 3,
        };
        for kind in Kind::ALL {
            let written = Envelope {
                kind,
                tablet: 4,
                schema_epoch: 5,
                origin,
                time_micros: -6,
                is_captured: matches!(kind, Kind::Batch),
                body: b"body",
            };
            let payload = [&written.encode_head()[..], b"body"].concat();
            assert_eq!(Envelope::decode(&payload), Ok(written));
            assert_eq!(written.to_record().envelope(), written);
        }
    }

    #[test]
    fn what_a_newer_version_wrote_is_refused() {
        let mut payload = Envelope::mutation(b"").encode_head();
        assert!(Envelope::decode(&payload[..39]).is_err());
        payload[1] = 99;
        assert!(Envelope::decode(&payload).is_err());
        payload[0] = 2;
        assert!(Envelope::decode(&payload).unwrap_err().contains("version 1"));
    }
}
