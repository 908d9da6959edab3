//! [`ReadCommand`]: what a coordinator asks of a replica.
//!
//! ```text
//! command  := version: u8, table: [u8; 16], schema_epoch: u64, ring_version: u64, time_left_micros: u64,
//!             list<tablet: uvint, offset: u64>, rows: uvint, bytes: uvint, (in version 2: rows_per_partition: uvint), read
//! read     := 0, key, filter, option<bound>                        a partition
//!           | 1, key range, filter, option<resume>                        partitions
//!           | 2, index: name, predicate, key range, option<from>          candidates
//!           | 3, index: name, list<f32>, list<key range>, skip: uvint     nearest vectors
//!           | 4, index: name, predicate, list<key range>                  an estimate
//! resume   := 0, key (behind it) | 1, key, bound (in it)
//! from     := is_behind: u8, place
//! ```
//! When bytes change, add a version. A replica refuses versions that it does not know, so a coordinator asks another one.

use bytes::Bytes;
use ilion_codec::{Error, Writer};
use ilion_engine::TabletPosition;
use ilion_index::{Place, Predicate};
use ilion_rows::clustering_codec::{decode_bound, encode_bound};
use ilion_rows::{Bound, ClusteringComparator, DecoratedKey, KeyRange};
use ilion_schema::TableId;
use uuid::Uuid;

use crate::fields::{
    Input, decode_key, decode_key_range, decode_place, decode_predicate, encode_key, encode_key_range,
    encode_list, encode_option, encode_place, encode_predicate,
};
use crate::filter::NamedFilter;

pub(crate) const VERSION: u8 = 1;
const VERSION_WITH_ROWS: u8 = 2;

/// A read, and what the coordinator relies on.
#[derive(Clone, Debug, PartialEq)]
pub struct ReadCommand {
    /// The table.
    pub table: TableId,
    /// The schema changes that the coordinator has applied. A replica with fewer refuses.
    pub schema_epoch: u64,
    /// The ring that the coordinator knows. A replica that knows only an older one refuses.
    pub ring_version: u64,
    /// The coordinator stops waiting after this time. It is a duration, since the clocks of nodes differ.
    pub time_left_micros: u64,
    /// The replica answers once it has applied the records at these positions.
    pub applied: Vec<TabletPosition>,
    /// How much the answer may have.
    pub page: PageSize,
    /// The read needs no more rows of a partition than this, counting only rows that never expire. For partitions only.
    pub rows_per_partition: Option<u32>,
    /// What is read.
    pub read: Read,
}

/// The bounds of an answer. An answer has one row or place at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageSize {
    /// Maximum number of rows, markers and partitions, or of places.
    pub rows: u32,
    /// The answer ends with the row that reaches this many bytes of memory.
    pub bytes: u32,
}

/// What is read.
#[derive(Clone, Debug, PartialEq)]
pub enum Read {
    /// One partition.
    Partition {
        /// Its key.
        key: DecoratedKey,
        /// The rows and columns that are selected.
        filter: NamedFilter,
        /// Where to go on, in the direction of the read.
        resume: Option<Bound>,
    },
    /// A range of partitions.
    Range {
        /// The range.
        range: KeyRange,
        /// The rows and columns that are selected of each partition.
        filter: NamedFilter,
        /// Where to go on.
        resume: Option<Resume>,
    },
    /// Candidates of an index.
    Search {
        /// The index.
        index: String,
        /// What the index is searched for.
        predicate: Predicate,
        /// The partitions whose candidates are wanted.
        range: KeyRange,
        /// Where to start.
        from: Option<SearchFrom>,
    },
    /// Places by the nearness of their vectors.
    Nearest {
        /// The index.
        index: String,
        /// The vector.
        vector: Vec<f32>,
        /// The partitions whose places are wanted.
        ranges: Vec<KeyRange>,
        /// Number of the nearest places that are left out.
        skip: u32,
    },
    /// About how many rows a search may give.
    Estimate {
        /// The index.
        index: String,
        /// What the index is searched for.
        predicate: Predicate,
        /// The partitions that count.
        ranges: Vec<KeyRange>,
    },
}

/// Where the next page of a range begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Behind this partition.
    After(DecoratedKey),
    /// In this partition behind this position, in the direction of the read.
    Within(DecoratedKey, Bound),
}

impl Resume {
    /// The partition in which the last page ended.
    pub fn key(&self) -> &DecoratedKey {
        match self {
            Self::After(key) | Self::Within(key, _) => key,
        }
    }

    pub(crate) fn encode(&self, out: &mut Writer) {
        match self {
            Self::After(key) => {
                out.u8(0);
                encode_key(key, out);
            }
            Self::Within(key, bound) => {
                out.u8(1);
                encode_key(key, out);
                encode_bound(bound, out);
            }
        }
    }

    pub(crate) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let is_within = input.reader.bool()?;
        let key = decode_key(input)?;
        Ok(match is_within {
            false => Self::After(key),
            true => Self::Within(key, decode_any_bound(input)?),
        })
    }
}

/// Where a search starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchFrom {
    /// At this place.
    At(Place),
    /// Behind this place.
    Behind(Place),
}

impl SearchFrom {
    pub(crate) fn place(&self) -> &Place {
        match self {
            Self::At(place) | Self::Behind(place) => place,
        }
    }

    /// True if the search starts behind this place.
    pub(crate) fn passes(&self, place: &Place, comparator: &ClusteringComparator) -> bool {
        match self {
            Self::At(from) => place.compare(from, comparator).is_lt(),
            Self::Behind(from) => place.compare(from, comparator).is_le(),
        }
    }
}

fn decode_any_bound(input: &mut Input<'_>) -> Result<Bound, Error> {
    decode_bound(input.whole, usize::MAX, &mut input.reader)
}

impl ReadCommand {
    /// The bytes of the command.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(match self.rows_per_partition {
            None => VERSION,
            Some(_) => VERSION_WITH_ROWS,
        });
        out.bytes(self.table.0.as_bytes());
        out.u64(self.schema_epoch);
        out.u64(self.ring_version);
        out.u64(self.time_left_micros);
        encode_list(&self.applied, &mut out, |position, out| {
            out.uvint(u64::from(position.tablet));
            out.u64(position.offset);
        });
        out.uvint(u64::from(self.page.rows));
        out.uvint(u64::from(self.page.bytes));
        if let Some(rows) = self.rows_per_partition {
            out.uvint(u64::from(rows));
        }
        self.read.encode(&mut out);
        out.into_vec()
    }

    /// Reads the bytes of a command.
    ///
    /// # Errors
    /// The bytes are not a command of this version.
    pub fn decode(bytes: &Bytes) -> Result<Self, Error> {
        let mut input = Input::new(bytes);
        let version = input.reader.u8()?;
        if ![VERSION, VERSION_WITH_ROWS].contains(&version) {
            return Err(input.reader.error("a command of version 1 or 2 before this"));
        }
        let table = TableId(Uuid::from_bytes(input.reader.uuid_bytes()?));
        let schema_epoch = input.reader.u64()?;
        let ring_version = input.reader.u64()?;
        let time_left_micros = input.reader.u64()?;
        let applied = input.list(|input| {
            let tablet = input.u32()?;
            let offset = input.reader.u64()?;
            Ok(TabletPosition { tablet, offset })
        })?;
        let rows = input.u32()?;
        let bytes = input.u32()?;
        let page = PageSize { rows, bytes };
        let rows_per_partition = (version == VERSION_WITH_ROWS).then(|| input.u32()).transpose()?;
        let read = Read::decode(&mut input)?;
        input.end()?;
        Ok(Self {
            table,
            schema_epoch,
            ring_version,
            time_left_micros,
            applied,
            page,
            rows_per_partition,
            read,
        })
    }
}

impl Read {
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Partition { key, filter, resume } => {
                out.u8(0);
                encode_key(key, out);
                filter.encode(out);
                encode_option(resume.as_ref(), out, encode_bound);
            }
            Self::Range {
                range,
                filter,
                resume,
            } => {
                out.u8(1);
                encode_key_range(range, out);
                filter.encode(out);
                encode_option(resume.as_ref(), out, Resume::encode);
            }
            Self::Search {
                index,
                predicate,
                range,
                from,
            } => {
                out.u8(2);
                out.bytes_vint(index.as_bytes());
                encode_predicate(predicate, out);
                encode_key_range(range, out);
                encode_option(from.as_ref(), out, |from, out| match from {
                    SearchFrom::At(place) => {
                        out.bool(false);
                        encode_place(place, out);
                    }
                    SearchFrom::Behind(place) => {
                        out.bool(true);
                        encode_place(place, out);
                    }
                });
            }
            Self::Nearest {
                index,
                vector,
                ranges,
                skip,
            } => {
                out.u8(3);
                out.bytes_vint(index.as_bytes());
                encode_list(vector, out, |part, out| out.u32(part.to_bits()));
                encode_list(ranges, out, encode_key_range);
                out.uvint(u64::from(*skip));
            }
            Self::Estimate {
                index,
                predicate,
                ranges,
            } => {
                out.u8(4);
                out.bytes_vint(index.as_bytes());
                encode_predicate(predicate, out);
                encode_list(ranges, out, encode_key_range);
            }
        }
    }

    fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        Ok(match input.reader.u8()? {
            0 => Self::Partition {
                key: decode_key(input)?,
                filter: NamedFilter::decode(input)?,
                resume: input.option(decode_any_bound)?,
            },
            1 => Self::Range {
                range: decode_key_range(input)?,
                filter: NamedFilter::decode(input)?,
                resume: input.option(Resume::decode)?,
            },
            2 => Self::Search {
                index: input.name()?,
                predicate: decode_predicate(input)?,
                range: decode_key_range(input)?,
                from: input.option(|input| {
                    let is_behind = input.reader.bool()?;
                    let place = decode_place(input)?;
                    Ok(match is_behind {
                        true => SearchFrom::Behind(place),
                        false => SearchFrom::At(place),
                    })
                })?,
            },
            3 => Self::Nearest {
                index: input.name()?,
                vector: input.list(|input| Ok(f32::from_bits(input.reader.u32()?)))?,
                ranges: input.list(decode_key_range)?,
                skip: input.u32()?,
            },
            4 => Self::Estimate {
                index: input.name()?,
                predicate: decode_predicate(input)?,
                ranges: input.list(decode_key_range)?,
            },
            _ => return Err(input.reader.error("the kind of a read before this")),
        })
    }
}
