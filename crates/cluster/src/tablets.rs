//! [`Tablets`]: equal slices of the Murmur3 ring, shared by all tables.
//!
//! Slice `i` of `P` has the tokens above the end of slice `i - 1`, up to its own end. The end of slice `i` is
//! `ceil((i + 1) * 2^64 / P) - 1`, counted from the lowest token, so the last slice ends at the highest token. The number of slices is
//! fixed when a cluster is created. A slice is the unit of logs and of ownership: the node that owns a slice has the slice's end as a
//! token, so drivers compute replicas from tokens as they do for Cassandra's vnodes.

/// Maximum number of tablets of a cluster: each is a partition of the log, and brokers have limits.
pub const TABLETS_MAX: u32 = 4096;

/// The tablet that stands for the meta log itself, in positions.
pub const META_TABLET: u32 = u32::MAX;

/// The name of a log in messages.
pub(crate) fn log_name(tablet: u32) -> String {
    match tablet {
        META_TABLET => "the meta log".to_owned(),
        tablet => format!("the log of tablet {tablet}"),
    }
}

/// Turns a signed token into its distance from the lowest one.
const SIGN: u64 = 1 << 63;

/// The division of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tablets {
    count: u32,
}

impl Tablets {
    /// The whole ring as one slice.
    pub const ONE: Self = Self { count: 1 };

    /// Divides the ring into `count` slices; `None` unless there are 1 to [`TABLETS_MAX`].
    pub fn new(count: u32) -> Option<Self> {
        (1..=TABLETS_MAX).contains(&count).then_some(Self { count })
    }

    /// Number of slices.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The tablet of a token.
    pub fn of(self, token: i64) -> u32 {
        let distance = u128::from(token.cast_unsigned() ^ SIGN);
        // Below `count`, since the distance is below 2^64.
        ((distance * u128::from(self.count)) >> 64) as u32
    }

    /// The highest token of a tablet. Requires: the tablet is below `count`.
    pub fn end(self, tablet: u32) -> i64 {
        debug_assert!(tablet < self.count, "tablet {tablet} of {}", self.count);
        let distance = (u128::from(tablet + 1) << 64).div_ceil(u128::from(self.count)) - 1;
        (distance as u64 ^ SIGN).cast_signed()
    }
}

#[cfg(test)]
mod tests {
    use super::{TABLETS_MAX, Tablets};

    #[test]
    fn slices_meet_without_gap_or_overlap() {
        for count in [1, 2, 3, 7, 256, 1000, TABLETS_MAX] {
            let tablets = Tablets::new(count).unwrap();
            assert_eq!(tablets.of(i64::MIN), 0);
            assert_eq!(tablets.end(count - 1), i64::MAX);
            for tablet in 0..count {
                assert_eq!(tablets.of(tablets.end(tablet)), tablet, "{count}");
                if tablet + 1 < count {
                    assert_eq!(tablets.of(tablets.end(tablet) + 1), tablet + 1, "{count}");
                }
            }
        }
        assert_eq!(Tablets::new(0), None);
        assert_eq!(Tablets::new(TABLETS_MAX + 1), None);
    }
}
