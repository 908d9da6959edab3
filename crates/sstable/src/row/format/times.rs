//! Timestamps, TTLs and local times, stored as differences to the minima of the header; and deletions. Deletions of partitions
//! (PDEL) have times of fixed size.
//!
//! ```text
//! PDEL := secs:i32 micros:i64                         before oa; the greatest secs and the least micros mean: live
//!       | 80 | micros:i64 secs:u32                    since oa; 80 means: live
//! ```

use ilion_codec::Append;
use ilion_rows::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL};

use crate::error::Step;
use crate::row::format::values::Unstorable;
use crate::row::source::ByteSource;
use crate::statistics::SECONDS_MAX_BEFORE_OA;
use crate::{EncodingStats, Version};

/// Stands for a missing local deletion time in versions that store it as `i32`.
const NO_DELETION_TIME_I32: u32 = i32::MAX as u32;
const TTL_MAX: u32 = i32::MAX as u32;

/// How a file stores times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    least: EncodingStats,
    version: Version,
    /// Local times above this cannot be stored.
    secs_max: u32,
}

impl Times {
    pub(crate) fn new(least: EncodingStats, version: Version) -> Self {
        Self {
            least,
            version,
            secs_max: if version.is_oa_or_later() {
                NO_DELETION_TIME
            } else {
                SECONDS_MAX_BEFORE_OA
            },
        }
    }

    #[inline]
    pub(crate) fn timestamp(&self, input: &mut impl ByteSource) -> Step<i64> {
        Ok(self.timestamp_of(input.uvint()?))
    }

    /// The timestamp that is stored as `delta`.
    #[inline]
    pub(crate) fn timestamp_of(&self, delta: u64) -> i64 {
        self.least.min_timestamp_micros.wrapping_add(delta.cast_signed())
    }

    pub(crate) fn ttl(&self, input: &mut impl ByteSource) -> Step<u32> {
        let ttl_secs = input.uvint32()?.wrapping_add(self.least.min_ttl_secs);
        if ttl_secs == 0 || ttl_secs > TTL_MAX {
            return Err(input.corrupt("a TTL above 0"));
        }
        Ok(ttl_secs)
    }

    /// Decodes a local deletion time; a missing one is an error.
    pub(crate) fn local_deletion(&self, input: &mut impl ByteSource) -> Step<u32> {
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

    /// Decodes a deletion inside a row or marker.
    pub(crate) fn deletion(&self, input: &mut impl ByteSource) -> Step<DeletionTime> {
        let marked_at_micros = self.timestamp(input)?;
        if marked_at_micros == NO_TIMESTAMP {
            // Compat: 4.x and 5.0 store different seconds for a live deletion.
            input.uvint()?;
            return Ok(DeletionTime::LIVE);
        }
        let local_secs = self.any_local_deletion(input)?;
        Ok(DeletionTime::new(marked_at_micros, local_secs))
    }

    /// Length of the deletion of a live partition.
    #[inline]
    pub(crate) fn live_partition_len(&self) -> usize {
        if self.version.is_oa_or_later() { 1 } else { 12 }
    }

    /// True if these bytes are the deletion of a live partition.
    #[inline]
    pub(crate) fn is_live_partition(&self, bytes: &[u8]) -> bool {
        match bytes {
            [flags] => *flags == 0x80,
            bytes => bytes
                .last_chunk()
                .is_some_and(|micros| i64::from_be_bytes(*micros) == NO_TIMESTAMP),
        }
    }

    /// Decodes the deletion of a partition, or a deletion in an index: its times have a fixed size, and are not differences.
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

impl Times {
    /// The stored form of a timestamp.
    #[inline]
    pub(crate) fn micros_delta(&self, micros: i64) -> u64 {
        micros
            .wrapping_sub(self.least.min_timestamp_micros)
            .cast_unsigned()
    }

    /// The stored form of a local time. Compat: versions before oa cannot store times after 2038; later times are lowered to the
    /// maximum (`expiration_date_overflow_policy: CAP`).
    #[inline]
    fn secs_delta(&self, secs: u32) -> u64 {
        let secs = match secs {
            NO_DELETION_TIME => secs,
            _ => secs.min(self.secs_max),
        };
        sign_extended(secs.wrapping_sub(self.least.min_local_deletion_secs))
    }

    /// The stored form of a TTL.
    #[inline]
    fn ttl_delta(&self, secs: u32) -> u64 {
        sign_extended(secs.wrapping_sub(self.least.min_ttl_secs))
    }

    #[inline(always)]
    pub(crate) fn encode_micros(&self, micros: i64, out: &mut impl Append) {
        out.uvint(self.micros_delta(micros));
    }

    #[inline]
    pub(crate) fn encode_secs(&self, secs: u32, out: &mut impl Append) {
        out.uvint(self.secs_delta(secs));
    }

    #[inline]
    pub(crate) fn encode_ttl(&self, secs: u32, out: &mut impl Append) {
        out.uvint(self.ttl_delta(secs));
    }

    /// Appends the times of a liveness. Requires: the row has one.
    #[inline(always)]
    pub(crate) fn encode_liveness(&self, liveness: &Liveness, out: &mut impl Append) {
        self.encode_micros(liveness.timestamp_micros, out);
        if liveness.ttl_secs != NO_TTL {
            self.encode_ttl(liveness.ttl_secs, out);
            self.encode_secs(liveness.expires_secs, out);
        }
    }

    #[inline]
    pub(crate) fn encode_deletion(&self, deletion: &DeletionTime, out: &mut impl Append) {
        self.encode_micros(deletion.marked_at_micros, out);
        self.encode_secs(deletion.local_secs, out);
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

/// A sign-extended `i32` (`uvint32` of the format notes).
#[inline]
fn sign_extended(secs: u32) -> u64 {
    i64::from(secs.cast_signed()).cast_unsigned()
}

/// Prints a timestamp that is stored as `delta`.
pub fn show_timestamp(delta: u64, least: &EncodingStats) -> String {
    match least.min_timestamp_micros.wrapping_add(delta.cast_signed()) {
        NO_TIMESTAMP => "none".to_owned(),
        micros => micros.to_string(),
    }
}

/// Prints a local time that is stored as `delta`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "32 bits are stored, sign-extended"
)]
pub fn show_local_time(delta: u64, least: &EncodingStats) -> String {
    least
        .min_local_deletion_secs
        .wrapping_add(delta as u32)
        .to_string()
}

/// Prints a TTL that is stored as `delta`.
#[expect(
    clippy::cast_possible_truncation,
    reason = "32 bits are stored, sign-extended"
)]
pub fn show_ttl(delta: u64, least: &EncodingStats) -> String {
    least.min_ttl_secs.wrapping_add(delta as u32).to_string()
}

/// Maximum length of a deletion time of fixed size.
pub(crate) const PARTITION_DELETION_BYTES_MAX: usize = 12;

/// The deletion of a live partition: the highest time in seconds, and the lowest in microseconds.
const LIVE_BEFORE_OA: [u8; PARTITION_DELETION_BYTES_MAX] =
    [0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0];

/// Appends a deletion time of fixed size (PDEL).
#[inline(always)]
pub(crate) fn encode_partition_deletion(
    version: Version,
    deletion: &DeletionTime,
    out: &mut impl Append,
) -> Result<(), Unstorable> {
    if deletion.is_live() {
        encode_no_deletion(version, out);
    } else if version.is_oa_or_later() {
        if deletion.marked_at_micros < 0 {
            return Err(Unstorable::NegativeDeletion);
        }
        out.i64(deletion.marked_at_micros);
        out.u32(deletion.local_secs);
    } else {
        out.u32(deletion.local_secs.min(SECONDS_MAX_BEFORE_OA));
        out.i64(deletion.marked_at_micros);
    }
    Ok(())
}

/// Appends the deletion of a live partition.
#[inline]
fn encode_no_deletion(version: Version, out: &mut impl Append) {
    if version.is_oa_or_later() {
        out.u8(0x80);
    } else {
        out.array(LIVE_BEFORE_OA);
    }
}
