//! Summary.db: a sample of Index.db, in memory.
//!
//! ```text
//! file  := min_index_interval:i32  count:i32  size:i64  sampling_level:i32  full_size:i32
//!          offset:u32le *  entry*  first_key:bytes32  last_key:bytes32
//! entry := key  index_position:i64le                   up to the start of the next entry; size is of offsets and entries
//! ```
//!
//! A summary that does not fit its index is ignored, and built again from Index.db.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use ilion_codec::{Error as Malformed, Reader};
use ilion_rows::{DecoratedKey, KeyBound};
use ilion_types::{Partitioner, Token};

use super::index_walker::IndexWalker;
use crate::verify::Findings;
use crate::{Error, Result};

/// Number of partitions from one sample to the next, in a summary that Ilion builds.
const INTERVAL_DEFAULT: u64 = 128;
/// The sampling level of a summary with all its samples.
pub(crate) const FULL_LEVEL: u8 = 128;
const POSITION_LEN: usize = 8;
/// Size of the header, before the offsets.
const HEADER_LEN: usize = 24;

/// Samples of the partition index, ascending, and the first and last key.
pub(crate) struct Summary {
    /// Keys of the samples, one after the other.
    keys: Bytes,
    /// End of each key in `keys`.
    key_ends: Vec<u32>,
    tokens: Vec<Token>,
    /// Offset of each sample's entry in Index.db.
    positions: Vec<u64>,
    pub(crate) first: DecoratedKey,
    pub(crate) last: DecoratedKey,
    /// Estimated number of partitions, from the samples.
    pub(crate) estimated_keys: u64,
    /// Of every 128 samples that were taken of the index, the number that this summary has (Cassandra: sampling level).
    pub(crate) level: u8,
}

/// Size and use of an index summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SummaryShare {
    /// Memory of the summary in bytes.
    pub bytes: u64,
    /// Memory in bytes of the summary with all its samples.
    pub full_bytes: u64,
    /// Of every 128 samples, the number that the summary has.
    pub level: u8,
    /// Number of lookups since the last call.
    pub lookups: u64,
}

/// Samples under construction.
#[derive(Default)]
struct Samples {
    keys: Vec<u8>,
    key_ends: Vec<u32>,
    tokens: Vec<Token>,
    positions: Vec<u64>,
}

impl Samples {
    /// Adds a sample. Returns false if it is not above the last one.
    fn push(&mut self, key: &[u8], token: Token, position: u64) -> bool {
        let ascends = match (self.tokens.last(), self.positions.last()) {
            (Some(last_token), Some(last_position)) => {
                (last_token, self.key(self.tokens.len() - 1)) < (&token, key) && *last_position < position
            }
            _ => position == 0,
        };
        self.keys.extend_from_slice(key);
        let Ok(end) = u32::try_from(self.keys.len()) else {
            return false;
        };
        self.key_ends.push(end);
        self.tokens.push(token);
        self.positions.push(position);
        ascends
    }

    fn key(&self, index: usize) -> &[u8] {
        key_at(&self.keys, &self.key_ends, index)
    }

    fn finish(self, first: DecoratedKey, last: DecoratedKey, estimated_keys: u64, level: u8) -> Summary {
        Summary {
            keys: self.keys.into(),
            key_ends: self.key_ends,
            tokens: self.tokens,
            positions: self.positions,
            first,
            last,
            estimated_keys,
            level,
        }
    }
}

fn key_at<'k>(keys: &'k [u8], ends: &[u32], index: usize) -> &'k [u8] {
    let start = index.checked_sub(1).map_or(0, |before| ends[before]);
    &keys[start as usize..ends[index] as usize]
}

impl Summary {
    /// Decodes the component; `None` if it does not fit an index of `index_length` bytes.
    pub(crate) fn decode(bytes: &[u8], partitioner: Partitioner, index_length: u64) -> Option<Self> {
        let raw = RawSummary::read(bytes).ok()?;
        let first = DecoratedKey::new(partitioner, Bytes::copy_from_slice(raw.first_key));
        let last = DecoratedKey::new(partitioner, Bytes::copy_from_slice(raw.last_key));
        let mut samples = Samples::default();
        for index in 0..raw.count {
            let (key, position) = raw.entry(index)?;
            let token = partitioner.token(key);
            if position >= index_length || !samples.push(key, token, position) {
                return None;
            }
        }
        let newest = samples.tokens.len().checked_sub(1)?;
        let fits = samples.key(0) == first.key
            && (&samples.tokens[newest], samples.key(newest)) <= (&last.token, &last.key);
        let estimated_keys = u64::from(raw.full_size) * u64::from(raw.min_index_interval);
        let level = u8::try_from(raw.sampling_level).unwrap_or(FULL_LEVEL);
        fits.then(|| samples.finish(first, last, estimated_keys, level.clamp(1, FULL_LEVEL)))
    }

    /// Builds a summary from Index.db, which is read once; `None` if the index is empty.
    ///
    /// # Errors
    /// The index is damaged or cannot be read.
    pub(crate) fn build(mut index: IndexWalker, partitioner: Partitioner) -> Result<Option<Self>> {
        let mut samples = Samples::default();
        let mut count = 0;
        let mut ends: Option<(DecoratedKey, DecoratedKey)> = None;
        let mut position = index.position();
        while let Some((key, _)) = index.next_entry()? {
            let key = DecoratedKey::new(partitioner, key);
            if ends.as_ref().is_some_and(|(_, last)| *last >= key) {
                return Err(index.corrupt("ascending keys before it"));
            }
            if count % INTERVAL_DEFAULT == 0 && !samples.push(&key.key, key.token.clone(), position) {
                return Err(index.corrupt("fewer than 4 GiB of sampled keys"));
            }
            ends = Some(match ends {
                None => (key.clone(), key),
                Some((first, _)) => (first, key),
            });
            count += 1;
            position = index.position();
        }
        Ok(ends.map(|(first, last)| {
            // A copy, since slices would keep the index's chunks in memory.
            let own = |key: DecoratedKey| DecoratedKey {
                key: Bytes::copy_from_slice(&key.key),
                ..key
            };
            samples.finish(own(first), own(last), count, FULL_LEVEL)
        }))
    }

    /// Keeps about `level` of every 128 samples, evenly distributed. Requires: the summary has at least as many.
    pub(crate) fn thinned(&self, level: u8) -> Self {
        let (level, own) = (usize::from(level.max(1)), usize::from(self.level.max(1)));
        let mut samples = Samples::default();
        for index in 0..self.tokens.len() {
            let is_next = index == 0 || index * level / own != (index - 1) * level / own;
            if is_next {
                let key = key_at(&self.keys, &self.key_ends, index);
                // Cannot fail: samples of a summary ascend.
                let _ = samples.push(key, self.tokens[index].clone(), self.positions[index]);
            }
        }
        let level = u8::try_from(level.min(own)).unwrap_or(FULL_LEVEL);
        samples.finish(self.first.clone(), self.last.clone(), self.estimated_keys, level)
    }

    /// The range of Index.db that has the entry of `key`, if the entry exists: from the last sample that is not above the key to
    /// the next sample. `None` if the key is below all samples.
    #[inline]
    pub(crate) fn index_range(&self, key: &DecoratedKey, index_length: u64) -> Option<(u64, u64)> {
        let above = self.first_above(&key.token, &key.key);
        let start = *self.positions.get(above.checked_sub(1)?)?;
        Some((start, self.positions.get(above).copied().unwrap_or(index_length)))
    }

    /// An offset in Index.db from which an iteration finds the first entry above `bound`.
    pub(crate) fn position_before(&self, bound: &KeyBound) -> u64 {
        let above = match bound {
            KeyBound::Start => 0,
            KeyBound::End => self.tokens.len(),
            KeyBound::BeforeToken(token) => self.tokens.partition_point(|known| known < token),
            KeyBound::AfterToken(token) => self.tokens.partition_point(|known| known <= token),
            KeyBound::Before(key) | KeyBound::After(key) => self.first_above(&key.token, &key.key),
        };
        self.positions.get(above.saturating_sub(1)).copied().unwrap_or(0)
    }

    fn first_above(&self, token: &Token, key: &[u8]) -> usize {
        let below = self.tokens.partition_point(|known| known < token);
        let mut above = below;
        while self.tokens.get(above) == Some(token) && key_at(&self.keys, &self.key_ends, above) <= key {
            above += 1;
        }
        above
    }

    /// Memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.keys.len() + self.tokens.len() * (size_of::<Token>() + size_of::<u64>() + size_of::<u32>())
    }
}

/// Compares a Summary.db with the entries of its Index.db.
pub(crate) struct SummaryCheck {
    path: PathBuf,
    /// Keys and positions of the samples.
    samples: Vec<(Vec<u8>, u64)>,
    /// Number of samples that were found.
    seen: usize,
    min_index_interval: u32,
    full_size: u32,
    first_key: Vec<u8>,
    last_key: Vec<u8>,
    ends: Option<(Bytes, Bytes)>,
}

impl SummaryCheck {
    /// Decodes the whole file.
    pub(crate) fn new(bytes: &[u8], path: &Path) -> Result<Self> {
        let raw = RawSummary::read(bytes).map_err(|error| Error::in_file(path, 0, &error))?;
        let end = HEADER_LEN + raw.table.len() + 8 + raw.first_key.len() + raw.last_key.len();
        if end != bytes.len() {
            return Err(Error::corrupt(path, end as u64, "the end of the file"));
        }
        if raw.count > 0 && raw.offset(0) != Some(raw.count * 4) {
            return Err(Error::corrupt(
                path,
                HEADER_LEN as u64,
                "entries right after their offsets",
            ));
        }
        let mut samples = Vec::with_capacity(raw.count);
        for index in 0..raw.count {
            let Some((key, position)) = raw.entry(index) else {
                let at = HEADER_LEN + index * 4;
                return Err(Error::corrupt(path, at as u64, "the offset of an entry"));
            };
            samples.push((key.to_vec(), position));
        }
        Ok(Self {
            path: path.to_path_buf(),
            samples,
            seen: 0,
            min_index_interval: raw.min_index_interval,
            full_size: raw.full_size,
            first_key: raw.first_key.to_vec(),
            last_key: raw.last_key.to_vec(),
            ends: None,
        })
    }

    /// Must be called for each entry of Index.db: `key` has its entry at `position`.
    pub(crate) fn entry(&mut self, position: u64, key: &[u8], findings: &mut Findings) {
        let Some((sample, sampled)) = self.samples.get(self.seen) else {
            return;
        };
        if *sampled > position {
            return;
        }
        if *sampled != position || sample != key {
            let expected = format!("an entry of Index.db as sample {}", self.seen);
            findings.push(Error::corrupt(&self.path, HEADER_LEN as u64, expected));
        }
        self.seen += 1;
    }

    /// Must be called for each partition of Data.db, in order.
    pub(crate) fn partition(&mut self, key: &Bytes) {
        // A copy, since slices would keep chunks in memory.
        let key = Bytes::copy_from_slice(key);
        match &mut self.ends {
            Some((_, last)) => *last = key,
            None => self.ends = Some((key.clone(), key)),
        }
    }

    /// Must be called at the end, with the number of partitions.
    pub(crate) fn finish(self, partitions: u64, findings: &mut Findings) {
        let mut expect = |holds: bool, expected: &str| {
            if !holds {
                findings.push(Error::corrupt(&self.path, 0, expected));
            }
        };
        expect(
            self.seen == self.samples.len(),
            "samples of entries that Index.db has",
        );
        let interval = u64::from(self.min_index_interval.max(1));
        expect(
            self.min_index_interval > 0 && partitions.div_ceil(interval) == u64::from(self.full_size),
            "a full size that is the number of partitions by the interval",
        );
        if let Some((first, last)) = self.ends {
            expect(
                self.first_key == first && self.last_key == last,
                "the keys of the first and the last partition of Data.db",
            );
        }
    }
}

/// The parts of the file, not yet compared with each other.
struct RawSummary<'b> {
    min_index_interval: u32,
    sampling_level: u32,
    full_size: u32,
    count: usize,
    /// The bytes of offsets and entries.
    table: &'b [u8],
    first_key: &'b [u8],
    last_key: &'b [u8],
}

impl<'b> RawSummary<'b> {
    fn read(bytes: &'b [u8]) -> std::result::Result<Self, Malformed> {
        let mut input = Reader::new(bytes);
        let min_index_interval = input.u32()?;
        let count = input.u32()? as usize;
        let size = input.u64()?;
        let sampling_level = input.u32()?;
        let full_size = input.u32()?;
        let table = input.take(usize::try_from(size).unwrap_or(usize::MAX))?;
        if table.len() / 4 < count {
            return Err(input.error("an offset for every entry"));
        }
        Ok(Self {
            min_index_interval,
            sampling_level,
            full_size,
            count,
            table,
            first_key: input.bytes32()?,
            last_key: input.bytes32()?,
        })
    }

    fn offset(&self, index: usize) -> Option<usize> {
        if index == self.count {
            return Some(self.table.len());
        }
        let bytes = self.table.get(index * 4..)?.first_chunk::<4>()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }

    fn entry(&self, index: usize) -> Option<(&'b [u8], u64)> {
        let entry = self.table.get(self.offset(index)?..self.offset(index + 1)?)?;
        let (key, position) = entry.split_at_checked(entry.len().checked_sub(POSITION_LEN)?)?;
        let position = i64::from_le_bytes(position.try_into().ok()?);
        Some((key, u64::try_from(position).ok()?))
    }
}

impl std::fmt::Debug for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Summary")
            .field("samples", &self.tokens.len())
            .field("first", &self.first)
            .field("last", &self.last)
            .finish()
    }
}
