//! Timestamps, deletion times and TTLs: stored as differences to the least values that the header names.

use ilion_rows::{DeletionTime, NO_DELETION_TIME, NO_TIMESTAMP};

use super::source::ByteSource;
use crate::error::Step;
use crate::{EncodingStats, Version};

/// "None" of the versions that hold deletion times as `i32`.
const NO_DELETION_TIME_I32: u32 = i32::MAX as u32;
const TTL_MAX: u32 = i32::MAX as u32;

/// How a file stores times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    least: EncodingStats,
    version: Version,
}

impl Times {
    pub(crate) fn new(least: EncodingStats, version: Version) -> Self {
        Self { least, version }
    }

    #[inline]
    pub(super) fn timestamp(&self, input: &mut impl ByteSource) -> Step<i64> {
        Ok(self.timestamp_of(input.uvint()?))
    }

    /// The timestamp that is stored as `delta`.
    #[inline]
    pub(super) fn timestamp_of(&self, delta: u64) -> i64 {
        self.least.min_timestamp_micros.wrapping_add(delta.cast_signed())
    }

    pub(super) fn ttl(&self, input: &mut impl ByteSource) -> Step<u32> {
        let ttl_secs = input.uvint32()?.wrapping_add(self.least.min_ttl_secs);
        if ttl_secs == 0 || ttl_secs > TTL_MAX {
            return Err(input.corrupt("a TTL above 0"));
        }
        Ok(ttl_secs)
    }

    /// When something was deleted or expires; never none.
    pub(super) fn local_deletion(&self, input: &mut impl ByteSource) -> Step<u32> {
        let secs = self.any_local_deletion(input)?;
        if secs == NO_DELETION_TIME {
            return Err(input.corrupt("a local deletion time"));
        }
        Ok(secs)
    }

    fn any_local_deletion(&self, input: &mut impl ByteSource) -> Step<u32> {
        let delta = input.uvint32()?;
        let secs = delta.wrapping_add(self.least.min_local_deletion_secs);
        if self.version.is_oa_or_later() {
            return Ok(secs);
        }
        match secs {
            NO_DELETION_TIME_I32 | NO_DELETION_TIME => Ok(NO_DELETION_TIME),
            secs if secs > NO_DELETION_TIME_I32 => Err(input.corrupt("a local deletion time up to 2038")),
            secs => Ok(secs),
        }
    }

    /// A deletion inside a row or marker.
    pub(super) fn deletion(&self, input: &mut impl ByteSource) -> Step<DeletionTime> {
        let marked_at_micros = self.timestamp(input)?;
        if marked_at_micros == NO_TIMESTAMP {
            // Compat: 4.x and 5.0 disagree on the seconds of a live deletion.
            input.uvint()?;
            return Ok(DeletionTime::LIVE);
        }
        let local_secs = self.any_local_deletion(input)?;
        Ok(DeletionTime::new(marked_at_micros, local_secs))
    }

    /// Bytes that say that a partition is not deleted.
    #[inline]
    pub(crate) fn live_partition_len(&self) -> usize {
        if self.version.is_oa_or_later() { 1 } else { 12 }
    }

    /// True if these say so.
    #[inline]
    pub(crate) fn is_live_partition(&self, bytes: &[u8]) -> bool {
        match bytes {
            [flags] => *flags == 0x80,
            bytes => bytes
                .last_chunk()
                .is_some_and(|micros| i64::from_be_bytes(*micros) == NO_TIMESTAMP),
        }
    }

    /// The deletion of a partition, and any deletion in an index: of fixed size, not relative to anything.
    #[inline]
    pub(crate) fn partition_deletion(&self, input: &mut impl ByteSource) -> Step<DeletionTime> {
        if self.version.is_oa_or_later() {
            return partition_deletion_oa(input);
        }
        let stored: [u8; 12] = input.array()?;
        let [s0, s1, s2, s3, micros @ ..] = stored;
        let local_secs = u32::from_be_bytes([s0, s1, s2, s3]);
        let marked_at_micros = i64::from_be_bytes(micros);
        if marked_at_micros == NO_TIMESTAMP {
            return Ok(DeletionTime::LIVE);
        }
        match local_secs {
            NO_DELETION_TIME_I32 => Ok(DeletionTime::new(marked_at_micros, NO_DELETION_TIME)),
            secs if secs > NO_DELETION_TIME_I32 => {
                Err(input.corrupt("a deletion time with seconds up to 2038 before it"))
            }
            secs => Ok(DeletionTime::new(marked_at_micros, secs)),
        }
    }
}

fn partition_deletion_oa(input: &mut impl ByteSource) -> Step<DeletionTime> {
    let first = input.u8()?;
    if first == 0x80 {
        return Ok(DeletionTime::LIVE);
    }
    if first & 0x80 != 0 {
        return Err(input.corrupt("a deletion time of at least 1970 before it"));
    }
    let rest: [u8; 7] = input.array()?;
    let mut marked_at = [0; 8];
    marked_at[0] = first;
    marked_at[1..].copy_from_slice(&rest);
    let local_secs = u32::from_be_bytes(input.array()?);
    Ok(DeletionTime::new(i64::from_be_bytes(marked_at), local_secs))
}
