//! Takes records from a caller to the kernel.
//!
//! A record is framed outside the lock, gets its position under it, and is copied to the pending chunks. The
//! first thread that waits for a record to be written takes all chunks and writes them, while others append to new
//! ones.
//!
//! If the disk is full (file systems that copy on write may need space although the segment has its own), the chunks go back
//! to the pending ones, because memtables already have their records. Their writers get [`Error::Io`], and every later append
//! or sync first writes these chunks again, at the same offsets. So the log has no gap once there is space.

use std::sync::Arc;

use parking_lot::MutexGuard;

use crate::frame::{HEADER_BYTES, Head, RECORD_OVERHEAD_BYTES, SEAL_BYTES, payload_crc};
use crate::options::SEGMENT_BYTES_MAX;
use crate::state::{Chunk, PENDING_BYTES_MAX, Shared, Spare, State};
use crate::{ENVELOPE_BYTES, Envelope, Error, Position, Result};

/// A record, encoded and checksummed outside the lock.
pub(crate) struct Framed<'a> {
    envelope: [u8; ENVELOPE_BYTES],
    body: &'a [u8],
    crc: u32,
    length: u32,
    is_captured: bool,
}

impl Framed<'_> {
    pub(crate) fn record_bytes(&self) -> u32 {
        self.length + RECORD_OVERHEAD_BYTES as u32
    }
}

impl Shared {
    pub(crate) fn frame<'a>(&self, envelope: &Envelope<'a>) -> Result<Framed<'a>> {
        let size = envelope.body.len().saturating_add(ENVELOPE_BYTES);
        let max = self.options.record_max();
        let length = u32::try_from(size).ok().filter(|length| *length <= max);
        let Some(length) = length else {
            return Err(Error::refused(format!(
                "a record has at most {max} bytes, this one has {size}"
            )));
        };
        let head = envelope.encode_head();
        Ok(Framed {
            crc: payload_crc(&head, envelope.body),
            envelope: head,
            body: envelope.body,
            length,
            is_captured: envelope.is_captured && self.options.capture.is_some(),
        })
    }

    pub(crate) fn check_open(&self, state: &State) -> Result<()> {
        match &state.poison {
            Some(reason) => Err(Error::Poisoned {
                reason: reason.to_string(),
            }),
            None if state.is_closing => Err(Error::Closed),
            None => Ok(()),
        }
    }

    pub(crate) fn poison(&self, state: &mut State, reason: &str) {
        if state.poison.is_none() {
            tracing::error!(reason, "the commit log stops for good");
            state.poison = Some(reason.into());
        }
        self.progress.notify_all();
        self.spare_changed.notify_all();
        self.sync_due.notify_all();
    }

    /// Gives the record its position and copies it to the pending bytes.
    pub(crate) fn place(&self, state: &mut MutexGuard<'_, State>, framed: &Framed<'_>) -> Result<Position> {
        if state.shortage.is_some() {
            let end = state.end_position();
            self.write_up_to(state, end)?;
        }
        self.check_open(state)?;
        let record_bytes = framed.record_bytes();
        self.make_room(state, record_bytes)?;
        if framed.is_captured {
            self.check_captured(state)?;
        }
        let position = state.end_position();
        let head =
            Head::record(framed.length, state.synced_offset()).encode(position.segment, position.offset);
        let bytes = state.chunk();
        bytes.extend_from_slice(&head);
        bytes.extend_from_slice(&framed.envelope);
        bytes.extend_from_slice(framed.body);
        bytes.extend_from_slice(&framed.crc.to_be_bytes());
        if framed.is_captured && state.captured.back() != Some(&position.segment) {
            state.captured.push_back(position.segment);
        }
        state.end += record_bytes;
        state.pending_bytes += record_bytes as usize;
        state.counts.appends += 1;
        state.counts.bytes += u64::from(record_bytes);
        debug_assert!(state.end + SEAL_BYTES as u32 <= state.active.size_bytes());
        Ok(position)
    }

    /// Continues in the next segment if the record does not fit into the active one. If it is too large for any segment, the active
    /// one grows.
    fn make_room(&self, state: &mut MutexGuard<'_, State>, record_bytes: u32) -> Result<()> {
        let fits_into_any = record_bytes <= self.options.segment_bytes - (HEADER_BYTES + SEAL_BYTES) as u32;
        loop {
            let needed = state.end.saturating_add(record_bytes + SEAL_BYTES as u32);
            let size_max = match fits_into_any {
                true => self.options.segment_bytes,
                false => SEGMENT_BYTES_MAX,
            };
            if !state.active.has_file() || needed > size_max {
                self.rotate(state)?;
            } else if needed > state.active.size_bytes() {
                // Other threads may append while the lock is released, so the loop checks again whether the record fits.
                let active = Arc::clone(&state.active);
                let grown = MutexGuard::unlocked(state, || active.grow(needed));
                self.check_open(state)?;
                grown?;
            } else {
                return Ok(());
            }
        }
    }

    /// Makes the spare segment the active one, and waits for it if it is not ready. Returns early if another thread has rotated.
    pub(crate) fn rotate(&self, state: &mut MutexGuard<'_, State>) -> Result<()> {
        let full = state.active.id;
        let tries_before = state.spare_tries;
        while state.active.id == full {
            match &state.spare {
                Spare::Ready(next) => {
                    let next = Arc::clone(next);
                    state.spare = Spare::Wanted;
                    state.push_seal();
                    if state.active.has_file() {
                        let size_bytes = u64::from(state.active.size_bytes());
                        state.sealed.push_back((full, size_bytes));
                    }
                    state.active = next;
                    state.end = HEADER_BYTES as u32;
                    self.judge_capture(state);
                    self.spare_changed.notify_all();
                }
                Spare::Failed(error) if state.spare_tries > tries_before => {
                    return Err(error.clone().into());
                }
                // There may be space by now.
                Spare::Failed(_) => {
                    state.spare = Spare::Wanted;
                    self.spare_changed.notify_all();
                }
                Spare::Wanted if self.options.is_stepped => self.make_spare(state),
                Spare::Wanted => self.spare_changed.wait(state),
            }
            self.check_open(state)?;
        }
        Ok(())
    }

    pub(crate) fn limit_pending(&self, mut state: MutexGuard<'_, State>) -> Result<()> {
        if state.pending_bytes <= PENDING_BYTES_MAX {
            return Ok(());
        }
        let end = state.end_position();
        match self.write_up_to(&mut state, end) {
            // The record keeps its position. Its writer gets the error when it waits for the sync; the next append is refused.
            Err(Error::Io(_)) => Ok(()),
            written => written,
        }
    }

    /// Returns when a record that was just placed is written, or (with an error) replaced by one of kind `Noop`.
    pub(crate) fn write_or_retract(
        &self,
        state: &mut MutexGuard<'_, State>,
        position: Position,
        record_bytes: u32,
    ) -> Result<()> {
        let written = self.write_up_to(state, position.beyond());
        if !matches!(written, Err(Error::Io(_))) {
            return written;
        }
        // Another thread may already be trying the write again.
        while state.is_writing {
            self.progress.wait(state);
        }
        if state.written >= position.beyond() {
            return Ok(());
        }
        state.retract(position, record_bytes);
        written
    }

    /// Returns when everything below the position is written: by this thread, unless another one is writing. Returns [`Error::Io`]
    /// if there is no space: then the records are kept, and written later.
    pub(crate) fn write_up_to(&self, state: &mut MutexGuard<'_, State>, upto: Position) -> Result<()> {
        let failed_before = state.failed_writes;
        while state.written < upto {
            if let Some(reason) = &state.poison {
                return Err(Error::Poisoned {
                    reason: reason.to_string(),
                });
            }
            if let Some(error) = &state.shortage
                && state.failed_writes > failed_before
            {
                return Err(error.clone().into());
            }
            if state.is_writing {
                self.progress.wait(state);
            } else if state.chunks.is_empty() {
                return Err(Error::refused(format!("nothing was appended at {upto}")));
            } else {
                self.write_chunks(state);
            }
        }
        Ok(())
    }

    pub(crate) fn write_chunks(&self, state: &mut MutexGuard<'_, State>) {
        let mut chunks = std::mem::take(&mut state.chunks);
        let end = state.end_position();
        state.pending_bytes = 0;
        state.is_writing = true;
        let (count, failed) = MutexGuard::unlocked(state, || {
            let write = |chunk: &Chunk| chunk.segment.write_at(chunk.offset, &chunk.bytes).err();
            let failed = chunks.iter().map(write).enumerate();
            let mut failed = failed.filter_map(|(index, error)| Some((index, error?)));
            failed.next().unzip()
        });
        state.is_writing = false;
        let unwritten = chunks.split_off(count.unwrap_or(chunks.len()));
        state.counts.writes += chunks.len() as u64;
        if failed.is_none() {
            state.written = end;
        } else if let Some(last) = chunks.back() {
            state.written = last.end();
        }
        for Chunk { segment, bytes, .. } in chunks {
            state.note_unsynced(segment);
            state.recycle(bytes);
        }
        match failed {
            None => {
                if state.shortage.take().is_some() {
                    tracing::info!("the commit log can be written again, and has everything");
                }
            }
            Some(error) if error.is_shortage() => state.hold(unwritten, error),
            Some(error) => self.poison(state, &error.to_string()),
        }
        self.progress.notify_all();
    }
}
