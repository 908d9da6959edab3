//! The histograms of Statistics.db.
//!
//! ```text
//! estimated := bucket_count:i32  (offset:i64 count:i64)*      offset of the bucket before; the first repeats its own
//! tombstone := bins_max:i32  bin_count:i32  bin*
//! bin       := second:f64 count:i64                           before oa
//!            | second:i64 count:i32                           since oa
//! ```

use std::collections::BTreeMap;

use ilion_codec::{Error as Malformed, Reader, Writer};

use crate::Version;

/// Counts of values in buckets whose bounds grow by a fifth (`org.apache.cassandra.utils.EstimatedHistogram`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EstimatedHistogram {
    /// Greatest value of each bucket except the last, ascending.
    offsets: Vec<i64>,
    /// One more than `offsets`: the last bucket counts values above all offsets.
    counts: Vec<i64>,
}

/// Number of offsets for partition sizes: up to some terabytes.
const SIZE_OFFSETS: usize = 155;
/// Number of offsets for numbers of cells: up to some billions.
const CELL_OFFSETS: usize = 118;
/// Files with more buckets are refused; no version writes as many.
const BUCKETS_READ_MAX: usize = 4096;

impl EstimatedHistogram {
    /// An empty histogram for partition sizes.
    pub fn of_sizes() -> Self {
        Self::with_offsets(SIZE_OFFSETS)
    }

    /// An empty histogram for numbers of cells.
    pub fn of_cells() -> Self {
        Self::with_offsets(CELL_OFFSETS)
    }

    fn with_offsets(count: usize) -> Self {
        let mut offsets = Vec::with_capacity(count);
        let mut last = 1;
        for _ in 0..count {
            offsets.push(last);
            // Compat: `round(last * 1.2)`, halves rounded up, but at least one more.
            last = ((last * 12 + 5) / 10).max(last + 1);
        }
        Self {
            counts: vec![0; count + 1],
            offsets,
        }
    }

    /// Adds the counts of another histogram. The values of a bucket that does not exist here are added as its greatest value.
    pub fn merge(&mut self, other: &Self) {
        for (index, count) in other.counts.iter().enumerate() {
            let value = other.offsets.get(index).copied().unwrap_or(i64::MAX);
            let bucket = self.offsets.partition_point(|offset| *offset < value);
            self.counts[bucket] = self.counts[bucket].saturating_add(*count);
        }
    }

    /// Number of counted values.
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter().map(|count| count.max(&0).unsigned_abs());
        counts.fold(0, u64::saturating_add)
    }

    /// Mean of the values, where each counts as the greatest value of its bucket; 0 if no values were counted.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn mean(&self) -> f64 {
        let (mut sum, mut count) = (0.0, 0.0);
        for (offset, bucket) in self.offsets.iter().zip(&self.counts) {
            sum += *offset as f64 * *bucket as f64;
            count += *bucket as f64;
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    /// The buckets that are not empty: greatest value (`None` for the overflow bucket) and count.
    pub fn buckets(&self) -> impl Iterator<Item = (Option<i64>, i64)> {
        let offsets = self.offsets.iter().copied().map(Some).chain([None]);
        offsets
            .zip(self.counts.iter().copied())
            .filter(|(_, count)| *count != 0)
    }

    /// The value that the given share (0 to 1) of the values does not exceed; `None` if that value is in the overflow bucket.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate; the share is between 0 and 1"
    )]
    pub fn percentile(&self, share: f64) -> Option<i64> {
        let wanted = (self.count() as f64 * share.clamp(0.0, 1.0)).ceil() as u64;
        let mut seen = 0u64;
        for (offset, count) in self.buckets() {
            seen = seen.saturating_add(count.max(0).unsigned_abs());
            if seen >= wanted {
                return offset;
            }
        }
        Some(0)
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        out.i32(i32::try_from(self.counts.len()).unwrap_or(i32::MAX));
        for (index, count) in self.counts.iter().enumerate() {
            out.i64(self.offsets[index.saturating_sub(1)]);
            out.i64(*count);
        }
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let refused = input.error("2 to 4096 histogram buckets");
        let count = usize::try_from(input.i32()?).ok();
        let Some(count) = count.filter(|count| (2..=BUCKETS_READ_MAX).contains(count)) else {
            return Err(refused);
        };
        let mut histogram = Self {
            offsets: Vec::with_capacity(count - 1),
            counts: Vec::with_capacity(count),
        };
        for index in 0..count {
            let offset = input.i64()?;
            if index > 0 {
                histogram.offsets.push(offset);
            }
            histogram.counts.push(input.i64()?);
        }
        if histogram.offsets.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err(input.error("ascending histogram offsets"));
        }
        Ok(histogram)
    }
}

/// Builds an [`EstimatedHistogram`]. Consecutive values of one bucket are counted together, since partitions of a table are often of
/// similar size.
#[derive(Debug)]
pub(crate) struct EstimatedHistogramBuilder {
    run: Run,
    histogram: EstimatedHistogram,
}

/// The bucket of the last value with its bounds, and the number of consecutive values in it.
#[derive(Clone, Copy, Debug)]
struct Run {
    bucket: usize,
    min: u64,
    max: u64,
    count: i64,
}

impl EstimatedHistogramBuilder {
    /// Starts with an empty histogram.
    pub(crate) fn new(histogram: EstimatedHistogram) -> Self {
        let mut builder = Self {
            run: Run {
                bucket: 0,
                min: 0,
                max: 0,
                count: 0,
            },
            histogram,
        };
        builder.begin_run(0);
        builder
    }

    /// Counts a value.
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        if value < self.run.min || self.run.max < value {
            self.begin_run(value);
        }
        self.run.count += 1;
    }

    #[inline(never)]
    fn begin_run(&mut self, value: u64) {
        let EstimatedHistogram { offsets, counts } = &mut self.histogram;
        counts[self.run.bucket] += self.run.count;
        let bucket = offsets.partition_point(|offset| offset.cast_unsigned() < value);
        let offset = |bucket: usize| offsets.get(bucket).map(|offset| offset.cast_unsigned());
        self.run = Run {
            bucket,
            min: bucket
                .checked_sub(1)
                .and_then(offset)
                .map_or(0, |below| below + 1),
            max: offset(bucket).unwrap_or(u64::MAX),
            count: 0,
        };
    }

    /// The finished histogram.
    pub(crate) fn finish(mut self) -> EstimatedHistogram {
        self.histogram.counts[self.run.bucket] += self.run.count;
        self.histogram
    }
}

/// When tombstones can be dropped: seconds and counts, in at most 100 bins
/// (`org.apache.cassandra.utils.streamhist.TombstoneHistogram`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TombstoneHistogram {
    /// Seconds and counts, ascending by second.
    bins: Vec<(u64, u64)>,
}

/// Maximum number of bins.
const BINS_MAX: usize = 100;
/// Seconds are rounded up to whole minutes.
const BIN_SECS: u64 = 60;
/// Files with more bins are refused; Cassandra writes fewer.
const BINS_READ_MAX: usize = 1 << 16;
/// The last valid second; the two values above mean "no deletion" and "invalid".
const SECONDS_MAX: u64 = u32::MAX as u64 - 2;

impl TombstoneHistogram {
    /// Seconds and counts, ascending.
    pub fn bins(&self) -> &[(u64, u64)] {
        &self.bins
    }

    /// Approximate number of tombstones that can be dropped at `second`; parts of bins count in proportion.
    #[expect(clippy::cast_precision_loss, reason = "an estimate")]
    pub fn sum_until(&self, second: u64) -> f64 {
        let above = self.bins.partition_point(|(point, _)| *point <= second);
        if above == 0 {
            return 0.0;
        }
        let counts = self.bins[..above].iter().map(|(_, count)| *count);
        let whole = counts.fold(0, u64::saturating_add);
        let Some((next, next_count)) = self.bins.get(above) else {
            return whole as f64;
        };
        // The trapezoid between the two bins around the second (Ben-Haim and Tom-Tov).
        let (point, count) = self.bins[above - 1];
        let weight = (second - point) as f64 / (next - point) as f64;
        let count = count as f64;
        let between = count + (*next_count as f64 - count) * weight;
        whole as f64 - count + (count + between) * weight / 2.0 + count / 2.0
    }

    fn add(&mut self, second: u64, count: u64) {
        match self.bins.binary_search_by_key(&second, |bin| bin.0) {
            Ok(index) => self.bins[index].1 += count,
            Err(index) => self.bins.insert(index, (second, count)),
        }
        if self.bins.len() > BINS_MAX {
            self.merge_nearest();
        }
    }

    /// Merges the two nearest bins at their weighted mean.
    fn merge_nearest(&mut self) {
        let distance = |index: &usize| self.bins[index + 1].0 - self.bins[*index].0;
        let Some(index) = (0..self.bins.len() - 1).min_by_key(distance) else {
            return;
        };
        let ((left, left_count), (right, right_count)) = (self.bins[index], self.bins[index + 1]);
        let weighted =
            u128::from(left) * u128::from(left_count) + u128::from(right) * u128::from(right_count);
        let count = left_count + right_count;
        let mean = u64::try_from(weighted / u128::from(count.max(1))).unwrap_or(right);
        self.bins[index] = (round_up(mean.max(left + 1).min(right)), count);
        self.bins.remove(index + 1);
    }

    pub(crate) fn encode(&self, version: Version, out: &mut Writer) {
        let count = i32::try_from(self.bins.len()).unwrap_or(i32::MAX);
        out.i32(count);
        out.i32(count);
        for (second, count) in &self.bins {
            if version.is_oa_or_later() {
                out.u64(*second);
                out.i32(i32::try_from(*count).unwrap_or(i32::MAX));
            } else {
                #[expect(clippy::cast_precision_loss, reason = "seconds are below 2^32")]
                out.f64(*second as f64);
                out.u64(*count);
            }
        }
    }

    pub(crate) fn decode(version: Version, input: &mut Reader<'_>) -> Result<Self, Malformed> {
        input.i32()?;
        let refused = input.error("0 to 65536 tombstone bins");
        let count = usize::try_from(input.i32()?).ok();
        let Some(count) = count.filter(|count| *count <= BINS_READ_MAX) else {
            return Err(refused);
        };
        let mut bins = Vec::with_capacity(input.capacity_for(count, size_of::<(u64, u64)>()));
        for _ in 0..count {
            bins.push(decode_bin(version, input)?);
        }
        bins.sort_unstable();
        bins.dedup_by_key(|bin| bin.0);
        Ok(Self { bins })
    }
}

fn decode_bin(version: Version, input: &mut Reader<'_>) -> Result<(u64, u64), Malformed> {
    if version.is_oa_or_later() {
        let second = input.i64()?.max(0).unsigned_abs();
        return Ok((second, u64::from(input.i32()?.max(0).unsigned_abs())));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "casts of doubles saturate, and NaN is 0"
    )]
    let second = input.f64()? as u64;
    Ok((second, input.i64()?.max(0).unsigned_abs()))
}

fn round_up(second: u64) -> u64 {
    second.next_multiple_of(BIN_SECS).min(SECONDS_MAX)
}

/// Builds a [`TombstoneHistogram`]. Counts of equal minutes are added first, so that bins are rarely merged.
#[derive(Debug, Default)]
pub(crate) struct TombstoneHistogramBuilder {
    /// The last minute, and the number of consecutive tombstones in it: tombstones mostly come in runs.
    run: (u64, u64),
    spool: BTreeMap<u64, u64>,
    histogram: TombstoneHistogram,
}

/// Number of minutes that are kept before bins are merged (`TOMBSTONE_HISTOGRAM_SPOOL_SIZE` is 100,000).
const SPOOL_MAX: usize = 32 << 10;

impl TombstoneHistogramBuilder {
    /// Counts a local deletion time.
    #[inline]
    pub(crate) fn add(&mut self, second: u32) {
        let second = round_up(u64::from(second));
        if self.run.0 != second {
            self.end_run();
            self.run.0 = second;
        }
        self.run.1 += 1;
    }

    fn end_run(&mut self) {
        let (second, count) = std::mem::take(&mut self.run);
        if count > 0 {
            *self.spool.entry(second).or_default() += count;
            if self.spool.len() >= SPOOL_MAX {
                self.drain();
            }
        }
    }

    fn drain(&mut self) {
        for (second, count) in std::mem::take(&mut self.spool) {
            self.histogram.add(second, count);
        }
    }

    /// The finished histogram.
    pub(crate) fn finish(mut self) -> TombstoneHistogram {
        self.end_run();
        self.drain();
        self.histogram
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_grow_by_a_fifth_as_in_cassandra() {
        let histogram = EstimatedHistogram::of_sizes();
        let known = [
            1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24, 29, 35, 42, 50, 60, 72, 86, 103,
        ];
        assert_eq!(histogram.offsets[..known.len()], known);
        assert_eq!((histogram.counts.len(), histogram.offsets.len()), (156, 155));
        assert_eq!(EstimatedHistogram::of_cells().counts.len(), 119);
    }

    #[test]
    fn values_fall_into_the_bucket_that_they_do_not_exceed() {
        let mut builder = EstimatedHistogramBuilder::new(EstimatedHistogram::of_cells());
        for value in [0, 1, 8, 9, 10, u64::MAX] {
            builder.add(value);
        }
        let histogram = builder.finish();
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!(buckets, [(Some(1), 2), (Some(8), 1), (Some(10), 2), (None, 1)]);
        assert_eq!(histogram.percentile(0.5), Some(8));
        assert_eq!((histogram.count(), histogram.percentile(1.0)), (6, None));
        let mut sum = histogram.clone();
        sum.merge(&histogram);
        assert_eq!(sum.count(), 12);
    }

    #[test]
    fn both_histograms_round_trip() {
        let mut sizes = EstimatedHistogramBuilder::new(EstimatedHistogram::of_sizes());
        sizes.add(70_000);
        let sizes = sizes.finish();
        let mut builder = TombstoneHistogramBuilder::default();
        for second in [1_700_000_001, 1_700_000_002, 1_800_000_000] {
            builder.add(second);
        }
        let tombstones = builder.finish();
        assert_eq!(tombstones.bins(), [(1_700_000_040, 2), (1_800_000_000, 1)]);
        for version in [Version::NB, Version::OA] {
            let mut out = Writer::new();
            sizes.encode(&mut out);
            tombstones.encode(version, &mut out);
            out.u8(0xAA);
            let mut input = Reader::new(out.as_slice());
            assert_eq!(EstimatedHistogram::decode(&mut input), Ok(sizes.clone()));
            assert_eq!(
                TombstoneHistogram::decode(version, &mut input),
                Ok(tombstones.clone())
            );
            assert_eq!(input.rest(), [0xAA]);
        }
    }

    #[test]
    fn many_drop_times_share_a_hundred_bins_and_none_is_lost() {
        let mut builder = TombstoneHistogramBuilder::default();
        for minute in 0..100_000 {
            builder.add(1_600_000_000 + minute * 61);
        }
        let histogram = builder.finish();
        assert_eq!(histogram.bins().len(), BINS_MAX);
        assert!(histogram.bins().windows(2).all(|pair| pair[0].0 < pair[1].0));
        let total: u64 = histogram.bins().iter().map(|bin| bin.1).sum();
        assert_eq!(total, 100_000);
        assert!(histogram.sum_until(0) < 1.0);
        let half = histogram.sum_until(1_600_000_000 + 50_000 * 61);
        assert!((40_000.0..60_000.0).contains(&half), "{half}");
        assert!((histogram.sum_until(u64::MAX) - 100_000.0).abs() < 1.0);
    }
}
