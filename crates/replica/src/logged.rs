//! [`LoggedBatch`]: a batch over several tablets, all or none of it.
//!
//! 1. Its coordinator appends all of it to the log of one of its tablets, its home: from then on the batch is made.
//! 2. Then it appends each other part to the log of its tablet, as any write, and tells the home that they are there ([`encode_done`]).
//! 3. Replicas of the home remember the batch until then. If that takes too long, one of them sends the parts. They may then be in a log
//!    twice: applying a mutation again changes nothing, since it has its time.
//!
//! ```text
//! body := count: vint, parts (ascending by tablet): tablet: u32, length: u32, mutations      (big-endian)
//! done := origins of batches: node: u32, incarnation: u32, number: u64
//! ```

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};
use ilion_commitlog::Origin;

/// A tablet and a length.
const PART_BYTES_MIN: usize = 4 + 4;
const ORIGIN_BYTES: usize = 4 + 4 + 8;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoggedBatch {
    /// The mutations for each tablet, one after another as [`ilion_rows::encode_mutation`] writes them.
    pub parts: BTreeMap<u32, Bytes>,
}

/// Identifies a batch in the log of its home: the sender, its incarnation, and the number of the record. Unlike an offset, it is the same
/// for a record that is in the log twice.
pub type BatchId = (u32, u32, u64);

/// A batch whose other parts may not be in their logs yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedBatch {
    /// The schema that it was made with.
    pub schema_epoch: u64,
    /// The parts of other tablets.
    pub others: LoggedBatch,
}

/// The id of the batch that a record has.
pub(crate) fn id_of(origin: Origin) -> BatchId {
    (origin.node, origin.incarnation, origin.seq)
}

impl LoggedBatch {
    /// Encodes the batch.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.uvint(self.parts.len() as u64);
        for (tablet, mutations) in &self.parts {
            out.u32(*tablet);
            out.bytes32(mutations);
        }
        out.into_vec()
    }

    /// Decodes a batch, without copying.
    ///
    /// # Errors
    /// The bytes are damaged.
    pub fn decode(bytes: &Bytes) -> Result<Self, Error> {
        let mut input = Reader::new(bytes);
        let count = input.uvint_len()?;
        if count > input.remaining() / PART_BYTES_MIN {
            return Err(input.error("parts that the record has room for"));
        }
        let mut parts = BTreeMap::new();
        for _ in 0..count {
            let start = input.clone();
            let (tablet, mutations) = (input.u32()?, input.bytes32()?);
            if parts.last_key_value().is_some_and(|(last, _)| *last >= tablet) {
                return Err(start.error("ascending tablets"));
            }
            parts.insert(tablet, bytes.slice_ref(mutations));
        }
        match input.is_empty() {
            true => Ok(Self { parts }),
            false => Err(input.error("the end of the batch")),
        }
    }
}

/// The body of a record that says that these batches are finished.
pub fn encode_done(batches: &[BatchId]) -> Vec<u8> {
    let mut out = Writer::with_capacity(batches.len() * ORIGIN_BYTES);
    for (node, incarnation, number) in batches {
        out.u32(*node);
        out.u32(*incarnation);
        out.u64(*number);
    }
    out.into_vec()
}

pub(crate) fn decode_done(bytes: &[u8]) -> Result<Vec<BatchId>, Error> {
    let mut input = Reader::new(bytes);
    let mut batches = Vec::new();
    while !input.is_empty() {
        batches.push((input.u32()?, input.u32()?, input.u64()?));
    }
    Ok(batches)
}

pub(crate) fn encode_unfinished(batches: &BTreeMap<BatchId, UnfinishedBatch>, out: &mut Writer) {
    out.uvint(batches.len() as u64);
    for ((node, incarnation, number), batch) in batches {
        out.u32(*node);
        out.u32(*incarnation);
        out.u64(*number);
        out.u64(batch.schema_epoch);
        out.bytes32(&batch.others.encode());
    }
}

pub(crate) fn decode_unfinished(input: &mut Reader<'_>) -> Result<BTreeMap<BatchId, UnfinishedBatch>, Error> {
    let count = input.uvint_len()?;
    if count > input.remaining() / ORIGIN_BYTES {
        return Err(input.error("batches that the file has room for"));
    }
    let mut batches = BTreeMap::new();
    for _ in 0..count {
        let id = (input.u32()?, input.u32()?, input.u64()?);
        let batch = UnfinishedBatch {
            schema_epoch: input.u64()?,
            others: LoggedBatch::decode(&Bytes::copy_from_slice(input.bytes32()?))?,
        };
        batches.insert(id, batch);
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_read_back_and_damage_is_noticed() {
        let parts = [(3, "abc"), (9, ""), (12, "x")];
        let parts = parts.map(|(tablet, body)| (tablet, Bytes::from(body)));
        let batch = LoggedBatch {
            parts: BTreeMap::from(parts),
        };
        let bytes = Bytes::from(batch.encode());
        assert_eq!(LoggedBatch::decode(&bytes), Ok(batch));
        for end in 0..bytes.len() {
            assert!(LoggedBatch::decode(&bytes.slice(..end)).is_err(), "{end}");
        }
        let many = Bytes::from_static(&[0xff; 9]);
        assert!(LoggedBatch::decode(&many).is_err());
        let done = [(1, 2, 3), (4, 5, u64::MAX)];
        assert_eq!(decode_done(&encode_done(&done)), Ok(done.to_vec()));
        assert!(decode_done(&encode_done(&done)[1..]).is_err());
    }
}
