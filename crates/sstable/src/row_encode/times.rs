//! Times in rows, as differences; deletion times of fixed size.

use ilion_codec::Writer;
use ilion_rows::{DeletionTime, NO_DELETION_TIME};

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

    #[inline]
    pub(super) fn micros(self, micros: i64, out: &mut Writer) {
        let difference = micros.wrapping_sub(self.min.min_timestamp_micros);
        out.uvint(difference.cast_unsigned());
    }

    /// Compat: versions before oa end in 2038, and times after that are cut (`expiration_date_overflow_policy: CAP`).
    #[inline]
    pub(super) fn secs(self, secs: u32, out: &mut Writer) {
        let secs = match secs {
            NO_DELETION_TIME => secs,
            _ => secs.min(self.secs_max),
        };
        let difference = secs.wrapping_sub(self.min.min_local_deletion_secs);
        out.uvint32(difference.cast_signed());
    }

    #[inline]
    pub(super) fn ttl(self, secs: u32, out: &mut Writer) {
        let difference = secs.wrapping_sub(self.min.min_ttl_secs);
        out.uvint32(difference.cast_signed());
    }

    #[inline]
    pub(super) fn deletion(self, deletion: &DeletionTime, out: &mut Writer) {
        self.micros(deletion.marked_at_micros, out);
        self.secs(deletion.local_secs, out);
    }
}

/// Appends a deletion time of fixed size (PDEL).
pub(crate) fn encode_deletion(
    version: Version,
    deletion: &DeletionTime,
    out: &mut Writer,
) -> Result<(), Unstorable> {
    if version.is_oa_or_later() {
        if deletion.is_live() {
            out.u8(0x80);
            return Ok(());
        }
        if deletion.marked_at_micros < 0 {
            return Err(Unstorable::NegativeDeletion);
        }
        out.i64(deletion.marked_at_micros);
        out.u32(deletion.local_secs);
    } else if deletion.is_live() {
        out.i32(i32::MAX);
        out.i64(i64::MIN);
    } else {
        out.u32(deletion.local_secs.min(SECONDS_MAX_BEFORE_OA));
        out.i64(deletion.marked_at_micros);
    }
    Ok(())
}
