//! Cuts a directory of segments (a copy or an archive, with no log open on it) at a moment, for a restore to a point in time.
//!
//! A prefix of the log stays: everything before the first record that was logged after the moment. The records behind that one
//! are removed even if they have an earlier time, since conditional writes and schema changes are only right if all records
//! before them are applied.

use std::path::Path;

use ilion_env::Env;

use crate::frame::HEADER_BYTES;
use crate::{Damage, Error, Position, ReplayFailure, Result, SegmentId, read_segments, segment};

/// Suffix of the files that name the segment with which an archive begins.
const BEGINNING: &str = ".begin";

/// The outcome of a cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Records that stay.
    pub records: u64,
    /// The newest time of the records that stay; `None` if no record stays.
    pub newest_micros: Option<i64>,
    /// The position of the first record that was removed; `None` if all stay.
    pub at: Option<Position>,
}

/// Cuts the log in a directory before the first record from `from` on that was logged after `to_micros`. The cut is durable when this
/// returns.
///
/// # Errors
/// [`Error::Corrupt`] if the log is damaged; [`Error::Refused`] if a segment or its end is missing. In both cases no file has changed.
pub fn cut_after(env: &dyn Env, dir: &Path, from: Position, to_micros: i64) -> Result<Cut> {
    let mut cut = Cut::default();
    let report = read_segments(env, dir, Damage::Refuse, &mut |position, envelope| {
        if cut.at.is_some() {
            return Ok(());
        }
        if position >= from && envelope.time_micros > to_micros {
            cut.at = Some(position);
            return Ok(());
        }
        cut.records += 1;
        cut.newest_micros = cut.newest_micros.max(Some(envelope.time_micros));
        Ok::<(), ReplayFailure>(())
    })?;
    if !report.missing.is_empty() || !report.holes.is_empty() {
        return Err(Error::refused(format!(
            "the log in {} has gaps: {:?} {:?}",
            dir.display(),
            report.missing,
            report.holes
        )));
    }
    let Some(at) = cut.at else { return Ok(cut) };
    // The newest first: a crash in between leaves a log that is cut later, never one with a gap.
    for id in segment::list(env, dir)?.into_iter().rev() {
        if id > at.segment {
            env.remove_file(&segment::path_of(dir, id))?;
            env.sync_dir(dir)?;
        }
    }
    debug_assert!(at.offset as usize >= HEADER_BYTES);
    segment::seal(env, dir, at.segment, at.offset)?;
    Ok(cut)
}

/// The fields of a segment's header that other crates need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// The segment's number.
    pub id: SegmentId,
    /// The log that it belongs to.
    pub log_id: uuid::Uuid,
    /// When the segment was created; all of its records were logged later.
    pub created_micros: i64,
}

impl SegmentFacts {
    /// Reads the header of a segment whose file is named as in a log's directory.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the header is damaged.
    pub fn read(env: &dyn Env, path: &Path) -> Result<Self> {
        let corrupt = |expected| Error::Corrupt {
            file: path.to_path_buf(),
            offset: 0,
            expected,
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let id = name.and_then(SegmentId::of_file_name);
        let id = id.ok_or_else(|| corrupt("a file with the name of a segment"))?;
        let file = env.open_read(path)?;
        let mut bytes = [0; HEADER_BYTES];
        if file.size_bytes() < HEADER_BYTES as u64 {
            return Err(corrupt("a segment header of 48 bytes"));
        }
        file.read_exact_at(0, &mut bytes)?;
        let header = crate::frame::Header::decode(&bytes, id).map_err(corrupt)?;
        Ok(Self {
            id,
            log_id: header.log_id,
            created_micros: header.created_micros,
        })
    }
}

impl SegmentId {
    /// The name of the segment's file.
    pub fn file_name(self) -> String {
        let path = segment::path_of(Path::new(""), self);
        path.to_string_lossy().into_owned()
    }

    /// The segment of a file; `None` if the name is not one of a segment.
    pub fn of_file_name(name: &str) -> Option<Self> {
        segment::id_of(name)
    }

    /// The name of the file that marks this segment as the first one of an archive.
    pub(crate) fn beginning_name(self) -> String {
        format!("{}{BEGINNING}", self.file_name())
    }

    /// The first segment of an archive, from the name of its marker file; `None` for any other name.
    pub fn of_beginning(name: &str) -> Option<Self> {
        Self::of_file_name(name.strip_suffix(BEGINNING)?)
    }
}
