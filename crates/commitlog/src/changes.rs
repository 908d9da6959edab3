//! Captured records, in the order of their positions, while the log grows.
//!
//! Only what is synced is read: what a power loss could take back, no consumer may have seen.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ilion_env::Env;

use crate::captured_dir::{dropped_upto, kept_segments};
use crate::frame::HEADER_BYTES;
use crate::segment_records::SegmentRecords;
use crate::state::Shared;
use crate::{Error, Position, Record, Result, SegmentId, segment};

/// A captured record, and where the next one may begin.
type Captured = (Position, Record, Position);

/// The captured records from a position on; see [`crate::CommitLog::changes`]. After an error it ends.
pub struct Changes {
    log: Arc<Shared>,
    at: Position,
    open: Option<SegmentRecords>,
    has_failed: bool,
}

impl Changes {
    pub(crate) fn new(log: Arc<Shared>, from: Position) -> Result<Self> {
        let Some(capture) = &log.options.capture else {
            return Err(Error::refused("change data capture is off".to_owned()));
        };
        check_not_dropped(&*log.env, &capture.dir, from)?;
        Ok(Self {
            log,
            at: from,
            open: None,
            has_failed: false,
        })
    }

    /// Everything before it was read.
    pub fn position(&self) -> Position {
        self.at
    }

    fn read_next(&mut self) -> Result<Option<Captured>> {
        loop {
            let synced = self.log.state.lock().synced;
            if self.at >= synced {
                return Ok(None);
            }
            if self.open.as_ref().is_none_or(|open| open.id() != self.at.segment) {
                let before = self.at;
                self.open = self.open_from(before)?;
                match &self.open {
                    None => return Ok(None),
                    // Its end may not be synced.
                    Some(_) if self.at >= synced => return Ok(None),
                    Some(_) => {}
                }
            }
            let Some(open) = &mut self.open else {
                return Ok(None);
            };
            let position = self.at;
            match open.read_at(position.offset)? {
                Some((record, next)) => {
                    self.at.offset = next;
                    if record.is_captured {
                        return Ok(Some((position, record, self.at)));
                    }
                }
                None => {
                    self.at = start_of(SegmentId(position.segment.0.saturating_add(1)));
                    self.open = None;
                }
            }
        }
    }

    /// Opens the first segment at or behind the position that may have captured records.
    fn open_from(&mut self, from: Position) -> Result<Option<SegmentRecords>> {
        let Some(capture) = &self.log.options.capture else {
            return Ok(None);
        };
        loop {
            // In this order: a segment that leaves the log in between is in the directory before.
            let state = self.log.state.lock();
            let in_log: BTreeSet<SegmentId> =
                state.captured.iter().copied().chain([state.active.id]).collect();
            drop(state);
            let kept: BTreeSet<SegmentId> =
                kept_segments(&*self.log.env, &capture.dir)?.into_iter().collect();
            let Some(id) = in_log.union(&kept).copied().find(|id| *id >= from.segment) else {
                return Ok(None);
            };
            check_not_dropped(&*self.log.env, &capture.dir, from)?;
            let dir = if kept.contains(&id) {
                &capture.dir
            } else {
                &self.log.dir
            };
            let opened = SegmentRecords::open(Arc::clone(&self.log.env), segment::path_of(dir, id), id);
            match opened {
                // It was kept, trimmed or removed just now: look again.
                Err(Error::Io(error)) if error.is_not_found() => {}
                opened => {
                    let opened = opened?;
                    opened.check_header()?;
                    self.at = from.max(start_of(id));
                    return Ok(Some(opened));
                }
            }
        }
    }
}

impl Iterator for Changes {
    type Item = Result<Captured>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.read_next().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}

fn start_of(segment: SegmentId) -> Position {
    Position {
        segment,
        offset: HEADER_BYTES as u32,
    }
}

/// Refuses a position whose changes were dropped. The start of the log stands for the oldest that there are.
fn check_not_dropped(env: &dyn Env, dir: &Path, from: Position) -> Result<()> {
    match dropped_upto(env, dir)? {
        Some(dropped) if from > Position::START && from.segment <= dropped => Err(Error::refused(format!(
            "changes from {from} on were removed, up to segment {dropped}: cdc_total_space was used up, or they were released; \
             go on with the earliest"
        ))),
        _ => Ok(()),
    }
}
