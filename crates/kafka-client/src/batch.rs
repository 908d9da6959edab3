//! Batches of records, as topics store them and requests carry them (format 2 of Kafka).
//!
//! ```text
//! batch  := base_offset: i64, length: i32 (of what follows), leader_epoch: i32, magic: i8 (2), crc32c: u32 (of what follows),
//!           attributes: i16 (0..2: compression, 3: the time is the log's, 5: control), last_offset_delta: i32, base_time: i64 (millis),
//!           max_time: i64 (millis), producer_id: i64, producer_epoch: i16, base_sequence: i32, count: i32, record*
//! record := length: varint, attributes: i8, time_delta: varint, offset_delta: varint, key, value: bytes, count: varint, header*
//! header := name, value: bytes        bytes := length: varint (-1: null), byte*        varint := zigzag, little-endian groups of 7 bits
//! ```
//! Batches are written without compression, and compressed ones are not read. Records may be missing in a batch, so offsets have gaps.

use bytes::Bytes;
use ilion_codec::{Error, Reader, Writer};

/// The bytes before the length ends.
const LENGTH_END: usize = 12;
/// The bytes before those that the checksum covers.
const CRC_END: usize = 21;
/// The bytes before the first record.
const HEAD_BYTES: usize = 61;
const MAGIC: u8 = 2;
const COMPRESSION: i16 = 7;
const LOG_TIME: i16 = 1 << 3;
const CONTROL: i16 = 1 << 5;
/// Maximum bytes of a record beside its key, value and headers.
pub const RECORD_OVERHEAD_BYTES: usize = 32;

/// A record to send.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// Its key.
    pub key: Option<&'a [u8]>,
    /// Its value.
    pub value: &'a [u8],
    /// Its headers.
    pub headers: &'a [(&'static str, Vec<u8>)],
    /// Its time. Topics with `LogAppendTime` have their own.
    pub created_millis: i64,
}

/// Encodes records as one batch.
pub fn encode<'a>(entries: impl Iterator<Item = Entry<'a>> + Clone) -> Vec<u8> {
    let times = entries.clone().map(|entry| entry.created_millis);
    let base_time = times.clone().min().unwrap_or(0);
    let max_time = times.max().unwrap_or(0);
    let (mut records, mut one, mut count) = (Writer::new(), Writer::new(), 0_i32);
    for entry in entries {
        one.clear();
        one.u8(0);
        varint(&mut one, entry.created_millis.wrapping_sub(base_time));
        varint(&mut one, count.into());
        bytes(&mut one, entry.key);
        bytes(&mut one, Some(entry.value));
        varint(&mut one, entry.headers.len() as i64);
        for (name, value) in entry.headers {
            bytes(&mut one, Some(name.as_bytes()));
            bytes(&mut one, Some(value));
        }
        bytes(&mut records, Some(one.as_slice()));
        count += 1;
    }
    let mut covered = Writer::with_capacity(HEAD_BYTES - CRC_END + records.len());
    covered.u16(0);
    covered.i32(count - 1);
    covered.i64(base_time);
    covered.i64(max_time);
    covered.i64(-1);
    covered.u16(u16::MAX);
    covered.i32(-1);
    covered.i32(count);
    covered.bytes(records.as_slice());
    let mut batch = Writer::with_capacity(CRC_END + covered.len());
    batch.i64(0);
    batch.i32(i32::try_from(CRC_END - LENGTH_END + covered.len()).unwrap_or(i32::MAX));
    batch.i32(-1);
    batch.u8(MAGIC);
    batch.u32(crc32c::crc32c(covered.as_slice()));
    batch.bytes(covered.as_slice());
    batch.into_vec()
}

/// A batch that a broker sent.
#[derive(Clone, Debug)]
pub struct Batch {
    /// The offset of its first record, even if that record is missing.
    pub base_offset: i64,
    /// The offset of its last record, even if that record is missing.
    pub last_offset: i64,
    /// The newest time of its records. With `LogAppendTime`, the time of all its records.
    pub max_time_millis: i64,
    /// Whether the times are those of the log (`LogAppendTime`).
    pub has_log_time: bool,
    /// Whether it is one of Kafka's own marks, which readers ignore.
    pub is_control: bool,
    attributes: i16,
    count: i32,
    /// The bytes from the checksum on.
    checked: Bytes,
}

/// A record of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entered {
    /// Where it is in the partition.
    pub offset: i64,
    /// Its key.
    pub key: Option<Bytes>,
    /// Its value.
    pub value: Option<Bytes>,
}

/// Takes the next batch off the bytes of a partition. `None` if the rest is empty, or an incomplete batch.
///
/// # Errors
/// No batch begins here.
pub fn split(bytes: &mut Bytes) -> Result<Option<Batch>, Error> {
    let mut input = Reader::new(bytes);
    if bytes.len() < LENGTH_END {
        return Ok(None);
    }
    let base_offset = input.i64()?;
    let error = input.error("the length of a batch");
    let length = usize::try_from(input.i32()?)
        .ok()
        .filter(|length| *length >= HEAD_BYTES - LENGTH_END)
        .ok_or(error)?;
    let Some(whole) = LENGTH_END
        .checked_add(length)
        .filter(|whole| *whole <= bytes.len())
    else {
        return Ok(None);
    };
    input.skip(4)?;
    let error = input.error("a batch of format 2");
    if input.u8()? != MAGIC {
        return Err(error);
    }
    let checked = bytes.slice(CRC_END - 4..whole);
    input.skip(4)?;
    let attributes = input.u16()?.cast_signed();
    let error = input.error("the number of the last record");
    let delta = input.i32()?;
    let last_offset = base_offset
        .checked_add(delta.into())
        .filter(|last| base_offset >= 0 && delta >= 0 && *last < i64::MAX)
        .ok_or(error)?;
    input.skip(8)?;
    let max_time_millis = input.i64()?;
    input.skip(14)?;
    let count = input.i32()?;
    let batch = Batch {
        base_offset,
        last_offset,
        max_time_millis,
        has_log_time: attributes & LOG_TIME != 0,
        is_control: attributes & CONTROL != 0,
        attributes,
        count,
        checked,
    };
    *bytes = bytes.slice(whole..);
    Ok(Some(batch))
}

impl Batch {
    /// Its size, for accounts of memory.
    pub fn size_bytes(&self) -> usize {
        self.checked.len() + CRC_END
    }

    /// Its records in their order, those of a control batch included.
    ///
    /// # Errors
    /// The checksum is wrong, the batch is compressed, or it has no records where it should.
    pub fn records(&self) -> Result<Vec<Entered>, Error> {
        let mut input = Reader::new(&self.checked);
        let error = input.error("a batch whose checksum holds");
        if input.u32()? != crc32c::crc32c(input.rest()) {
            return Err(error);
        }
        if self.attributes & COMPRESSION != 0 {
            return Err(input.error("a batch without compression"));
        }
        input.skip(HEAD_BYTES - CRC_END)?;
        let mut records = Vec::new();
        for _ in 0..self.count {
            let record = self.record(&mut input)?;
            if records
                .last()
                .is_some_and(|last: &Entered| last.offset >= record.offset)
                || record.offset > self.last_offset
            {
                return Err(input.error("records with ascending offsets"));
            }
            records.push(record);
        }
        Ok(records)
    }

    fn record(&self, input: &mut Reader<'_>) -> Result<Entered, Error> {
        let error = input.error("a record");
        let length = read_varint(input)?;
        let length = usize::try_from(length).map_err(|_| error)?;
        let inside = input.take(length)?;
        let mut inside = Reader::new(inside);
        inside.skip(1)?;
        read_varint(&mut inside)?;
        let error = inside.error("the number of a record in its batch");
        let delta = read_varint(&mut inside)?;
        let offset = self
            .base_offset
            .checked_add(delta)
            .filter(|_| delta >= 0)
            .ok_or(error)?;
        let key = read_bytes(&mut inside)?.map(|part| self.checked.slice_ref(part));
        let value = read_bytes(&mut inside)?.map(|part| self.checked.slice_ref(part));
        Ok(Entered { offset, key, value })
    }
}

fn bytes(out: &mut Writer, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            varint(out, bytes.len() as i64);
            out.bytes(bytes);
        }
        None => varint(out, -1),
    }
}

fn read_bytes<'a>(input: &mut Reader<'a>) -> Result<Option<&'a [u8]>, Error> {
    let error = input.error("bytes with a length");
    match read_varint(input)? {
        -1 => Ok(None),
        length => {
            let length = usize::try_from(length).map_err(|_| error)?;
            input.take(length).map(Some)
        }
    }
}

fn varint(out: &mut Writer, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.u8(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    out.u8(rest.to_le_bytes()[0]);
}

fn read_varint(input: &mut Reader<'_>) -> Result<i64, Error> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = input.u8()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    Err(input.error("a number of at most ten bytes"))
}

/// Numbers a batch and stamps it, as the broker does on append. For brokers of tests.
pub fn place(batch: &mut [u8], base_offset: i64, log_time_millis: i64) {
    batch[..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[CRC_END..CRC_END + 2].copy_from_slice(&LOG_TIME.to_be_bytes());
    batch[35..43].copy_from_slice(&log_time_millis.to_be_bytes());
    let crc = crc32c::crc32c(&batch[CRC_END..]);
    batch[CRC_END - 4..CRC_END].copy_from_slice(&crc.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entry<'a>(key: Option<&'a [u8]>, value: &'a [u8]) -> Entry<'a> {
        Entry {
            key,
            value,
            headers: &[],
            created_millis: 5,
        }
    }

    fn two_batches() -> Bytes {
        let mut first = encode([entry(None, b"one"), entry(Some(b"k"), b"two")].into_iter());
        place(&mut first, 10, 1000);
        let mut second = encode([entry(None, b"three")].into_iter());
        place(&mut second, 12, 2000);
        [first, second].concat().into()
    }

    #[test]
    fn batches_are_read_back_one_after_another() {
        let mut bytes = two_batches();
        let first = split(&mut bytes).unwrap().unwrap();
        assert_eq!((first.base_offset, first.last_offset), (10, 11));
        assert!(first.has_log_time && !first.is_control);
        assert_eq!(first.max_time_millis, 1000);
        let records = first.records().unwrap();
        let values: Vec<_> = records
            .iter()
            .map(|record| (record.offset, record.key.as_deref(), record.value.as_deref()))
            .collect();
        assert_eq!(
            values,
            [
                (10, None, Some(&b"one"[..])),
                (11, Some(&b"k"[..]), Some(&b"two"[..]))
            ]
        );
        assert_eq!(
            split(&mut bytes).unwrap().unwrap().records().unwrap()[0].offset,
            12
        );
        assert!(split(&mut bytes).unwrap().is_none());
    }

    #[test]
    fn a_batch_that_was_cut_is_left_out() {
        let whole = two_batches();
        for cut in 1..HEAD_BYTES {
            let mut bytes = whole.slice(..whole.len() - cut);
            assert!(split(&mut bytes).unwrap().is_some());
            assert!(split(&mut bytes).unwrap().is_none(), "{cut} bytes are missing");
        }
    }

    #[test]
    fn a_flipped_bit_is_found() {
        let whole = two_batches();
        let first_bytes = split(&mut whole.clone()).unwrap().unwrap().size_bytes() - 4;
        for at in CRC_END..first_bytes {
            let mut damaged = whole.to_vec();
            damaged[at] ^= 4;
            let mut bytes = Bytes::from(damaged);
            let is_found = match split(&mut bytes) {
                Ok(Some(batch)) => batch.records().is_err(),
                _ => true,
            };
            assert!(is_found, "byte {at}");
        }
    }

    #[test]
    fn varints_are_those_of_protocol_buffers() {
        for (value, expected) in [
            (0, &[0][..]),
            (-1, &[1]),
            (1, &[2]),
            (-65, &[0x81, 1]),
            (300, &[0xd8, 4]),
        ] {
            let mut out = Writer::new();
            varint(&mut out, value);
            assert_eq!(out.as_slice(), expected, "{value}");
        }
        for value in [i64::MIN, i64::MAX] {
            let mut out = Writer::new();
            varint(&mut out, value);
            assert_eq!(read_varint(&mut Reader::new(out.as_slice())), Ok(value));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(junk in proptest::collection::vec(any::<u8>(), 0..200), at in 0..100_usize) {
            let mut whole = two_batches().to_vec();
            let end = (at + junk.len()).min(whole.len());
            whole.splice(at..end, junk);
            // With a checksum that holds, so that what is inside is read, too.
            if whole.len() > HEAD_BYTES {
                let length = i32::try_from(whole.len() - LENGTH_END).unwrap();
                whole[8..12].copy_from_slice(&length.to_be_bytes());
                whole[16] = MAGIC;
                let crc = crc32c::crc32c(&whole[CRC_END..]);
                whole[CRC_END - 4..CRC_END].copy_from_slice(&crc.to_be_bytes());
            }
            let mut bytes = Bytes::from(whole);
            while let Ok(Some(batch)) = split(&mut bytes) {
                let _ = batch.records();
            }
        }
    }
}
