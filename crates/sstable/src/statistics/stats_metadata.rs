//! STATS of Statistics.db: statistics of an SSTable's contents.
//!
//! ```text
//! stats    := partition_sizes:EH  cells:EH  commit_log_upper:CLP  min_ts:i64 max_ts:i64  min:LDT max:LDT
//!             min_ttl:i32 max_ttl:i32  compression_ratio:f64  drop_times:TH  level:i32  repaired_at:i64
//!             covered  has_legacy_counter_shards:bool  columns:i64 rows:i64
//!             [commit_log_lower:CLP]  [count:i32 (CLP CLP)*]  [pending_repair:optional is_transient:bool]
//!             [host:optional]                                              gates: see `Version`
//!             [has_partition_deletions:bool first_key:bytesV last_key:bytesV coverage:f64]     oa and later
//! CLP      := segment:i64 offset:i32                    none: -1, 0
//! LDT      := i32, none = 7fffffff                      before oa
//!           | u32, none = ffffffff
//! covered  := (count:i32 (bytes16)*) twice              values of the least and the greatest clustering, before oa
//!           | types bound bound                         types as in HEADER
//! optional := 0:u8 | 1:u8 uuid
//! ```
//!
//! `EH` and `TH` are in `histogram`, `bound` in `values`. Bytes behind the last field are ignored: Cassandra 5.0 pads it.

use bytes::Bytes;
use ilion_codec::{Error as Malformed, Reader, Writer};
use ilion_rows::{Bound, BoundKind, NO_DELETION_TIME, NO_TTL, Slice, Values};
use uuid::Uuid;

use super::header::ClassName;
use crate::Version;
use crate::histogram::{EstimatedHistogram, TombstoneHistogram};
use crate::row::format::values::{FixedLen, decode_bound, encode_bound};

/// A position in the commit log, as in files of Cassandra.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitLogPosition {
    /// Id of the segment; -1 if there is no position.
    pub segment: i64,
    /// Offset in the segment.
    pub offset: i32,
}

impl CommitLogPosition {
    /// No position.
    pub const NONE: Self = Self {
        segment: -1,
        offset: 0,
    };

    fn encode(self, out: &mut Writer) {
        out.i64(self.segment);
        out.i32(self.offset);
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            segment: input.i64()?,
            offset: input.i32()?,
        })
    }
}

/// Statistics of an SSTable's contents.
#[derive(Clone, Debug, PartialEq)]
pub struct StatsMetadata {
    /// Uncompressed sizes of the partitions.
    pub partition_sizes: EstimatedHistogram,
    /// Numbers of cells of the partitions.
    pub cells_per_partition: EstimatedHistogram,
    /// Lowest timestamp.
    pub min_timestamp_micros: i64,
    /// Highest timestamp.
    pub max_timestamp_micros: i64,
    /// Lowest local deletion time; [`NO_DELETION_TIME`] if all data is live and never expires.
    pub min_local_deletion_secs: u32,
    /// Highest local deletion time; [`NO_DELETION_TIME`] if some data is live and never expires.
    pub max_local_deletion_secs: u32,
    /// Lowest TTL.
    pub min_ttl_secs: u32,
    /// Highest TTL.
    pub max_ttl_secs: u32,
    /// Compressed size divided by uncompressed size; -1 if Data.db is not compressed.
    pub compression_ratio: f64,
    /// Local deletion times of tombstones and expiring cells.
    pub tombstone_drop_times: TombstoneHistogram,
    /// Level of leveled compaction.
    pub level: u32,
    /// When the SSTable was repaired, in milliseconds since 1970; 0 if never.
    pub repaired_at_millis: i64,
    /// The lowest and the highest clustering, as stored. Reads use [`StatsMetadata::covered`].
    pub covered_clusterings: Slice,
    /// True if counter cells have shards of the kinds before Cassandra 2.1.
    pub has_legacy_counter_shards: bool,
    /// Number of columns with data, summed over the rows.
    pub total_columns: u64,
    /// Number of rows, including static rows that are not empty.
    pub total_rows: u64,
    /// Intervals of the commit log whose mutations are in the SSTable.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
    /// Session of the repair that the SSTable takes part in.
    pub pending_repair: Option<Uuid>,
    /// True if the SSTable belongs to a transient replica.
    pub is_transient: bool,
    /// Id of the host that wrote the SSTable.
    pub originating_host: Option<Uuid>,
    /// False if the SSTable certainly has no partition deletions.
    pub has_partition_deletions: bool,
    /// First and last partition key, if the version has them.
    pub first_and_last_key: Option<(Bytes, Bytes)>,
    /// Share of the node's token range that the SSTable covers; NaN if unknown.
    pub token_space_coverage: f64,
}

impl StatsMetadata {
    /// A slice that covers all rows and markers of an SSTable of this version, except static rows.
    ///
    /// In lists of values, an empty value may stand for null (as in entries of static rows in a table of an index), and null sorts
    /// elsewhere. So the bound ends before such a value, which makes the slice wider.
    pub fn covered(&self, version: Version) -> Slice {
        let mut covered = self.covered_clusterings.clone();
        if !version.is_oa_or_later() {
            for bound in [&mut covered.start, &mut covered.end] {
                let is_told = |value: &Option<Bytes>| value.as_ref().is_some_and(|value| !value.is_empty());
                let told = bound.values.iter().take_while(|value| is_told(value)).count();
                bound.values.truncate(told);
            }
        }
        covered
    }

    /// Unknown statistics: bounds that are valid for any rows.
    pub fn unknown() -> Self {
        Self {
            partition_sizes: EstimatedHistogram::of_sizes(),
            cells_per_partition: EstimatedHistogram::of_cells(),
            min_timestamp_micros: i64::MIN + 1,
            max_timestamp_micros: i64::MAX,
            min_local_deletion_secs: 0,
            max_local_deletion_secs: NO_DELETION_TIME,
            min_ttl_secs: NO_TTL,
            max_ttl_secs: u32::MAX,
            compression_ratio: -1.0,
            tombstone_drop_times: TombstoneHistogram::default(),
            level: 0,
            repaired_at_millis: 0,
            covered_clusterings: Slice::all(),
            has_legacy_counter_shards: false,
            total_columns: 0,
            total_rows: 0,
            commit_log_intervals: Vec::new(),
            pending_repair: None,
            is_transient: false,
            originating_host: None,
            has_partition_deletions: true,
            first_and_last_key: None,
            token_space_coverage: f64::NAN,
        }
    }

    fn commit_log_lower(&self) -> CommitLogPosition {
        let starts = self.commit_log_intervals.iter().map(|interval| interval.0);
        starts.min().unwrap_or(CommitLogPosition::NONE)
    }

    fn commit_log_upper(&self) -> CommitLogPosition {
        let ends = self.commit_log_intervals.iter().map(|interval| interval.1);
        ends.max().unwrap_or(CommitLogPosition::NONE)
    }

    pub(super) fn encode(&self, version: Version, clustering_types: &[ClassName], out: &mut Writer) {
        self.partition_sizes.encode(out);
        self.cells_per_partition.encode(out);
        self.commit_log_upper().encode(out);
        out.i64(self.min_timestamp_micros);
        out.i64(self.max_timestamp_micros);
        encode_secs(version, self.min_local_deletion_secs, out);
        encode_secs(version, self.max_local_deletion_secs, out);
        out.u32(self.min_ttl_secs);
        out.u32(self.max_ttl_secs);
        out.f64(self.compression_ratio);
        self.tombstone_drop_times.encode(version, out);
        out.u32(self.level);
        out.i64(self.repaired_at_millis);
        if version.is_oa_or_later() {
            encode_covered(&self.covered_clusterings, clustering_types, out);
        } else {
            encode_lists(&self.covered_clusterings, out);
        }
        out.bool(self.has_legacy_counter_shards);
        out.u64(self.total_columns);
        out.u64(self.total_rows);
        self.encode_origin(version, out);
        if version.is_oa_or_later() {
            out.bool(self.has_partition_deletions);
            let (first, last) = self.first_and_last_key.clone().unwrap_or_default();
            out.bytes_vint(&first);
            out.bytes_vint(&last);
            out.f64(self.token_space_coverage);
        }
    }

    fn encode_origin(&self, version: Version, out: &mut Writer) {
        if version.has_commit_log_lower_bound() {
            self.commit_log_lower().encode(out);
        }
        if version.has_commit_log_intervals() {
            out.i32(i32::try_from(self.commit_log_intervals.len()).unwrap_or(i32::MAX));
            for (start, end) in &self.commit_log_intervals {
                start.encode(out);
                end.encode(out);
            }
        }
        if version.is_na_or_later() {
            encode_optional(self.pending_repair, out);
            out.bool(self.is_transient);
        }
        if version.has_originating_host() {
            encode_optional(self.originating_host, out);
        }
    }

    /// Decodes the component; ignores bytes behind the last field.
    pub(super) fn decode(
        version: Version,
        clustering_types: &[ClassName],
        input: &mut Reader<'_>,
    ) -> Result<Self, Malformed> {
        let mut stats = Self::unknown();
        stats.partition_sizes = EstimatedHistogram::decode(input)?;
        stats.cells_per_partition = EstimatedHistogram::decode(input)?;
        let commit_log_upper = CommitLogPosition::decode(input)?;
        stats.min_timestamp_micros = input.i64()?;
        stats.max_timestamp_micros = input.i64()?;
        stats.min_local_deletion_secs = decode_secs(version, input)?;
        stats.max_local_deletion_secs = decode_secs(version, input)?;
        stats.min_ttl_secs = input.u32()?;
        stats.max_ttl_secs = input.u32()?;
        stats.compression_ratio = input.f64()?;
        stats.tombstone_drop_times = TombstoneHistogram::decode(version, input)?;
        stats.level = input.u32()?;
        stats.repaired_at_millis = input.i64()?;
        stats.covered_clusterings = if version.is_oa_or_later() {
            decode_covered(input)?
        } else {
            decode_lists(version, clustering_types, input)?
        };
        stats.has_legacy_counter_shards = input.bool()?;
        stats.total_columns = input.u64()?;
        stats.total_rows = input.u64()?;
        stats.decode_origin(version, commit_log_upper, input)?;
        if version.is_oa_or_later() {
            stats.has_partition_deletions = input.bool()?;
            let first = Bytes::copy_from_slice(input.bytes_vint()?);
            let last = Bytes::copy_from_slice(input.bytes_vint()?);
            stats.first_and_last_key = Some((first, last));
            stats.token_space_coverage = input.f64()?;
        }
        Ok(stats)
    }

    fn decode_origin(
        &mut self,
        version: Version,
        commit_log_upper: CommitLogPosition,
        input: &mut Reader<'_>,
    ) -> Result<(), Malformed> {
        let mut lower = CommitLogPosition::NONE;
        if version.has_commit_log_lower_bound() {
            lower = CommitLogPosition::decode(input)?;
        }
        if version.has_commit_log_intervals() {
            self.commit_log_intervals = decode_intervals(input)?;
        } else if commit_log_upper != CommitLogPosition::NONE {
            self.commit_log_intervals = vec![(lower, commit_log_upper)];
        }
        if version.is_na_or_later() {
            self.pending_repair = decode_optional(input)?;
            self.is_transient = input.bool()?;
        }
        if version.has_originating_host() {
            self.originating_host = decode_optional(input)?;
        }
        Ok(())
    }
}

/// The highest second that versions before oa can store.
pub(crate) const SECONDS_MAX_BEFORE_OA: u32 = i32::MAX.unsigned_abs() - 1;

fn encode_secs(version: Version, secs: u32, out: &mut Writer) {
    if version.is_oa_or_later() {
        out.u32(secs);
    } else if secs == NO_DELETION_TIME {
        out.i32(i32::MAX);
    } else {
        out.u32(secs.min(SECONDS_MAX_BEFORE_OA));
    }
}

fn decode_secs(version: Version, input: &mut Reader<'_>) -> Result<u32, Malformed> {
    let secs = input.u32()?;
    let is_none = !version.is_oa_or_later() && secs > SECONDS_MAX_BEFORE_OA;
    Ok(if is_none { NO_DELETION_TIME } else { secs })
}

fn encode_optional(uuid: Option<Uuid>, out: &mut Writer) {
    out.bool(uuid.is_some());
    if let Some(uuid) = uuid {
        out.bytes(uuid.as_bytes());
    }
}

fn decode_optional(input: &mut Reader<'_>) -> Result<Option<Uuid>, Malformed> {
    Ok(if input.bool()? {
        Some(Uuid::from_bytes(input.uuid_bytes()?))
    } else {
        None
    })
}

fn decode_intervals(
    input: &mut Reader<'_>,
) -> Result<Vec<(CommitLogPosition, CommitLogPosition)>, Malformed> {
    let refused = input.error("a number of commit log intervals");
    let count = usize::try_from(input.i32()?).map_err(|_| refused)?;
    let mut intervals = Vec::with_capacity(input.capacity_for(count, 24));
    for _ in 0..count {
        intervals.push((
            CommitLogPosition::decode(input)?,
            CommitLogPosition::decode(input)?,
        ));
    }
    Ok(intervals)
}

fn encode_lists(slice: &Slice, out: &mut Writer) {
    let (start, end) = (&slice.start.values, &slice.end.values);
    let is_too_long = |value: &Option<Bytes>| value.as_ref().is_some_and(|value| value.len() > 0xFFFF);
    let fits = !start.iter().chain(end).any(is_too_long);
    for values in [start, end] {
        // A bound without values is always valid.
        let values: &[Option<Bytes>] = if fits { values } else { &[] };
        out.i32(i32::try_from(values.len()).unwrap_or(i32::MAX));
        for value in values {
            out.bytes16(value.as_deref().unwrap_or_default());
        }
    }
}

fn decode_list(input: &mut Reader<'_>) -> Result<Values, Malformed> {
    let refused = input.error("at most 65535 clustering values");
    let count = u16::try_from(input.i32()?).map_err(|_| refused)?;
    let mut values = Values::new();
    for _ in 0..count {
        values.push(Some(Bytes::copy_from_slice(input.bytes16()?)));
    }
    Ok(values)
}

/// The lists do not record whether their bounds are exclusive, so the slice includes them.
fn decode_lists(
    version: Version,
    clustering_types: &[ClassName],
    input: &mut Reader<'_>,
) -> Result<Slice, Malformed> {
    let (start, end) = (decode_list(input)?, decode_list(input)?);
    let fits = start.len() <= clustering_types.len() && end.len() <= clustering_types.len();
    if !version.has_trustworthy_clustering_lists() || !fits {
        return Ok(Slice::all());
    }
    Ok(Slice {
        start: Bound::new(BoundKind::InclStart, start),
        end: Bound::new(BoundKind::InclEnd, end),
    })
}

fn lens_of(types: &[ClassName]) -> Vec<FixedLen> {
    types.iter().map(|class| class.fixed_len()).collect()
}

fn encode_covered(slice: &Slice, types: &[ClassName], out: &mut Writer) {
    ClassName::encode_many(types, out);
    let lens = lens_of(types);
    let mut bounds = Writer::new();
    let stored = encode_bound(&lens, &slice.start, &mut bounds)
        .and_then(|()| encode_bound(&lens, &slice.end, &mut bounds));
    if stored.is_err() {
        bounds.clear();
        // The slice without bounds is always valid.
        bounds.bytes(&[BoundKind::InclStart as u8, 0, 0, BoundKind::InclEnd as u8, 0, 0]);
    }
    out.bytes(bounds.as_slice());
}

fn decode_covered(input: &mut Reader<'_>) -> Result<Slice, Malformed> {
    let lens = lens_of(&ClassName::decode_many(input)?);
    Ok(Slice {
        start: decode_bound(&lens, input)?,
        end: decode_bound(&lens, input)?,
    })
}
