//! What a record of a topic has as its value.
//!
//! ```text
//! value := version: u8, cluster: [u8; 16], partitions, crc: u32 (CRC-32 of all other bytes), payload        (big-endian)
//! partitions := [] | u32
//! ```
//! In version 1 each tablet has a partition of its own, and the field `partitions` is empty. In version 2 it is the number of partitions of
//! the data topic that the sender knew. If a topic is given more partitions, tablets would be looked for in other ones. So a record that
//! was sent with another number is not read; and a node reads the meta log, which has such records, too, before it appends any.
//!
//! The payload is [`Envelope::encode`]. The checksum is that of the sender: it covers the way from memory to memory, which the checksums of
//! Kafka's batches do not.

use bytes::Bytes;
use crc32fast::Hasher;
use ilion_codec::{Reader, Writer};
use ilion_commitlog::{ENVELOPE_BYTES, Envelope, Record};
use uuid::Uuid;

use crate::topics::Sharing;

/// Each tablet has a partition of its own.
const SEPARATE: u8 = 1;
/// Tablets share partitions.
const SHARED: u8 = 2;
/// Maximum number of bytes of a value beside the payload.
pub(crate) const HEAD_BYTES_MAX: usize = 25;

pub(crate) fn encode(cluster: Uuid, sharing: Sharing, envelope: &Envelope<'_>) -> Bytes {
    let payload = envelope.encode();
    let mut out = Writer::with_capacity(HEAD_BYTES_MAX + payload.len());
    out.u8(if sharing.is_separate() { SEPARATE } else { SHARED });
    out.bytes(cluster.as_bytes());
    if !sharing.is_separate() {
        out.u32(sharing.partitions);
    }
    let crc = crc(out.as_slice(), &payload);
    out.u32(crc);
    out.bytes(&payload);
    out.into_vec().into()
}

/// The bytes of the payload of an envelope.
pub(crate) fn payload_bytes(envelope: &Envelope<'_>) -> usize {
    ENVELOPE_BYTES + envelope.body.len()
}

/// Reads a value of a partition. The record's time is that of the log. The error says what is wrong, and what to do.
pub(crate) fn decode(
    cluster: Uuid,
    sharing: Sharing,
    partition: u32,
    time_micros: i64,
    value: &Bytes,
) -> Result<Record, String> {
    let mut input = Reader::new(value);
    let foreign = "it is no record of Ilion: something else writes to this topic; stop that, and start this cluster anew with another prefix";
    let Ok(version) = input.u8() else {
        return Err(foreign.to_owned());
    };
    if ![SEPARATE, SHARED].contains(&version) {
        return Err(format!(
            "its version is {version}, and {SHARED} is the newest known here: if a newer Ilion wrote it, run that version on this \
             node; otherwise {foreign}"
        ));
    }
    let Ok(found) = input.uuid_bytes() else {
        return Err(foreign.to_owned());
    };
    let partitions = match version {
        SHARED => input.u32(),
        _ => Ok(sharing.tablets),
    };
    let head = value.slice(..value.len() - input.rest().len());
    let (Ok(partitions), Ok(expected_crc)) = (partitions, input.u32()) else {
        return Err(foreign.to_owned());
    };
    let found = Uuid::from_bytes(found);
    if crc(&head, input.rest()) != expected_crc {
        return Err(
            "its checksum is wrong: it was damaged on a broker or on the way. If other nodes can read it, start this node again; \
             otherwise no replica has applied it, and the cluster must be restored from a backup"
                .to_owned(),
        );
    }
    if found != cluster {
        return Err(format!(
            "it is of cluster {found}, and this node is of {cluster}: two clusters use the same prefix of topics; give one of them another"
        ));
    }
    if partitions != sharing.partitions {
        return Err(format!(
            "its sender knew {partitions} partitions of the topic for tablets, and there are {} now: their number must never change. \
             Restore the topic, or start a new cluster with another prefix from a backup",
            sharing.partitions
        ));
    }
    let payload = value.slice(value.len() - input.rest().len()..);
    let mut record = Record::decode(&payload).map_err(|expected| format!("expected {expected}"))?;
    if sharing.partition_of(record.tablet) != Some(partition) {
        return Err(format!(
            "it is of log {}, which is not kept here: a record must not be copied",
            record.tablet
        ));
    }
    record.time_micros = time_micros;
    Ok(record)
}

/// The checksum of a value whose bytes before the checksum are `head`.
fn crc(head: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(head);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLUSTER: Uuid = Uuid::from_u128(7);

    fn envelope(body: &[u8]) -> Envelope<'_> {
        Envelope {
            tablet: 3,
            time_micros: 1,
            ..Envelope::mutation(body)
        }
    }

    /// Tablets with partitions of their own, and tablets that share some.
    const SEPARATE: Sharing = Sharing {
        tablets: 6,
        partitions: 6,
        meta_log: u32::MAX,
    };
    const SHARED: Sharing = Sharing {
        partitions: 4,
        ..SEPARATE
    };

    #[test]
    fn a_record_is_read_back_with_the_time_of_the_log() {
        for (sharing, head_bytes) in [(SEPARATE, 21), (SHARED, 25)] {
            let value = encode(CLUSTER, sharing, &envelope(b"body"));
            assert_eq!(value.len(), head_bytes + payload_bytes(&envelope(b"body")));
            let record = decode(CLUSTER, sharing, 3, 42, &value).unwrap();
            assert_eq!((&record.body[..], record.time_micros), (&b"body"[..], 42));
        }
    }

    #[test]
    fn each_flipped_bit_and_each_cut_is_found() {
        for sharing in [SEPARATE, SHARED] {
            let value = encode(CLUSTER, sharing, &envelope(b"body"));
            let read = |value: Bytes| decode(CLUSTER, sharing, 3, 0, &value);
            for at in 0..value.len() {
                let mut damaged = value.to_vec();
                damaged[at] ^= 1;
                assert!(read(damaged.into()).is_err(), "byte {at}");
                assert!(read(value.slice(..at)).is_err(), "cut at {at}");
            }
        }
    }

    #[test]
    fn what_is_not_of_this_partition_says_what_to_do() {
        let [separate, shared] =
            [SEPARATE, SHARED].map(|sharing| encode(CLUSTER, sharing, &envelope(b"body")));
        let other = Uuid::from_u128(8);
        let five = Sharing {
            partitions: 5,
            ..SHARED
        };
        for (cluster, sharing, partition, value, problem) in [
            (other, SEPARATE, 3, separate.clone(), "give one of them another"),
            (CLUSTER, SEPARATE, 4, separate.clone(), "it is of log 3"),
            (CLUSTER, SHARED, 1, shared.clone(), "it is of log 3"),
            (
                CLUSTER,
                five,
                3,
                shared.clone(),
                "knew 4 partitions of the topic for tablets, and there are 5",
            ),
            (CLUSTER, SEPARATE, 3, shared, "knew 4 partitions"),
            (CLUSTER, SHARED, 3, separate, "knew 6 partitions"),
            (
                CLUSTER,
                SEPARATE,
                3,
                Bytes::from_static(b""),
                "something else writes",
            ),
            (
                CLUSTER,
                SEPARATE,
                3,
                Bytes::from_static(b"\x01"),
                "something else writes",
            ),
            (
                CLUSTER,
                SEPARATE,
                3,
                Bytes::from_static(b"\x03abc"),
                "run that version on this node",
            ),
        ] {
            let refused = decode(cluster, sharing, partition, 0, &value).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
