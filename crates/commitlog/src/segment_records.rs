//! The records of one segment file, read one at a time.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, ReadFile};

use crate::frame::{HEAD_BYTES, HEADER_BYTES, Head, Header};
use crate::{Envelope, Error, Record, Result, SegmentId, options};

/// A reader of one segment. Keeps one record in memory.
pub(crate) struct SegmentRecords {
    env: Arc<dyn Env>,
    path: PathBuf,
    id: SegmentId,
    file: Arc<dyn ReadFile>,
    /// The record being read, after its head.
    buffer: Vec<u8>,
}

impl SegmentRecords {
    pub(crate) fn open(env: Arc<dyn Env>, path: PathBuf, id: SegmentId) -> Result<Self> {
        let file = env.open_read(&path)?;
        Ok(Self {
            env,
            path,
            id,
            file,
            buffer: Vec::new(),
        })
    }

    pub(crate) fn id(&self) -> SegmentId {
        self.id
    }

    /// Refuses a file that is not the segment with this number.
    pub(crate) fn check_header(&self) -> Result<()> {
        let mut bytes = [0; HEADER_BYTES];
        if self.file.size_bytes() < HEADER_BYTES as u64 {
            return Err(self.corrupt(0, "a segment header of 48 bytes"));
        }
        self.file.read_exact_at(0, &mut bytes)?;
        Header::decode(&bytes, self.id).map_err(|expected| self.corrupt(0, expected))?;
        Ok(())
    }

    /// Reads the record at `offset`, where a record was written. Returns it with the offset of the next one; `None` at the seal.
    pub(crate) fn read_at(&mut self, offset: u32) -> Result<Option<(Record, u32)>> {
        let start = u64::from(offset);
        let behind_head = start + HEAD_BYTES as u64;
        if behind_head > self.size_at_least(behind_head)? {
            return Err(self.corrupt(offset, "a record or the end of the segment"));
        }
        let mut head_bytes = [0; HEAD_BYTES];
        self.file.read_exact_at(start, &mut head_bytes)?;
        let head = Head::decode(&head_bytes, self.id, offset)
            .ok_or_else(|| self.corrupt(offset, "a record where a record was written"))?;
        if head.is_seal() {
            return Ok(None);
        }
        let end = start + head.record_bytes() as u64;
        let next = u32::try_from(end)
            .ok()
            .filter(|_| end <= u64::from(options::SEGMENT_BYTES_MAX));
        let ends_within = "a record that ends within its segment";
        let next = next.ok_or_else(|| self.corrupt(offset, ends_within))?;
        if end > self.size_at_least(end)? {
            return Err(self.corrupt(offset, ends_within));
        }
        self.buffer.resize(head.record_bytes() - HEAD_BYTES, 0);
        self.file.read_exact_at(behind_head, &mut self.buffer)?;
        let decoded = head.payload(&self.buffer).and_then(Envelope::decode);
        let record = decoded
            .map_err(|expected| self.corrupt(offset, expected))?
            .to_record();
        Ok(Some((record, next)))
    }

    /// The size of the file. Opens the file again if its known size is below `wanted`: the segment may have grown.
    fn size_at_least(&mut self, wanted: u64) -> Result<u64> {
        if wanted > self.file.size_bytes() {
            self.file = self.env.open_read(&self.path)?;
        }
        Ok(self.file.size_bytes())
    }

    fn corrupt(&self, offset: u32, expected: &'static str) -> Error {
        Error::Corrupt {
            file: self.path.clone(),
            offset: u64::from(offset),
            expected,
        }
    }
}
