//! What a record of a topic has as its value.
//!
//! ```text
//! value := version: u8 (1), cluster: [u8; 16], crc: u32 (CRC-32 of version, cluster and payload), payload        (big-endian)
//! ```
//! The payload is [`Envelope::encode`]. The checksum is that of the sender: it covers the way from memory to memory, which the checksums of
//! Kafka's batches do not.

use bytes::Bytes;
use crc32fast::Hasher;
use ilion_codec::{Reader, Writer};
use ilion_commitlog::{ENVELOPE_BYTES, Envelope, Record};
use uuid::Uuid;

const VERSION: u8 = 1;
/// Bytes of a value beside the payload.
pub(crate) const HEAD_BYTES: usize = 21;

pub(crate) fn encode(cluster: Uuid, envelope: &Envelope<'_>) -> Bytes {
    let payload = envelope.encode();
    let mut out = Writer::with_capacity(HEAD_BYTES + payload.len());
    out.u8(VERSION);
    out.bytes(cluster.as_bytes());
    out.u32(crc(cluster, &payload));
    out.bytes(&payload);
    out.into_vec().into()
}

/// The bytes that [`encode`] makes of an envelope.
pub(crate) fn encoded_bytes(envelope: &Envelope<'_>) -> usize {
    HEAD_BYTES + ENVELOPE_BYTES + envelope.body.len()
}

/// Reads a value of a log. The record's time is that of the log. The error says what is wrong, and what to do.
pub(crate) fn decode(cluster: Uuid, log: u32, time_micros: i64, value: &Bytes) -> Result<Record, String> {
    let mut input = Reader::new(value);
    let foreign = "it is no record of Ilion: something else writes to this topic; stop that, and start this cluster anew with another prefix";
    let Ok(version) = input.u8() else {
        return Err(foreign.to_owned());
    };
    if version != VERSION {
        return Err(format!(
            "its version is {version}, and {VERSION} is known here: if a newer Ilion wrote it, run that version on this node; otherwise {foreign}"
        ));
    }
    let (Ok(found), Ok(expected_crc)) = (input.uuid_bytes(), input.u32()) else {
        return Err(foreign.to_owned());
    };
    let found = Uuid::from_bytes(found);
    if crc(found, input.rest()) != expected_crc {
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
    let payload = value.slice(HEAD_BYTES..);
    let mut record = Record::decode(&payload).map_err(|expected| format!("expected {expected}"))?;
    if record.tablet != log {
        return Err(format!(
            "it is of log {}: a record must not be copied",
            record.tablet
        ));
    }
    record.time_micros = time_micros;
    Ok(record)
}

fn crc(cluster: Uuid, payload: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&[VERSION]);
    hasher.update(cluster.as_bytes());
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

    #[test]
    fn a_record_is_read_back_with_the_time_of_the_log() {
        let value = encode(CLUSTER, &envelope(b"body"));
        assert_eq!(value.len(), encoded_bytes(&envelope(b"body")));
        let record = decode(CLUSTER, 3, 42, &value).unwrap();
        assert_eq!((&record.body[..], record.time_micros), (&b"body"[..], 42));
    }

    #[test]
    fn each_flipped_bit_and_each_cut_is_found() {
        let value = encode(CLUSTER, &envelope(b"body"));
        for at in 0..value.len() {
            let mut damaged = value.to_vec();
            damaged[at] ^= 1;
            assert!(decode(CLUSTER, 3, 0, &damaged.into()).is_err(), "byte {at}");
            assert!(decode(CLUSTER, 3, 0, &value.slice(..at)).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn what_is_not_of_this_log_says_what_to_do() {
        let value = encode(CLUSTER, &envelope(b"body"));
        let other = Uuid::from_u128(8);
        for (cluster, log, value, problem) in [
            (other, 3, value.clone(), "give one of them another"),
            (CLUSTER, 4, value.clone(), "it is of log 3"),
            (CLUSTER, 3, Bytes::from_static(b""), "something else writes"),
            (CLUSTER, 3, Bytes::from_static(b"\x01"), "something else writes"),
            (
                CLUSTER,
                3,
                Bytes::from_static(b"\x02abc"),
                "run that version on this node",
            ),
        ] {
            let refused = decode(cluster, log, 0, &value).unwrap_err();
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
