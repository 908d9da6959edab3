//! The state that the threads of a log share.
//!
//! All that changes is under one mutex, which is held to copy a record at most, and never during I/O.
//! Invariant: synced <= written <= end; each is the end of a record.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::captured_dir::Capturing;
use crate::frame::{HEADER_BYTES, Head, SEAL_BYTES, filler};
use crate::segment::Segment;
use crate::{Options, Position, Result, SegmentId};

/// An append that finds more pending bytes than this writes them.
pub(crate) const PENDING_BYTES_MAX: usize = 1 << 20;

/// Called once: when a record is durable, or with the error if it never will be. Runs on the sync thread or on the calling thread;
/// must not block.
pub type Callback = Box<dyn FnOnce(Result<()>) + Send>;

pub(crate) struct Shared {
    pub env: Arc<dyn Env>,
    pub dir: PathBuf,
    pub options: Options,
    pub log_id: Uuid,
    pub capturing: Capturing,
    pub state: Mutex<State>,
    /// `written` or `synced` grew, or the log was poisoned.
    pub progress: Condvar,
    /// The sync thread has work.
    pub sync_due: Condvar,
    /// The spare segment was taken, or is ready.
    pub spare_changed: Condvar,
}

pub(crate) struct State {
    pub active: Arc<Segment>,
    /// Where the next record goes in the active segment.
    pub end: u32,
    /// Bytes that are appended and that no thread has taken to write, in order.
    pub chunks: VecDeque<Chunk>,
    pub pending_bytes: usize,
    /// An empty buffer to reuse.
    idle_buffer: Vec<u8>,
    /// Whether some thread is writing chunks that it took.
    pub is_writing: bool,
    pub written: Position,
    pub synced: Position,
    /// Segments with writes after their last sync, oldest first.
    pub unsynced: Vec<Arc<Segment>>,
    /// Sealed segments and their sizes, oldest first.
    pub sealed: VecDeque<(SegmentId, u64)>,
    /// The newest segment in the archive, if there is one.
    pub archived: Option<SegmentId>,
    /// Whether segments must be archived before they are trimmed.
    pub is_archiving: bool,
    /// Segments with captured records that are not kept for consumers yet, oldest first; the active one may be the last.
    pub captured: VecDeque<SegmentId>,
    pub spare: Spare,
    /// How often a spare segment was created, or creating it failed.
    pub spare_tries: u64,
    /// Creating it failed the last time.
    pub is_spare_missing: bool,
    pub next_segment: SegmentId,
    pub is_sync_wanted: bool,
    /// A sync was requested with [`crate::CommitLog::sync_later`].
    pub is_sync_planned: bool,
    pub last_sync_nanos: u64,
    pub callbacks: Vec<(Position, Callback)>,
    /// The error of the last write of `chunks`: there was no space for them. The next append or sync tries again.
    pub shortage: Option<ilion_env::Error>,
    /// How often a write failed for lack of space.
    pub failed_writes: u64,
    pub poison: Option<Arc<str>>,
    pub is_closing: bool,
    pub counts: Counts,
}

/// The segment after the active one.
pub(crate) enum Spare {
    Wanted,
    Ready(Arc<Segment>),
    /// The creation failed; the next append that needs the segment makes the thread try again.
    Failed(ilion_env::Error),
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Counts {
    pub appends: u64,
    pub bytes: u64,
    pub writes: u64,
    pub syncs: u64,
    pub waiters: usize,
}

/// Bytes to be written to one segment.
pub(crate) struct Chunk {
    pub segment: Arc<Segment>,
    pub offset: u32,
    pub bytes: Vec<u8>,
}

impl Chunk {
    pub(crate) fn end(&self) -> Position {
        Position {
            segment: self.segment.id,
            // A segment has less than 4 GiB.
            offset: self.offset + self.bytes.len() as u32,
        }
    }
}

impl State {
    pub(crate) fn starting_in(active: Arc<Segment>, sealed: Vec<(SegmentId, u64)>, now_nanos: u64) -> Self {
        let start = Position {
            segment: active.id,
            offset: HEADER_BYTES as u32,
        };
        Self {
            next_segment: SegmentId(active.id.0 + 1),
            active,
            end: start.offset,
            chunks: VecDeque::new(),
            pending_bytes: 0,
            idle_buffer: Vec::new(),
            is_writing: false,
            written: start,
            synced: start,
            unsynced: Vec::new(),
            sealed: sealed.into(),
            archived: None,
            is_archiving: false,
            captured: VecDeque::new(),
            spare: Spare::Wanted,
            spare_tries: 0,
            is_spare_missing: false,
            is_sync_wanted: false,
            is_sync_planned: false,
            last_sync_nanos: now_nanos,
            callbacks: Vec::new(),
            shortage: None,
            failed_writes: 0,
            poison: None,
            is_closing: false,
            counts: Counts::default(),
        }
    }

    pub(crate) fn end_position(&self) -> Position {
        Position {
            segment: self.active.id,
            offset: self.end,
        }
    }

    /// The segment with this number, or the next one.
    pub(crate) fn segment_from(&self, wanted: SegmentId) -> SegmentId {
        self.sealed
            .iter()
            .map(|(id, _)| *id)
            .find(|id| *id >= wanted)
            .unwrap_or(self.active.id)
    }

    /// The oldest segment that is left once everything below the position is trimmed.
    pub(crate) fn first_untrimmed(&self, upto: Position) -> SegmentId {
        // After a crash an unsynced segment could be there again, and would look damaged.
        let below = upto.segment.min(self.synced.segment);
        let is_kept = |id: SegmentId| {
            id >= below
                || (self.is_archiving && Some(id) > self.archived)
                || self.captured.front() == Some(&id)
        };
        let mut sealed = self.sealed.iter().map(|(id, _)| *id);
        sealed.find(|id| is_kept(*id)).unwrap_or(self.active.id)
    }

    pub(crate) fn pop_sealed_below(&mut self, upto: Position) -> Option<(SegmentId, u64)> {
        let first = self.first_untrimmed(upto);
        self.sealed.pop_front_if(|(id, _)| *id < first)
    }

    /// The offset up to which the active segment is known to be synced (see `frame`).
    pub(crate) fn synced_offset(&self) -> u32 {
        if self.synced.segment == self.active.id {
            self.synced.offset
        } else {
            0
        }
    }

    /// The buffer that takes the next bytes of the active segment.
    pub(crate) fn chunk(&mut self) -> &mut Vec<u8> {
        let is_open = self
            .chunks
            .back()
            .is_some_and(|chunk| Arc::ptr_eq(&chunk.segment, &self.active));
        if !is_open {
            let bytes = std::mem::take(&mut self.idle_buffer);
            self.chunks.push_back(Chunk {
                segment: Arc::clone(&self.active),
                offset: self.end,
                bytes,
            });
        }
        let last = self.chunks.len() - 1;
        &mut self.chunks[last].bytes
    }

    /// Appends a seal to the active segment; a segment without a file needs none.
    pub(crate) fn push_seal(&mut self) {
        if !self.active.has_file() {
            return;
        }
        let seal = Head::seal(self.synced_offset()).encode(self.active.id, self.end);
        self.chunk().extend_from_slice(&seal);
        self.pending_bytes += SEAL_BYTES;
        self.end += SEAL_BYTES as u32;
    }

    /// Remembers that a segment was written to and must be synced.
    pub(crate) fn note_unsynced(&mut self, segment: Arc<Segment>) {
        let is_known = |known: &Arc<Segment>| Arc::ptr_eq(known, &segment);
        if !self.unsynced.iter().any(is_known) {
            self.unsynced.push(segment);
        }
    }

    /// Puts back chunks that could not be written, before those that were appended meanwhile.
    pub(crate) fn hold(&mut self, unwritten: VecDeque<Chunk>, error: ilion_env::Error) {
        if self.shortage.is_none() {
            tracing::error!(
                %error,
                "the commit log cannot be written; what it has is kept in memory, and writes are refused until there is room"
            );
        }
        self.pending_bytes += unwritten.iter().map(|chunk| chunk.bytes.len()).sum::<usize>();
        for chunk in unwritten.into_iter().rev() {
            self.chunks.push_front(chunk);
        }
        self.shortage = Some(error);
        self.failed_writes += 1;
    }

    /// Replaces a record that was not written by one of kind `Noop`. Requires: no thread is writing chunks.
    pub(crate) fn retract(&mut self, position: Position, record_bytes: u32) {
        let has_record = |chunk: &&mut Chunk| {
            let end = chunk.offset as usize + chunk.bytes.len();
            chunk.segment.id == position.segment
                && chunk.offset <= position.offset
                && (position.offset as usize) < end
        };
        if let Some(chunk) = self.chunks.iter_mut().find(has_record) {
            let at = (position.offset - chunk.offset) as usize;
            let filler = filler(position.segment, position.offset, record_bytes);
            chunk.bytes[at..at + filler.len()].copy_from_slice(&filler);
        }
    }

    /// Keeps a written buffer for the next chunk, unless it has grown too large.
    pub(crate) fn recycle(&mut self, mut bytes: Vec<u8>) {
        if bytes.capacity() > self.idle_buffer.capacity() && bytes.capacity() <= 2 * PENDING_BYTES_MAX {
            bytes.clear();
            self.idle_buffer = bytes;
        }
    }
}
