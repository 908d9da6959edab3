//! What survived: reads all segments in order, and tells a torn tail from corruption.
//!
//! Where the bytes break off (unsealed end, bad record, bad header), everything after that place is searched
//! for heads of records. One that claims the place was synced when it was written makes it *corruption*: the
//! log does not open (or skips, if told so). If none does, the place is the end of what was synced, a *torn
//! tail*: the records before it are the log, what comes after was never promised to survive a power loss, and
//! is cut off. Files that hold records wholly behind a torn tail are set aside under the name
//! `<segment>.discarded`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ilion_env::Env;
use uuid::Uuid;

use crate::frame::{HEADER_BYTES, Header, Step, next_head, step};
use crate::segment;
use crate::segment_file::SegmentFile;
use crate::{Damage, Envelope, Error, Options, Position, ReplayFailure, Result, SegmentId};

/// What replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Segments with records.
    pub segments: usize,
    /// Records given to the receiver.
    pub records: u64,
    /// Their bytes, framing included.
    pub bytes: u64,
    /// Where the log broke off, if it did not end at the end of a record.
    pub torn_tail: Option<TornTail>,
    /// Damaged places that were skipped, because the options say so.
    pub skipped: Vec<(PathBuf, u64)>,
}

/// An end in the middle of something, as a power loss leaves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornTail {
    /// Where the last good record ended.
    pub position: Position,
    /// How many records behind it were readable and are given up all the same, because the order has a hole.
    pub records_given_up: u64,
}

/// Receives the records of a replay.
pub type Receiver<'r> = dyn FnMut(Position, Envelope<'_>) -> std::result::Result<(), ReplayFailure> + 'r;

/// Asked after the last record.
pub type Judge<'j> = dyn FnMut() -> std::result::Result<(), ReplayFailure> + 'j;

/// What is left in the directory after a replay.
pub(crate) struct Replayed {
    pub report: Report,
    /// Sealed segments with records, oldest first, with their sizes.
    pub segments: Vec<(SegmentId, u64)>,
    /// The largest number seen, also of segments that are gone now.
    pub last: Option<SegmentId>,
    pub log_id: Option<Uuid>,
}

/// Gives all records to the receiver; if they are understood, leaves only sealed segments in the directory.
pub(crate) fn run(
    env: &dyn Env,
    dir: &Path,
    options: &Options,
    receive: &mut Receiver<'_>,
    is_understood: &mut Judge<'_>,
) -> Result<Replayed> {
    let ids = segment::list(env, dir)?;
    let mut replay = Replay::new(env, dir, options);
    let left = replay.segments(&ids, receive)?;
    is_understood().map_err(Error::Misunderstood)?;
    // Newest first, so that a crash in between leaves no hole.
    left.iter().rev().try_for_each(|id| replay.discard(*id))?;
    let segments = replay.settle()?;
    let last = ids.last().copied();
    Ok(Replayed {
        report: replay.report,
        segments,
        last,
        log_id: replay.log_id,
    })
}

/// Gives all records in a directory of segments (a log that is not open, an archive) to the receiver and changes nothing.
///
/// # Errors
/// As [`crate::CommitLog::open`].
pub fn read_segments(
    env: &dyn Env,
    dir: &Path,
    damage: Damage,
    receive: &mut Receiver<'_>,
) -> Result<Report> {
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
    report: Report,
    kept: Vec<Kept>,
    log_id: Option<Uuid>,
    /// Segments that were only searched: whether they have records.
    searched: HashMap<SegmentId, bool>,
}

/// A segment that was read.
struct Kept {
    id: SegmentId,
    /// Where its last record ends; no seal stands there if it must still be sealed.
    end: u32,
    is_sealed: bool,
    has_records: bool,
    size_bytes: u64,
}

/// What was expected at a break; nothing, if only zeros follow.
type Expected = Option<&'static str>;

/// A place where the bytes break off, judged by what comes after it.
enum Break {
    /// Nothing comes after it that was ever promised.
    Tail { records_given_up: u64 },
    /// It was once synced. Reading can go on at the offset in the same segment, if any.
    Damage { resume_at: Option<u32> },
}

impl<'a> Replay<'a> {
    fn new(env: &'a dyn Env, dir: &'a Path, options: &'a Options) -> Self {
        Self {
            env,
            dir,
            options,
            report: Report::default(),
            kept: Vec::new(),
            searched: HashMap::new(),
            log_id: options.log_id,
        }
    }

    /// Reads segments to the end of the log; gives those that lie wholly behind it.
    fn segments<'i>(&mut self, ids: &'i [SegmentId], receive: &mut Receiver<'_>) -> Result<&'i [SegmentId]> {
        let mut left = ids;
        while let Some((id, later)) = left.split_first() {
            left = later;
            if !self.segment(*id, later, receive)? {
                break;
            }
        }
        Ok(left)
    }

    /// Reads one segment. False: the log ends in it.
    fn segment(&mut self, id: SegmentId, later: &[SegmentId], receive: &mut Receiver<'_>) -> Result<bool> {
        let mut file = SegmentFile::open(self.env, self.dir, id)?;
        let mut kept = Kept {
            id,
            end: 0,
            is_sealed: false,
            has_records: false,
            size_bytes: file.size_bytes(),
        };
        let mut broken = self.check_header(file.bytes(), id)?;
        if broken.is_none() {
            kept.end = HEADER_BYTES as u32;
        }
        let is_whole = loop {
            if broken.is_none() {
                broken = self.records(&mut file, &mut kept, receive)?;
            }
            let Some(expected) = broken.take() else { break true };
            while !file.is_rest_unwritten()? {
                file.read_more()?;
            }
            match self.judge(file.bytes(), id, kept.end, later)? {
                Break::Tail { records_given_up } => {
                    // Cut off also behind skipped damage, or the records given up would be found the next time.
                    kept.is_sealed = false;
                    self.report.torn_tail = torn_tail(&kept, expected, records_given_up);
                    break false;
                }
                Break::Damage { resume_at } => {
                    self.damage(&mut kept, expected.unwrap_or("more records"))?;
                    let Some(offset) = resume_at else { break true };
                    kept.end = offset;
                }
            }
        };
        self.report.segments += usize::from(kept.has_records);
        self.kept.push(kept);
        Ok(is_whole)
    }

    /// Reads records up to the seal, or up to a break: what was expected there, nothing if only zeros follow.
    fn records(
        &mut self,
        file: &mut SegmentFile,
        kept: &mut Kept,
        receive: &mut Receiver<'_>,
    ) -> Result<Option<Expected>> {
        loop {
            let broken = match step(file.bytes(), kept.id, kept.end) {
                Step::Record { payload, next } => {
                    self.record(
                        Position {
                            segment: kept.id,
                            offset: kept.end,
                        },
                        payload,
                        next,
                        receive,
                    )?;
                    kept.end = next;
                    kept.has_records = true;
                    continue;
                }
                Step::Seal => {
                    kept.is_sealed = true;
                    return Ok(None);
                }
                Step::End if file.is_rest_unwritten()? => return Ok(Some(None)),
                Step::End => None,
                Step::Bad { expected } => Some(expected),
            };
            if file.is_at_end() {
                return Ok(Some(broken));
            }
            // What is missing, or follows the zeros, may only not have been read yet.
            file.read_more()?;
        }
    }

    /// Refuses damage, or notes it. What follows cannot be told from what is missing, so the file stays as
    /// it is.
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

    /// What was expected of the header, if it is not that.
    fn check_header(&mut self, file: &[u8], id: SegmentId) -> Result<Option<Expected>> {
        let header = match Header::decode(file, id) {
            Ok(header) => header,
            Err(expected) => return Ok(Some(Some(expected))),
        };
        match self.log_id {
            Some(log_id) if log_id != header.log_id => Err(Error::refused(format!(
                "{} belongs to the log {}, this is {log_id}",
                segment::path_of(self.dir, id).display(),
                header.log_id
            ))),
            _ => {
                self.log_id = Some(header.log_id);
                Ok(None)
            }
        }
    }

    fn record(
        &mut self,
        position: Position,
        payload: &[u8],
        next: u32,
        receive: &mut Receiver<'_>,
    ) -> Result<()> {
        let envelope = Envelope::decode(payload).map_err(|expected| {
            let file = segment::path_of(self.dir, position.segment);
            Error::Corrupt {
                file,
                offset: u64::from(position.offset),
                expected,
            }
        })?;
        receive(position, envelope).map_err(|source| Error::Replay { position, source })?;
        self.report.records += 1;
        self.report.bytes += u64::from(next - position.offset);
        Ok(())
    }

    /// Looks at everything behind a break.
    fn judge(&mut self, file: &[u8], id: SegmentId, at: u32, later: &[SegmentId]) -> Result<Break> {
        let here = after_break(file, id, (at + 1).max(HEADER_BYTES as u32), at);
        // A header is synced before the first record is written.
        if here.was_synced || (at == 0 && here.first.is_some()) {
            return Ok(Break::Damage {
                resume_at: here.first,
            });
        }
        let mut records_given_up = here.records;
        for id in later {
            let file = SegmentFile::open_whole(self.env, self.dir, *id)?;
            let next = after_break(file.bytes(), *id, HEADER_BYTES as u32, 0);
            self.searched.insert(*id, next.records > 0);
            if next.was_synced {
                return Ok(Break::Damage {
                    resume_at: here.first,
                });
            }
            records_given_up += next.records;
        }
        Ok(Break::Tail { records_given_up })
    }

    /// Takes away a segment that lies wholly behind the end of the log.
    fn discard(&self, id: SegmentId) -> Result<()> {
        let path = segment::path_of(self.dir, id);
        let has_records = match self.searched.get(&id) {
            Some(has_records) => *has_records,
            None => {
                let file = SegmentFile::open_whole(self.env, self.dir, id)?;
                after_break(file.bytes(), id, HEADER_BYTES as u32, 0).records > 0
            }
        };
        if has_records {
            let aside = path.with_extension("log.discarded");
            self.env.rename(&path, &aside)?;
        } else {
            self.env.remove_file(&path)?;
        }
        Ok(self.env.sync_dir(self.dir)?)
    }

    /// Syncs and seals in order, and removes what is empty; gives what is left. New records will claim that
    /// all older segments are synced.
    fn settle(&self) -> Result<Vec<(SegmentId, u64)>> {
        let mut left = Vec::new();
        for kept in &self.kept {
            match kept {
                Kept {
                    has_records: false,
                    id,
                    ..
                } => self.env.remove_file(&segment::path_of(self.dir, *id))?,
                Kept {
                    is_sealed: true,
                    id,
                    size_bytes,
                    ..
                } => {
                    segment::sync_again(self.env, self.dir, *id)?;
                    left.push((*id, *size_bytes));
                }
                Kept { id, end, .. } => left.push((*id, segment::seal(self.env, self.dir, *id, *end)?)),
            }
        }
        self.env.sync_dir(self.dir)?;
        Ok(left)
    }
}

/// A header that never got to the disk, with nothing after it, is a segment that was just being created.
fn torn_tail(kept: &Kept, expected: Expected, records_given_up: u64) -> Option<TornTail> {
    let is_torn = records_given_up > 0 || (expected.is_some() && kept.end > 0);
    is_torn.then_some(TornTail {
        position: Position {
            segment: kept.id,
            offset: kept.end,
        },
        records_given_up,
    })
}

/// What stands behind a break.
struct After {
    records: u64,
    first: Option<u32>,
    /// Whether a record claims that the place of the break was synced.
    was_synced: bool,
}

fn after_break(file: &[u8], id: SegmentId, from: u32, synced_above: u32) -> After {
    let mut after = After {
        records: 0,
        first: None,
        was_synced: false,
    };
    let mut from = from;
    while let Some((offset, head)) = next_head(file, id, from) {
        after.records += u64::from(!head.is_seal());
        after.first = after.first.or(Some(offset));
        after.was_synced |= head.synced > synced_above;
        from = offset.saturating_add(1);
    }
    after
}
