//! Times in rows, as differences; deletion times of fixed size.

use ilion_codec::Append;
use ilion_rows::{DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL};

use crate::statistics::SECONDS_MAX_BEFORE_OA;
use crate::values::Unstorable;
use crate::{EncodingStats, Version};

/// The differences that times are stored as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    min: EncodingStats,
    /// Local times above this cannot be stored.
    secs_max: u32,
}

impl Times {
    pub(super) fn new(min: EncodingStats, version: Version) -> Self {
        Self {
            min,
            secs_max: if version.is_oa_or_later() {
                NO_DELETION_TIME
            } else {
                SECONDS_MAX_BEFORE_OA
            },
        }
    }

    /// What is stored of a timestamp.
    #[inline]
    pub(super) fn of_micros(self, micros: i64) -> u64 {
        micros.wrapping_sub(self.min.min_timestamp_micros).cast_unsigned()
    }

    /// What is stored of a local time. Compat: versions before oa end in 2038, and times after that are cut
    /// (`expiration_date_overflow_policy: CAP`).
    #[inline]
    fn of_secs(self, secs: u32) -> u64 {
        let secs = match secs {
            NO_DELETION_TIME => secs,
            _ => secs.min(self.secs_max),
        };
        sign_extended(secs.wrapping_sub(self.min.min_local_deletion_secs))
    }

    /// What is stored of a TTL.
    #[inline]
    fn of_ttl(self, secs: u32) -> u64 {
        sign_extended(secs.wrapping_sub(self.min.min_ttl_secs))
    }

    #[inline(always)]
    pub(super) fn micros(self, micros: i64, out: &mut impl Append) {
        out.uvint(self.of_micros(micros));
    }

    #[inline]
    pub(super) fn secs(self, secs: u32, out: &mut impl Append) {
        out.uvint(self.of_secs(secs));
    }

    #[inline]
    pub(super) fn ttl(self, secs: u32, out: &mut impl Append) {
        out.uvint(self.of_ttl(secs));
    }

    /// The times of a liveness that is there.
    #[inline(always)]
    pub(super) fn liveness(self, liveness: &Liveness, out: &mut impl Append) {
        self.micros(liveness.timestamp_micros, out);
        if liveness.ttl_secs != NO_TTL {
            self.ttl(liveness.ttl_secs, out);
            self.secs(liveness.expires_secs, out);
        }
    }

    #[inline]
    pub(super) fn deletion(self, deletion: &DeletionTime, out: &mut impl Append) {
        self.micros(deletion.marked_at_micros, out);
        self.secs(deletion.local_secs, out);
    }
}

/// As `uvint32` of the format notes.
#[inline]
fn sign_extended(secs: u32) -> u64 {
    i64::from(secs.cast_signed()).cast_unsigned()
}

/// Bytes of a deletion time of fixed size, at most.
pub(super) const DELETION_BYTES_MAX: usize = 12;

/// The greatest time in seconds, and the least in microseconds.
const LIVE_BEFORE_OA: [u8; DELETION_BYTES_MAX] = [0x7F, 0xFF, 0xFF, 0xFF, 0x80, 0, 0, 0, 0, 0, 0, 0];

/// Appends a deletion time of fixed size (PDEL).
#[inline(always)]
pub(crate) fn encode_deletion(
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

/// Appends that nothing was deleted.
#[inline]
fn encode_no_deletion(version: Version, out: &mut impl Append) {
    if version.is_oa_or_later() {
        out.u8(0x80);
    } else {
        out.array(LIVE_BEFORE_OA);
    }
}
