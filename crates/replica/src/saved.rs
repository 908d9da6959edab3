//! [`Saved`]: what depends on the records beside the tables, in the file `ilion.tablets` of the data directory.
//!
//! It is taken at one moment, and written when all tables have what was applied before that moment on disk. So after a crash, a replica
//! that goes on from there reads every record that some table lacks, and the engine passes over those that a table has.
//!
//! ```text
//! file := version: u8, cluster: uuid, schema epoch: u64, adopting: u8 (1: the next schema may be adopted in part), count: vint, tablets,
//!         crc: u32 (of all before it)                                                           (big-endian)
//! tablet := number: u32, end: u64, time: i64 (micros), schema epoch: u64, windows, unfinished batches (since version 2)
//!                                                                                              (ascending by number)
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ilion_cluster::Windows;
use ilion_codec::{Error as CodecError, Reader, Writer, crc32};
use ilion_engine::TABLETS_FILE;
use ilion_env::Env;
use uuid::Uuid;

use crate::logged::{BatchId, UnfinishedBatch, decode_unfinished, encode_unfinished};

const VERSION: u8 = 2;
const CRC_BYTES: usize = 4;
/// Far above what 4,096 tablets and hundreds of senders take.
const FILE_BYTES_MAX: u64 = 1 << 30;
/// A number, an end, a time, an epoch, and no windows.
const TABLET_BYTES_MIN: usize = 4 + 8 + 8 + 8 + 1;

/// The saved state of a tablet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SavedTablet {
    /// The offset above the last record.
    pub end: u64,
    /// The time of the log: never less than that of an earlier record.
    pub time_micros: i64,
    /// The newest schema that a record was made with.
    pub schema_epoch: u64,
    /// Which records were applied.
    pub windows: Windows,
    /// Logged batches of this home whose other parts may not be in their logs yet.
    pub unfinished: BTreeMap<BatchId, UnfinishedBatch>,
}

/// The state of a replica at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// The cluster that the data belongs to.
    pub cluster: Uuid,
    /// The schema that the engine has.
    pub schema_epoch: u64,
    /// True if the change to the next schema has begun: the engine may have that schema already.
    pub is_adopting: bool,
    pub tablets: BTreeMap<u32, SavedTablet>,
}

/// Why the file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The file system refused.
    #[error(transparent)]
    Env(#[from] ilion_env::Error),
    /// The bytes are not those of such a file.
    #[error(
        "{} is damaged ({cause}): this node cannot know what it has applied; remove its data directory, and it copies its \
         data from other replicas",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        cause: CodecError,
    },
    /// The data is that of another cluster.
    #[error(
        "the data directory belongs to cluster {found}, and the log to {expected}: check which log this node is given, and whether its topics          were made anew; a node that is to join another cluster needs an empty data directory"
    )]
    OtherCluster {
        /// The cluster of the log.
        expected: Uuid,
        /// The cluster of the data.
        found: Uuid,
    },
}

/// The state that was saved for this cluster. Without a file, all logs are read from their beginning.
pub(crate) fn read(env: &dyn Env, data_dir: &Path, cluster: Uuid) -> Result<Saved, SaveError> {
    let path = data_dir.join(TABLETS_FILE);
    if !env.exists(&path) {
        return Ok(Saved {
            cluster,
            ..Saved::default()
        });
    }
    let bytes = env.read_all(&path, FILE_BYTES_MAX)?;
    let saved = decode(&bytes).map_err(|cause| SaveError::Damaged { path, cause })?;
    match saved.cluster == cluster {
        true => Ok(saved),
        false => Err(SaveError::OtherCluster {
            expected: cluster,
            found: saved.cluster,
        }),
    }
}

pub(crate) fn write(env: &dyn Env, data_dir: &Path, saved: &Saved) -> Result<(), SaveError> {
    Ok(env.write_atomically(&data_dir.join(TABLETS_FILE), &encode(saved))?)
}

pub(crate) fn encode(saved: &Saved) -> Vec<u8> {
    let mut out = Writer::new();
    out.u8(VERSION);
    out.bytes(saved.cluster.as_bytes());
    out.u64(saved.schema_epoch);
    out.bool(saved.is_adopting);
    out.uvint(saved.tablets.len() as u64);
    for (number, tablet) in &saved.tablets {
        out.u32(*number);
        out.u64(tablet.end);
        out.i64(tablet.time_micros);
        out.u64(tablet.schema_epoch);
        tablet.windows.encode(&mut out);
        encode_unfinished(&tablet.unfinished, &mut out);
    }
    let crc = crc32(out.as_slice());
    out.u32(crc);
    out.into_vec()
}

pub(crate) fn decode(bytes: &[u8]) -> Result<Saved, CodecError> {
    let whole = Reader::new(bytes);
    let (content, crc) = bytes
        .split_last_chunk::<CRC_BYTES>()
        .ok_or_else(|| whole.error("a file with a checksum"))?;
    if crc32(content) != u32::from_be_bytes(*crc) {
        return Err(whole.error("a file that its checksum fits"));
    }
    let input = &mut Reader::new(content);
    let version = input.u8()?;
    if !(1..=VERSION).contains(&version) {
        return Err(whole.error("version 1 or 2 (a newer Ilion wrote this)"));
    }
    let cluster = Uuid::from_bytes(input.uuid_bytes()?);
    let (schema_epoch, is_adopting) = (input.u64()?, input.bool()?);
    let count = input.uvint_len()?;
    if count > input.remaining() / TABLET_BYTES_MIN {
        return Err(input.error("tablets that the file has room for"));
    }
    let mut tablets = BTreeMap::new();
    for _ in 0..count {
        let start = input.clone();
        let number = input.u32()?;
        let tablet = SavedTablet {
            end: input.u64()?,
            time_micros: input.i64()?,
            schema_epoch: input.u64()?,
            windows: Windows::decode(input)?,
            unfinished: match version {
                1 => BTreeMap::new(),
                _ => decode_unfinished(input)?,
            },
        };
        if tablets.last_key_value().is_some_and(|(last, _)| *last >= number) {
            return Err(start.error("ascending tablets"));
        }
        tablets.insert(number, tablet);
    }
    match input.is_empty() {
        true => Ok(Saved {
            cluster,
            schema_epoch,
            is_adopting,
            tablets,
        }),
        false => Err(input.error("the end of the file")),
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_commitlog::Origin;

    use super::*;
    use crate::LoggedBatch;

    fn saved() -> Saved {
        let mut windows = Windows::default();
        for seq in 1..5 {
            windows.admit(Origin {
                node: 1,
                incarnation: 2,
                seq,
            });
        }
        let parts = BTreeMap::from([(4, Bytes::from_static(b"mutations"))]);
        let batch = UnfinishedBatch {
            schema_epoch: 3,
            others: LoggedBatch { parts },
        };
        let tablet = SavedTablet {
            end: 1 << 40,
            time_micros: -1,
            schema_epoch: 3,
            windows,
            unfinished: BTreeMap::from([((1, 2, 3), batch)]),
        };
        Saved {
            cluster: Uuid::from_u128(7),
            schema_epoch: 9,
            is_adopting: true,
            tablets: BTreeMap::from([(0, SavedTablet::default()), (7, tablet)]),
        }
    }

    #[test]
    fn what_is_saved_is_read_back() {
        for saved in [Saved::default(), saved()] {
            assert_eq!(decode(&encode(&saved)), Ok(saved));
        }
    }

    #[test]
    fn cut_and_changed_files_are_refused() {
        let bytes = encode(&saved());
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err());
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 4;
            assert!(decode(&changed).is_err(), "{at}");
        }
    }
}
