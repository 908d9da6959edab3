//! Change data capture: sealed segments with captured records are kept in a directory of their own, until a consumer removes them.
//!
//! After each sync, every sealed and synced segment with a captured record gets a second name in that directory; the log does not
//! trim it before. So a captured record is in the log, in the directory, or in both. A segment without captured records is not
//! touched. A segment is never written again once it is sealed and synced: numbers are used once, files are not recycled, and a
//! replay changes only bytes that were not synced. So a second name is as good as a copy, and costs no space while the log has the
//! first.
//!
//! The space for captured segments has a limit. At the limit, either captured writes are refused or the oldest segments are removed.
//! To refuse, the log checks a segment when it becomes the active one: if there is no room for it, it takes no captured record until
//! there is. A node of a cluster refuses writes of its clients at the limit; records that other nodes have admitted may exceed it. The
//! file `dropped` in the directory names the newest segment that was removed, also if it was released because all consumers had read it,
//! so that a consumer that was behind learns that it missed changes.

use std::sync::atomic::Ordering;

use crate::captured_dir::{DROPPED, dropped_upto, last_to_drop, sizes};
use crate::options::{Capture, WhenFull};
use crate::state::{Shared, State};
use crate::{Error, SegmentId, archive, segment};

/// Counts of captured segments, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CaptureStats {
    /// Bytes of captured segments: those in the directory, and those that are still in the log only.
    pub used_bytes: u64,
    /// The limit of `used_bytes`.
    pub bytes_max: u64,
    /// Segments that were kept since the log was opened.
    pub kept: u64,
    /// Segments that were dropped since then.
    pub dropped: u64,
    /// Writes that were refused since then.
    pub refused: u64,
}

impl Shared {
    /// Keeps the captured segments that are due. A failure is logged; it delays trimming, but no writer.
    pub(crate) fn keep_captured(&self) {
        if let Some(capture) = &self.options.capture
            && let Err(error) = self.keep_due(capture)
        {
            tracing::warn!(%error, "a segment with captured changes could not be kept");
        }
    }

    fn keep_due(&self, capture: &Capture) -> Result<(), ilion_env::Error> {
        let mut has_kept = false;
        let _keeping = self.capturing.keeping.lock();
        while let Some(id) = self.next_to_keep() {
            archive::archive(&*self.env, &segment::path_of(&self.dir, id), &capture.dir)?;
            self.capturing.kept.fetch_add(1, Ordering::Relaxed);
            self.state.lock().captured.pop_front();
            has_kept = true;
        }
        match has_kept {
            true => self.look_at_space(capture),
            false => Ok(()),
        }
    }

    fn next_to_keep(&self) -> Option<SegmentId> {
        let state = self.state.lock();
        state
            .captured
            .front()
            .copied()
            .filter(|id| *id < state.synced.segment)
    }

    /// Removes the segments in the directory with a smaller number than `before`. Returns their count and bytes.
    pub(crate) fn release_captured(&self, before: SegmentId) -> crate::Result<(u64, u64)> {
        let Some(capture) = &self.options.capture else {
            return Err(Error::refused("change data capture is off".to_owned()));
        };
        let _keeping = self.capturing.keeping.lock();
        let mut gone = sizes(&*self.env, &capture.dir)?;
        gone.retain(|(id, _)| *id < before);
        if let Some((last, _)) = gone.last() {
            self.note_removed(capture, *last)?;
        }
        for (id, _) in &gone {
            self.env
                .remove_file_if_any(&segment::path_of(&capture.dir, *id))?;
        }
        self.look_at_space(capture)?;
        let bytes = gone.iter().map(|(_, size)| size).sum();
        Ok((gone.len() as u64, bytes))
    }

    /// Writes the number of the newest removed segment to `dropped`. Callers do this before they remove files: a crash in between
    /// must not hide that changes are missing.
    fn note_removed(&self, capture: &Capture, last: SegmentId) -> Result<(), ilion_env::Error> {
        let known = dropped_upto(&*self.env, &capture.dir)?;
        let note = format!("{}\n", known.unwrap_or_default().max(last));
        self.env
            .write_atomically(&capture.dir.join(DROPPED), note.as_bytes())
    }

    /// Counts the segments in the directory, and drops the oldest if that is the policy. Requires: `keeping` is held.
    fn look_at_space(&self, capture: &Capture) -> Result<(), ilion_env::Error> {
        let mut sizes = sizes(&*self.env, &capture.dir)?;
        let mut used: u64 = sizes.iter().map(|(_, size)| size).sum();
        if capture.when_full == WhenFull::DropOldest {
            let last = last_to_drop(&sizes, capture.bytes_max);
            if let Some(last) = last {
                self.note_removed(capture, last)?;
            }
            for (id, size) in sizes.drain(..).take_while(|(id, _)| Some(*id) <= last) {
                self.env.remove_file_if_any(&segment::path_of(&capture.dir, id))?;
                self.capturing.dropped.fetch_add(1, Ordering::Relaxed);
                used -= size;
                tracing::warn!(segment = %id, "captured changes were dropped: the space for them is used up");
            }
        }
        self.capturing.kept_bytes.store(used, Ordering::Relaxed);
        self.judge_capture(&self.state.lock());
        Ok(())
    }

    /// Decides whether captured records are admitted, and whether the active segment takes them.
    pub(crate) fn judge_capture(&self, state: &State) {
        let Some(capture) = &self.options.capture else {
            return;
        };
        let active_bytes = u64::from(self.options.segment_bytes);
        let is_active_counted = state.captured.back() == Some(&state.active.id);
        let used = self.used_bytes(state) + if is_active_counted { 0 } else { active_bytes };
        let is_beyond = |most: u64| capture.when_full == WhenFull::Block && used > most;
        let most = capture.bytes_max.saturating_add(capture.excess_bytes);
        self.capturing
            .is_full
            .store(is_beyond(capture.bytes_max), Ordering::Relaxed);
        self.capturing
            .is_overfull
            .store(is_beyond(most), Ordering::Relaxed);
    }

    /// Bytes of the segments in the directory, and of those that will be linked there.
    fn used_bytes(&self, state: &State) -> u64 {
        let in_log = state.captured.len() as u64 * u64::from(self.options.segment_bytes);
        self.capturing.kept_bytes.load(Ordering::Relaxed) + in_log
    }

    /// Checks for segments that consumers removed, if the space is used up.
    pub(crate) fn find_capture_space(&self) {
        if self.capturing.is_full.load(Ordering::Relaxed) {
            self.look_again();
        }
    }

    pub(crate) fn admit_captured(&self) -> crate::Result<()> {
        self.find_capture_space();
        match self.capturing.is_full.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.refuse_captured(&self.state.lock())),
        }
    }

    /// Refuses a captured record if the active segment takes no captured records.
    pub(crate) fn check_captured(&self, state: &State) -> crate::Result<()> {
        match self.capturing.is_overfull.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(self.refuse_captured(state)),
        }
    }

    fn refuse_captured(&self, state: &State) -> Error {
        self.capturing.refused.fetch_add(1, Ordering::Relaxed);
        let used_bytes = self.used_bytes(state);
        Error::CaptureFull { used_bytes }
    }

    /// Checks whether consumers removed segments, unless the last check was a moment ago.
    fn look_again(&self) {
        let Some(capture) = &self.options.capture else {
            return;
        };
        let now = self.env.monotonic_nanos();
        let since = now.saturating_sub(self.capturing.checked_nanos.load(Ordering::Relaxed));
        if since < capture.check_interval_millis.saturating_mul(1_000_000) {
            return;
        }
        if let Some(_keeping) = self.capturing.keeping.try_lock() {
            self.capturing.checked_nanos.store(now, Ordering::Relaxed);
            if let Err(error) = self.look_at_space(capture) {
                tracing::warn!(%error, "the space of captured changes could not be counted");
            }
        }
    }

    pub(crate) fn capture_stats(&self) -> Option<CaptureStats> {
        let capture = self.options.capture.as_ref()?;
        let capturing = &self.capturing;
        Some(CaptureStats {
            used_bytes: self.used_bytes(&self.state.lock()),
            bytes_max: capture.bytes_max,
            kept: capturing.kept.load(Ordering::Relaxed),
            dropped: capturing.dropped.load(Ordering::Relaxed),
            refused: capturing.refused.load(Ordering::Relaxed),
        })
    }
}
