//! Deleted.db, the deleted runs: where many rows that are only deletions follow each other in Data.db.
//!
//! A read that returns living rows only, and knows that no other source has rows in between, jumps over a run. Tables that are used as
//! queues have most of their rows in such runs. `docs/format/deleted.md` describes the file:
//!
//! ```text
//! file := magic  version:u8  data_length:u64  stored_length:u64  fingerprint:u32  count:uvint  run *  crc:u32
//! run  := gap:uvint  length:uvint  first_length:uvint  first  last_length:uvint  last      integers are little-endian
//! ```
//!
//! Invariant: a read of living rows returns the same with the file and without it.

mod writer;

use std::ops::Range;

use ilion_codec::{Error as Malformed, Reader, crc32};
use ilion_env::Env;
use ilion_rows::Clustering;

use crate::cells::Whole;
use crate::row::format::values::{FixedLen, decode_values};
use crate::{ClassName, Component, Descriptor, Error, Result, SerializationHeader};

pub(crate) use writer::DeletedRunsWriter;

const MAGIC: &[u8; 8] = b"ILDELETE";
const VERSION: u8 = 1;
const CRC_LEN: usize = 4;
/// Shorter runs are not recorded: a read passes their rows one by one.
const RUN_ROWS_MIN: u64 = 64;
/// Most runs of a file. If there are more, the shorter ones are left out.
const RUNS_MAX: usize = 16 << 10;
/// Runs whose first or last row has a longer clustering are left out.
const CLUSTERING_LEN_MAX: usize = 1 << 10;
/// More than any file has: see the limits above.
const FILE_LEN_MAX: u64 = 64 << 20;

/// Rows of one partition that follow each other, each of them only a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Positions of the first row and of the end of the last row in uncompressed Data.db.
    pub(crate) place: Range<u64>,
    /// The clusterings of the first and the last row.
    pub(crate) first: Clustering,
    pub(crate) last: Clustering,
}

/// A run, with the places of its clusterings in the file.
#[derive(Clone, Debug)]
struct Stored {
    place: Range<u64>,
    first: Range<u32>,
    last: Range<u32>,
}

/// The deleted runs of an SSTable, by their position.
#[derive(Debug)]
pub(crate) struct DeletedRuns {
    file: Vec<u8>,
    runs: Vec<Stored>,
    lens: Vec<FixedLen>,
}

impl DeletedRuns {
    /// Reads Deleted.db; `None` if it does not exist.
    ///
    /// # Errors
    /// It is damaged or belongs to another SSTable, or cannot be read.
    pub(crate) fn open(
        env: &dyn Env,
        descriptor: &Descriptor,
        header: &SerializationHeader,
        whole: Whole,
    ) -> Result<Option<Self>> {
        let path = descriptor.path(&Component::Deleted);
        let bytes = match env.read_all(&path, FILE_LEN_MAX) {
            Err(error) if error.is_not_found() => return Ok(None),
            bytes => bytes?,
        };
        let types = header.clustering_types.iter();
        let lens: Vec<FixedLen> = types.map(ClassName::fixed_len).collect();
        let expected = match decode(&bytes, whole, &lens) {
            Ok(Some(runs)) => {
                let file = bytes;
                return Ok(Some(Self { file, runs, lens }));
            }
            Ok(None) => "the deleted runs of this SSTable, with their checksum".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Error::corrupt(&path, 0, expected))
    }

    /// The run that has a row at this position.
    pub(crate) fn at(&self, position: u64) -> Option<Run> {
        let behind = self.runs.partition_point(|run| run.place.start <= position);
        let run = self.get(behind.checked_sub(1)?)?;
        run.place.contains(&position).then_some(run)
    }

    /// The run with this number.
    pub(crate) fn get(&self, number: usize) -> Option<Run> {
        let Stored { place, first, last } = self.runs.get(number)?;
        let clustering = |range: &Range<u32>| {
            let bytes = self.file.get(range.start as usize..range.end as usize)?;
            let values = decode_values(&self.lens, &mut Reader::new(bytes)).ok()?;
            Some(Clustering::new(values))
        };
        Some(Run {
            place: place.clone(),
            first: clustering(first)?,
            last: clustering(last)?,
        })
    }

    /// Memory of the runs in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.file.capacity() + self.runs.capacity() * size_of::<Stored>()
    }
}

/// The runs in a file of this SSTable; `None` if the file belongs to another one, or its checksum is wrong.
fn decode(
    bytes: &[u8],
    whole: Whole,
    lens: &[FixedLen],
) -> std::result::Result<Option<Vec<Stored>>, Malformed> {
    let Some((body, crc)) = bytes.split_last_chunk::<CRC_LEN>() else {
        return Ok(None);
    };
    if crc32(body).to_le_bytes() != *crc {
        return Ok(None);
    }
    let head = head_of(whole);
    if !body.starts_with(&head) {
        return Ok(None);
    }
    let mut input = Reader::new(body);
    input.skip(head.len())?;
    let count = input.uvint()?;
    let mut runs = Vec::new();
    let mut end = 0_u64;
    for _ in 0..count {
        let (gap, length) = (input.uvint()?, input.uvint()?);
        let start = end.checked_add(gap);
        let place = start.and_then(|start| Some(start..start.checked_add(length)?));
        let Some(place) = place.filter(|place| !place.is_empty() && place.end <= whole.data_length) else {
            return Err(input.error("a run inside of Data.db before this"));
        };
        end = place.end;
        runs.push(Stored {
            place,
            first: clustering(lens, &mut input)?,
            last: clustering(lens, &mut input)?,
        });
    }
    Ok(input.is_empty().then_some(runs))
}

/// The place of a clustering, which is passed and checked.
fn clustering(lens: &[FixedLen], input: &mut Reader<'_>) -> std::result::Result<Range<u32>, Malformed> {
    let len = input.uvint_len()?;
    let start = input.offset();
    decode_values(lens, &mut Reader::new(input.take(len)?))?;
    let place = |offset: usize| u32::try_from(offset).map_err(|_| input.error("less than 4 GiB before this"));
    Ok(place(start)?..place(start + len)?)
}

/// The file up to the number of runs.
fn head_of(whole: Whole) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.push(VERSION);
    out.extend_from_slice(&whole.data_length.to_le_bytes());
    out.extend_from_slice(&whole.stored_length.to_le_bytes());
    out.extend_from_slice(&whole.fingerprint.to_le_bytes());
    out
}
