//! Reads all segments in order at a start, and reports what is missing.
//!
//! At a break (unsealed end, bad record, bad header), the replay searches behind it for heads of records. If one of them
//! has a `synced` beyond the break, the break is *corruption*: the log does not open (or skips the break, if the options say so).
//! Otherwise the log never promised that these bytes survive a power loss:
//!
//! - if records follow, the break is a *hole*: they are read as well, since writes merge by their timestamps in any order. Records
//!   that depend on the records before them ([`crate::Kind::Cas`], [`crate::Kind::Schema`]) are given up. Holes and records that are
//!   given up are replaced by records of kind [`crate::Kind::Noop`], so the next start finds no break;
//! - if no record follows, the break is the end of the log, a *torn tail* if bytes other than zero stand there.
//!
//! If a segment is missing, or the end of the records that are known to have been synced, the replay reports that and reads the rest.

use std::path::{Path, PathBuf};

use ilion_env::Env;
use uuid::Uuid;

use crate::frame::{
    FILLER_BYTES_MIN, HEADER_BYTES, Header, Step, before_tag, heads, len_without_zeros, step,
};
use crate::segment;
use crate::segment_file::SegmentFile;
use crate::{Damage, Envelope, Error, Options, Position, ReplayFailure, Result, SegmentId};

/// What a replay read, and what could not be read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayReport {
    /// Segments with records.
    pub segments: usize,
    /// Records passed to the receiver.
    pub records: u64,
    /// Bytes of these records, framing included.
    pub bytes: u64,
    /// The newest time of all records, also of those that the receiver skipped.
    pub newest_micros: Option<i64>,
    /// The break at the end of the log; `None` if it ends with a whole record.
    pub torn_tail: Option<Hole>,
    /// Breaks that were never synced, with records behind them that were read.
    pub holes: Vec<Hole>,
    /// Whole records behind a hole that were given up, since they depend on the lost ones.
    pub records_given_up: u64,
    /// Parts of the log that are missing: segments, or its end.
    pub missing: Vec<Missing>,
    /// Damage that was skipped, since the options say so: file and offset.
    pub skipped: Vec<(PathBuf, u64)>,
}

/// Bytes that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hole {
    /// The end of the last good record.
    pub position: Position,
    /// The bytes from there to the next good record, or to the last byte that is not zero.
    pub bytes: u64,
}

/// A part of the log that is not in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// One segment or more.
    Segments {
        /// The last existing segment before the gap; `None` if the first segments are missing.
        after: Option<SegmentId>,
        /// The first existing segment after the gap.
        before: SegmentId,
    },
    /// The end of the log: records were synced up to `to`, and now exist up to `from`.
    Tail {
        /// The end of the records that exist.
        from: Position,
        /// The end of the records that were synced.
        to: Position,
    },
}

/// Receives the records of a replay.
pub type Receiver<'r> = dyn FnMut(Position, Envelope<'_>) -> std::result::Result<(), ReplayFailure> + 'r;

/// Called after the last record: an error refuses the whole log.
pub type Judge<'j> = dyn FnMut() -> std::result::Result<(), ReplayFailure> + 'j;

/// The report of a replay, and the segments that it left in the directory.
pub(crate) struct Replayed {
    pub report: ReplayReport,
    /// Sealed segments with records, oldest first, with their sizes.
    pub segments: Vec<(SegmentId, u64)>,
    /// The segments that have captured records.
    pub captured: Vec<SegmentId>,
    /// The largest number of a segment that was found, including segments that the replay removed.
    pub last: Option<SegmentId>,
    pub log_id: Option<Uuid>,
}

/// Passes all records to the receiver. If `is_understood` returns no error, seals the segments and removes empty ones.
pub(crate) fn run(
    env: &dyn Env,
    dir: &Path,
    options: &Options,
    receive: &mut Receiver<'_>,
    is_understood: &mut Judge<'_>,
) -> Result<Replayed> {
    let ids = segment::list(env, dir)?;
    let mut replay = Replay::new(env, dir, options);
    replay.segments(&ids, receive)?;
    is_understood().map_err(Error::Misunderstood)?;
    let segments = replay.settle()?;
    let last = ids.last().copied();
    let captured = replay.kept.iter().filter(|kept| kept.has_captured);
    Ok(Replayed {
        captured: captured.map(|kept| kept.id).collect(),
        report: replay.report,
        segments,
        last,
        log_id: replay.log_id,
    })
}

/// Passes all records in a directory of segments (a log that is not open, an archive) to the receiver. Changes no file.
///
/// # Errors
/// Those of [`crate::CommitLog::open`].
pub fn read_segments(
    env: &dyn Env,
    dir: &Path,
    damage: Damage,
    receive: &mut Receiver<'_>,
) -> Result<ReplayReport> {
    let options = Options {
        damage,
        ..Options::default()
    };
    let ids = segment::list(env, dir)?;
    let mut replay = Replay::new(env, dir, &options);
    replay.segments(&ids, receive)?;
    Ok(replay.report)
}

struct Replay<'a> {
    env: &'a dyn Env,
    dir: &'a Path,
    options: &'a Options,
    report: ReplayReport,
    kept: Vec<Kept>,
    log_id: Option<Uuid>,
    /// Computed at the first break.
    later: Option<Later>,
    /// For the bytes of the next segment.
    memory: Vec<u8>,
}

/// A segment that was read.
struct Kept {
    id: SegmentId,
    /// The end of its last record.
    end: u32,
    is_sealed: bool,
    has_records: bool,
    has_captured: bool,
    size_bytes: u64,
    /// Start and end of each stretch that a record of kind `Noop` must fill.
    fill: Vec<(u32, u32)>,
}

impl Kept {
    fn end_position(&self) -> Position {
        Position {
            segment: self.id,
            offset: self.end,
        }
    }
}

/// A break: what was expected there (`None` if there are only zeros, as at the end of a log), and where the next record may begin.
#[derive(Clone, Copy)]
struct Broken {
    expected: Option<&'static str>,
    search_from: u32,
}

/// What the records behind the first break of a segment prove.
#[derive(Clone, Copy)]
struct Claims {
    /// The highest `synced` of the records behind the break.
    synced: u32,
    /// A record of a later segment has a `synced` above 0, so this segment was wholly synced.
    is_wholly_synced: bool,
    /// Records follow in later segments.
    is_followed: bool,
}

/// The last segment that has records, and the last that has a record with a `synced` above 0.
#[derive(Clone, Copy, Default)]
struct Later {
    with_records: Option<SegmentId>,
    with_claims: Option<SegmentId>,
}

impl<'a> Replay<'a> {
    fn new(env: &'a dyn Env, dir: &'a Path, options: &'a Options) -> Self {
        Self {
            env,
            dir,
            options,
            report: ReplayReport::default(),
            kept: Vec::new(),
            log_id: options.log_id,
            later: None,
            memory: Vec::new(),
        }
    }

    fn segments(&mut self, ids: &[SegmentId], receive: &mut Receiver<'_>) -> Result<()> {
        self.options.progress.begin(ids.len());
        for id in ids {
            self.segment(*id, ids, receive)?;
            self.options.progress.count_segment();
        }
        self.miss_ends();
        Ok(())
    }

    /// Reads one segment.
    fn segment(&mut self, id: SegmentId, all: &[SegmentId], receive: &mut Receiver<'_>) -> Result<()> {
        let mut file = SegmentFile::open(self.env, self.dir, id, std::mem::take(&mut self.memory))?;
        let mut kept = Kept {
            id,
            end: 0,
            is_sealed: false,
            has_records: false,
            has_captured: false,
            size_bytes: file.size_bytes(),
            fill: Vec::new(),
        };
        let mut broken = self.check_header(file.bytes(), id)?;
        if broken.is_none() {
            kept.end = HEADER_BYTES as u32;
        }
        let mut claims = None;
        loop {
            if broken.is_none() {
                broken = self.records(&mut file, &mut kept, receive)?;
            }
            let Some(here) = broken.take() else { break };
            while !file.is_rest_unwritten()? {
                file.read_more()?;
            }
            let claims = match claims {
                Some(known) => known,
                None => *claims.insert(self.claims(file.bytes(), id, here.search_from, all)?),
            };
            let mut behind = heads(file.bytes(), id, here.search_from.max(HEADER_BYTES as u32));
            // A record at the break takes at least this many bytes, so a nearer head is no record, and none is lost.
            let resume_at = behind.find(|(offset, _)| *offset >= kept.end.saturating_add(FILLER_BYTES_MIN));
            let resume_at = resume_at.map(|(offset, _)| offset);
            // A header is synced before the first record is written.
            let was_synced =
                claims.synced > kept.end || claims.is_wholly_synced || (kept.end == 0 && resume_at.is_some());
            if was_synced {
                self.damage(&mut kept, here.expected.unwrap_or("more records"))?;
                let Some(offset) = resume_at else { break };
                kept.end = offset;
                continue;
            }
            if !self.leap(&mut kept, here, file.bytes(), resume_at, claims.is_followed) {
                break;
            }
        }
        self.memory = file.into_memory();
        self.report.segments += usize::from(kept.has_records);
        self.kept.push(kept);
        Ok(())
    }

    /// Continues behind a break that was never synced. Returns false if no record follows in the segment.
    fn leap(
        &mut self,
        kept: &mut Kept,
        broken: Broken,
        file: &[u8],
        resume_at: Option<u32>,
        is_followed: bool,
    ) -> bool {
        let end = resume_at.map_or_else(|| len_without_zeros(file), |offset| offset as usize);
        let hole = Hole {
            position: kept.end_position(),
            bytes: end.saturating_sub(kept.end as usize) as u64,
        };
        if resume_at.is_some() || is_followed {
            self.report.holes.push(hole);
        } else if broken.expected.is_some() && kept.end > 0 {
            // A segment without a header was still being created when the process ended.
            self.report.torn_tail = Some(hole);
        }
        let Some(resume_at) = resume_at else {
            // The segment is cut here, even if it is sealed behind skipped damage.
            kept.is_sealed = false;
            return false;
        };
        kept.fill.push((kept.end, resume_at));
        kept.has_records = true;
        kept.end = resume_at;
        true
    }

    /// Reads records up to the seal, or up to a break.
    fn records(
        &mut self,
        file: &mut SegmentFile,
        kept: &mut Kept,
        receive: &mut Receiver<'_>,
    ) -> Result<Option<Broken>> {
        loop {
            let (expected, search_from) = match step(file.bytes(), kept.id, kept.end) {
                Step::Record { payload, next } => {
                    self.record(kept, payload, next, receive)?;
                    kept.end = next;
                    kept.has_records = true;
                    continue;
                }
                Step::Seal => {
                    kept.is_sealed = true;
                    return Ok(None);
                }
                Step::End => (None, kept.end.saturating_add(1)),
                Step::Bad { expected, next } => (Some(expected), next),
            };
            let is_read = match expected {
                None => file.is_rest_unwritten()?,
                Some(_) => file.is_at_end(),
            };
            if is_read {
                return Ok(Some(Broken {
                    expected,
                    search_from,
                }));
            }
            // The missing bytes may not have been read yet.
            file.read_more()?;
        }
    }

    /// Refuses damage, or reports it if the options skip damage. The file with the skipped damage is not changed.
    fn damage(&mut self, kept: &mut Kept, expected: &'static str) -> Result<()> {
        let file = segment::path_of(self.dir, kept.id);
        let offset = u64::from(kept.end);
        if self.options.damage == Damage::Refuse {
            return Err(Error::Corrupt {
                file,
                offset,
                expected,
            });
        }
        self.report.skipped.push((file, offset));
        kept.is_sealed = true;
        kept.has_records = true;
        Ok(())
    }

    /// Returns the break if the header is bad.
    fn check_header(&mut self, file: &[u8], id: SegmentId) -> Result<Option<Broken>> {
        let header = match Header::decode(file, id) {
            Ok(header) => header,
            Err(expected) => {
                return Ok(Some(Broken {
                    expected: Some(expected),
                    search_from: HEADER_BYTES as u32,
                }));
            }
        };
        match self.log_id {
            Some(log_id) if log_id != header.log_id => {
                return Err(Error::refused(format!(
                    "{} belongs to the log {}, this is {log_id}",
                    segment::path_of(self.dir, id).display(),
                    header.log_id
                )));
            }
            _ => self.log_id = Some(header.log_id),
        }
        if let Some(last) = self.kept.last()
            && header.before != 0
            && header.before != before_tag(Some(last.id))
            && self.is_needed(last.id)
        {
            self.report.missing.push(Missing::Segments {
                after: Some(last.id),
                before: id,
            });
        }
        Ok(None)
    }

    /// False for a segment that was trimmed and that came back after a power loss.
    fn is_needed(&self, id: SegmentId) -> bool {
        self.options.known.is_none_or(|known| id >= known.from)
    }

    /// Reports what is missing at both ends of the stretch that the log must have.
    fn miss_ends(&mut self) {
        let Some(known) = self.options.known else { return };
        let was_empty = known.to.segment == known.from && known.to.offset <= HEADER_BYTES as u32;
        if was_empty {
            return;
        }
        // A spare segment does not show where the records before it end.
        let has_known_end = self.kept.iter().any(|kept| kept.id == known.to.segment);
        let is_spare = |kept: &&Kept| has_known_end && !kept.has_records && kept.id > known.to.segment;
        let last = self.kept.iter().rev().find(|kept| !is_spare(kept));
        let from = last.map_or(Position::START, Kept::end_position);
        if let Some(first) = self.kept.first()
            && first.id > known.from
            && first.id <= known.to.segment
        {
            self.report.missing.push(Missing::Segments {
                after: None,
                before: first.id,
            });
        }
        if from < known.to {
            self.report.missing.push(Missing::Tail { from, to: known.to });
        }
    }

    fn record(
        &mut self,
        kept: &mut Kept,
        payload: &[u8],
        next: u32,
        receive: &mut Receiver<'_>,
    ) -> Result<()> {
        let position = kept.end_position();
        let envelope = Envelope::decode(payload).map_err(|expected| {
            let file = segment::path_of(self.dir, position.segment);
            Error::Corrupt {
                file,
                offset: u64::from(position.offset),
                expected,
            }
        })?;
        if envelope.kind.needs_all_before() && !self.report.holes.is_empty() {
            self.report.records_given_up += 1;
            kept.fill.push((position.offset, next));
            return Ok(());
        }
        kept.has_captured |= envelope.is_captured;
        self.report.newest_micros = self.report.newest_micros.max(Some(envelope.time_micros));
        receive(position, envelope).map_err(|source| Error::Replay { position, source })?;
        self.report.records += 1;
        self.report.bytes += u64::from(next - position.offset);
        Ok(())
    }

    /// Collects what the records behind the first break of a segment, and those of later segments, prove about syncs.
    fn claims(&mut self, file: &[u8], id: SegmentId, from: u32, all: &[SegmentId]) -> Result<Claims> {
        let behind = heads(file, id, from.max(HEADER_BYTES as u32));
        let later = match self.later {
            Some(known) => known,
            None => *self.later.insert(self.look_at_later(id, all)?),
        };
        Ok(Claims {
            synced: behind.map(|(_, head)| head.synced).max().unwrap_or(0),
            is_wholly_synced: later.with_claims > Some(id),
            is_followed: later.with_records > Some(id),
        })
    }

    fn look_at_later(&self, id: SegmentId, all: &[SegmentId]) -> Result<Later> {
        let mut later = Later::default();
        for id in all.iter().rev().take_while(|later| **later > id) {
            let file = SegmentFile::open_whole(self.env, self.dir, *id)?;
            let mut heads = heads(file.bytes(), *id, HEADER_BYTES as u32).peekable();
            if heads.peek().is_some_and(|(_, head)| !head.is_seal()) {
                later.with_records = later.with_records.max(Some(*id));
            }
            if heads.any(|(_, head)| head.synced > 0) {
                later.with_claims = Some(*id);
                break;
            }
        }
        Ok(later)
    }

    /// Fills the holes of each segment, syncs it and seals it, oldest first, and removes segments without records. Returns the
    /// segments that are left, with their sizes. They are synced here, since records of the new segment will have a `synced` above 0.
    fn settle(&self) -> Result<Vec<(SegmentId, u64)>> {
        let mut left = Vec::new();
        let last_with_records = self.kept.iter().rposition(|kept| kept.has_records);
        for (index, kept) in self.kept.iter().enumerate() {
            // The header of the next segment refers to this one, so this one must stay.
            let is_followed = kept.end > 0 && last_with_records.is_some_and(|last| index < last);
            if !kept.has_records && !is_followed {
                self.env.remove_file(&segment::path_of(self.dir, kept.id))?;
                continue;
            }
            segment::fill(self.env, self.dir, kept.id, &kept.fill)?;
            let size_bytes = match kept.is_sealed {
                true => {
                    segment::sync_again(self.env, self.dir, kept.id)?;
                    kept.size_bytes
                }
                false => segment::seal(self.env, self.dir, kept.id, kept.end)?,
            };
            left.push((kept.id, size_bytes));
        }
        self.env.sync_dir(self.dir)?;
        Ok(left)
    }
}
