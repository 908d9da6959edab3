//! Captured records, in the order of their positions, while the log grows.
//!
//! Only synced records are read: no consumer may see a record that a power loss could take back.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

use ilion_env::Env;

use crate::captured_dir::{dropped_upto, kept_segments, sizes};
use crate::frame::HEADER_BYTES;
use crate::segment_records::SegmentRecords;
use crate::state::Shared;
use crate::{Error, Position, Record, Result, SegmentId, segment};

/// The position of a captured record, the record, and the position where the next one may begin.
type Captured = (Position, Record, Position);

/// An iterator over the captured records from a position on; see [`crate::CommitLog::changes`]. It ends after an error.
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

    /// All captured records before this position were read.
    pub fn position(&self) -> Position {
        self.at
    }

    /// About how many bytes of the log must still be read up to a position, including bytes of records that are not captured.
    ///
    /// # Errors
    /// A directory or the size of a file cannot be read.
    pub fn bytes_until(&self, end: Position) -> Result<u64> {
        let Some(capture) = &self.log.options.capture else {
            return Ok(0);
        };
        let state = self.log.state.lock();
        let in_log: BTreeSet<SegmentId> = state.captured.iter().copied().chain([state.active.id]).collect();
        drop(state);
        let mut segments: BTreeMap<SegmentId, u64> =
            sizes(&*self.log.env, &capture.dir)?.into_iter().collect();
        for id in in_log {
            match self.log.env.file_size(&segment::path_of(&self.log.dir, id)) {
                Ok(size) => drop(segments.insert(id, size)),
                // The segment left the log just now.
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(bytes_between(&segments, self.at, end))
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
                    // The position has moved to a newer segment, whose records may not be synced yet.
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
            // List the log first: a segment that leaves the log in between is in the directory before that.
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
                // The segment was kept, trimmed or removed just now: look again.
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

/// Bytes of segments from one position to another. Pure.
fn bytes_between(segments: &BTreeMap<SegmentId, u64>, from: Position, end: Position) -> u64 {
    if from >= end {
        return 0;
    }
    let within = segments.range(from.segment..=end.segment);
    let bytes = within.map(|(id, size)| {
        let first = if *id == from.segment {
            u64::from(from.offset)
        } else {
            0
        };
        let behind = if *id == end.segment {
            u64::from(end.offset)
        } else {
            *size
        };
        behind.saturating_sub(first)
    });
    bytes.sum()
}

fn start_of(segment: SegmentId) -> Position {
    Position {
        segment,
        offset: HEADER_BYTES as u32,
    }
}

/// Refuses a position whose changes were dropped. [`Position::START`] means the oldest changes that are left, and is not refused.
fn check_not_dropped(env: &dyn Env, dir: &Path, from: Position) -> Result<()> {
    match dropped_upto(env, dir)? {
        Some(dropped) if from > Position::START && from.segment <= dropped => Err(Error::refused(format!(
            "changes from {from} on were removed, up to segment {dropped}: cdc_total_space was used up, or they were released; \
             go on with the earliest"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_between_two_positions_are_those_of_the_segments_that_are_there() {
        let sizes = [(3, 100), (5, 200), (6, 300)];
        let segments = sizes
            .map(|(id, size)| (SegmentId(id), size))
            .into_iter()
            .collect();
        let at = |segment, offset| Position {
            segment: SegmentId(segment),
            offset,
        };
        let between = |from, end| bytes_between(&segments, from, end);
        assert_eq!(between(Position::START, at(6, 50)), 100 + 200 + 50);
        assert_eq!(between(at(3, 90), at(5, 20)), 10 + 20);
        assert_eq!(between(at(5, 20), at(5, 70)), 50);
        assert_eq!(between(at(4, 7), at(5, 20)), 20);
        assert_eq!(between(at(6, 50), at(6, 50)), 0);
        assert_eq!(between(at(6, 50), at(3, 10)), 0);
    }
}
