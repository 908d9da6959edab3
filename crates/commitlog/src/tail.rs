//! Reads the records of the log while it grows.

use std::sync::Arc;

use crate::frame::HEADER_BYTES;
use crate::segment_records::SegmentRecords;
use crate::state::Shared;
use crate::{Position, Record, Result, SegmentId, segment};

/// An iterator over the records from a position on; see [`crate::CommitLog::tail`]. It ends after an error.
pub struct Tail {
    log: Arc<Shared>,
    at: Position,
    open: Option<SegmentRecords>,
    has_failed: bool,
}

impl Tail {
    pub(crate) fn new(log: Arc<Shared>, from: Position) -> Self {
        Self {
            log,
            at: from,
            open: None,
            has_failed: false,
        }
    }

    /// The position of the next record, which may not be written yet.
    pub fn position(&self) -> Position {
        self.at
    }

    fn read_next(&mut self) -> Result<Option<(Position, Record)>> {
        loop {
            let state = self.log.state.lock();
            let written = state.written;
            let segment = state.segment_from(self.at.segment);
            drop(state);
            if segment != self.at.segment {
                self.at = Position { segment, offset: 0 };
            }
            self.at.offset = self.at.offset.max(HEADER_BYTES as u32);
            if self.at >= written {
                return Ok(None);
            }
            match self.read_here()? {
                Some(record) => return Ok(Some(record)),
                None => {
                    self.at = Position {
                        segment: SegmentId(segment.0.saturating_add(1)),
                        offset: 0,
                    }
                }
            }
        }
    }

    /// Reads the record at the position; `None` at the seal.
    fn read_here(&mut self) -> Result<Option<(Position, Record)>> {
        let position = self.at;
        let open = match &mut self.open {
            Some(open) if open.id() == position.segment => open,
            _ => {
                let path = segment::path_of(&self.log.dir, position.segment);
                let opened = SegmentRecords::open(Arc::clone(&self.log.env), path, position.segment)?;
                self.open.insert(opened)
            }
        };
        let Some((record, next)) = open.read_at(position.offset)? else {
            return Ok(None);
        };
        self.at.offset = next;
        Ok(Some((position, record)))
    }
}

impl Iterator for Tail {
    type Item = Result<(Position, Record)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_failed {
            return None;
        }
        let next = self.read_next().transpose();
        self.has_failed = matches!(next, Some(Err(_)));
        next
    }
}
