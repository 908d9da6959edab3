//! Reading the log while it grows.

use std::sync::Arc;

use ilion_env::ReadFile;

use crate::frame::{HEAD_BYTES, HEADER_BYTES, Head};
use crate::state::Shared;
use crate::{Envelope, Error, Position, Record, Result, SegmentId, segment};

/// The records from a position on; see [`crate::CommitLog::tail`]. After an error it ends.
pub struct Tail {
    log: Arc<Shared>,
    at: Position,
    file: Option<(SegmentId, Arc<dyn ReadFile>)>,
    /// The record being read, after its head.
    buffer: Vec<u8>,
    has_failed: bool,
}

impl Tail {
    pub(crate) fn new(log: Arc<Shared>, from: Position) -> Self {
        Self {
            log,
            at: from,
            file: None,
            buffer: Vec::new(),
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
        let mut file = self.open()?;
        let offset = u64::from(position.offset);
        let mut head_bytes = [0; HEAD_BYTES];
        file.read_exact_at(offset, &mut head_bytes)?;
        let head = Head::decode(&head_bytes, position.segment, position.offset)
            .ok_or_else(|| self.corrupt("a record where a record was written"))?;
        if head.is_seal() {
            return Ok(None);
        }
        let end = offset + head.record_bytes() as u64;
        if end > file.size_bytes() {
            // The segment has grown since it was opened.
            self.file = None;
            file = self.open()?;
        }
        if end > file.size_bytes() {
            return Err(self.corrupt("a record that ends within its segment"));
        }
        self.buffer.resize(head.record_bytes() - HEAD_BYTES, 0);
        file.read_exact_at(offset + HEAD_BYTES as u64, &mut self.buffer)?;
        let decoded = head.payload(&self.buffer).and_then(Envelope::decode);
        let record = decoded.map_err(|expected| self.corrupt(expected))?.to_record();
        self.at.offset += head.record_bytes() as u32;
        Ok(Some((position, record)))
    }

    fn open(&mut self) -> Result<Arc<dyn ReadFile>> {
        match &self.file {
            Some((segment, file)) if *segment == self.at.segment => Ok(Arc::clone(file)),
            _ => {
                let file = self
                    .log
                    .env
                    .open_read(&segment::path_of(&self.log.dir, self.at.segment))?;
                self.file = Some((self.at.segment, Arc::clone(&file)));
                Ok(file)
            }
        }
    }

    fn corrupt(&self, expected: &'static str) -> Error {
        let file = segment::path_of(&self.log.dir, self.at.segment);
        Error::Corrupt {
            file,
            offset: u64::from(self.at.offset),
            expected,
        }
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
