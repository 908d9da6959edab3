//! [`CommitLog`]: the public calls. Their implementation is in `state`, `write` and `sync`.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use ilion_env::Env;
use parking_lot::{Condvar, Mutex};
use uuid::Uuid;

use crate::capture::CaptureStats;
use crate::captured_dir::Capturing;
use crate::frame::{HEADER_BYTES, Header, before_tag};
use crate::replay::{Judge, Receiver};
use crate::segment::{self, Segment};
use crate::state::{Callback, Shared, Spare, State};
use crate::write::Framed;
use crate::{
    Capabilities, Changes, Envelope, Log, LogStretch, Mode, Options, Position, Record, ReplayReport, Result,
    SegmentId, Tail, archive, background, replay,
};

/// The local commit log: segment files in one directory. Closed (synced and sealed) when dropped.
pub struct CommitLog {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    is_shut: bool,
}

/// Counts of a log, for operators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Records appended since the log was opened.
    pub appends: u64,
    /// Bytes of these records, framing included.
    pub appended_bytes: u64,
    /// Times that bytes were handed to the kernel: calls of write(2), in periodic mode copies to a mapped segment.
    pub writes: u64,
    /// Syncs; each covers one segment or more.
    pub syncs: u64,
    /// Threads and callbacks that are waiting now.
    pub waiters: usize,
    /// Bytes that are appended but not yet written.
    pub pending_bytes: usize,
    /// Segment files, the spare one included.
    pub segments: usize,
    /// Total size of these files.
    pub size_bytes: u64,
}

impl CommitLog {
    /// Replays the records in the directory (created if absent) into the receiver, oldest first, and
    /// starts a new segment.
    ///
    /// # Errors
    /// [`crate::Error::Corrupt`] if bytes that were synced cannot be read; [`crate::Error::Replay`] if the receiver
    /// refuses a record.
    /// In both cases the directory is unchanged.
    pub fn open(
        env: Arc<dyn Env>,
        dir: &Path,
        options: Options,
        receive: &mut Receiver<'_>,
    ) -> Result<(Self, ReplayReport)> {
        Self::open_if(env, dir, options, receive, &mut || Ok(()))
    }

    /// Like [`Self::open`], but calls `is_understood` after the last record, and changes the directory only if that returns no error.
    ///
    /// # Errors
    /// Those of [`Self::open`], and [`crate::Error::Misunderstood`].
    pub fn open_if(
        env: Arc<dyn Env>,
        dir: &Path,
        options: Options,
        receive: &mut Receiver<'_>,
        is_understood: &mut Judge<'_>,
    ) -> Result<(Self, ReplayReport)> {
        options.check()?;
        env.create_dir_all(dir)?;
        let replayed = replay::run(&*env, dir, &options, receive, is_understood)?;
        let log_id = replayed.log_id.unwrap_or_else(|| env.random_uuid());
        // Numbers of removed segments are not used again: SSTables name the records that they contain by these numbers.
        let last = replayed.last.max(options.known.map(|known| known.to.segment));
        let first = first_segment(last, env.now_micros());
        let oldest = replayed.segments.first().map_or(first, |(id, _)| *id);
        archive::begin(&*env, dir, options.archive_dir.as_deref(), oldest)?;
        let header = Header {
            segment: first,
            log_id,
            segment_bytes: options.segment_bytes,
            created_micros: env.now_micros(),
            before: before_tag(replayed.segments.last().map(|(id, _)| *id)),
        };
        let active = match Segment::create(&*env, dir, &header, options.mode) {
            // A full disk must not prevent reads: the log opens, and appends are refused until there is space.
            Err(error) if error.is_shortage() => {
                tracing::warn!(%error, "no new commit log segment: writes are refused until there is one");
                Segment::without_file(dir, first)
            }
            created => created?,
        };
        let active = Arc::new(active);
        let mut state = State::starting_in(active, replayed.segments, env.monotonic_nanos());
        let capturing = Capturing::open(&*env, options.capture.as_ref())?;
        if options.capture.is_some() {
            state.captured = replayed.captured.into();
        }
        state.is_archiving = options.archive_dir.is_some();
        let shared = Arc::new(Shared {
            env,
            dir: dir.to_path_buf(),
            options,
            log_id,
            capturing,
            state: Mutex::new(state),
            progress: Condvar::new(),
            sync_due: Condvar::new(),
            spare_changed: Condvar::new(),
        });
        shared.judge_capture(&shared.state.lock());
        shared.keep_captured();
        let threads = match shared.options.is_stepped {
            true => Vec::new(),
            false => background::spawn(&shared)?,
        };
        let log = Self {
            shared,
            threads,
            is_shut: false,
        };
        Ok((log, replayed.report))
    }

    /// Adds a record. Until [`Self::written`], [`Self::wait_durable`] or [`Self::on_durable`] returns success, the record may exist
    /// only in the memory of the process.
    ///
    /// # Errors
    /// [`crate::Error::Refused`] if the record is too large; [`crate::Error::Io`] if there is no space for a new segment.
    /// Then the record is not in the log.
    pub fn append(&self, envelope: &Envelope<'_>) -> Result<Position> {
        let framed = self.shared.frame(envelope)?;
        let mut state = self.shared.state.lock();
        let position = self.shared.place(&mut state, &framed)?;
        self.shared.limit_pending(state)?;
        Ok(position)
    }

    /// Adds a record and returns when it has reached the kernel: for records that must be in the log before they are applied.
    ///
    /// # Errors
    /// Those of [`Self::append`]. If there is no space, the record is not in the log (unless the process ends before there is space
    /// again, and part of the bytes had been written).
    pub fn append_written(&self, envelope: &Envelope<'_>) -> Result<Position> {
        let framed = self.shared.frame(envelope)?;
        let mut state = self.shared.state.lock();
        let position = self.shared.place(&mut state, &framed)?;
        self.shared
            .write_or_retract(&mut state, position, framed.record_bytes())?;
        Ok(position)
    }

    /// Adds records next to each other (unless a segment ends in between), and takes the lock once. On an
    /// error, some may be in the log.
    pub fn append_many(&self, envelopes: &[Envelope<'_>]) -> Result<Vec<Position>> {
        let framed: Vec<Framed<'_>> = envelopes
            .iter()
            .map(|envelope| self.shared.frame(envelope))
            .collect::<Result<_>>()?;
        let mut state = self.shared.state.lock();
        let positions = framed
            .iter()
            .map(|framed| self.shared.place(&mut state, framed))
            .collect::<Result<_>>()?;
        self.shared.limit_pending(state)?;
        Ok(positions)
    }

    /// Returns when the record has reached the kernel, so that it survives kill -9. Writes everything pending,
    /// unless another thread is already writing.
    pub fn written(&self, position: Position) -> Result<()> {
        let mut state = self.shared.state.lock();
        self.shared.write_up_to(&mut state, position.beyond())
    }

    /// Returns when the record is durable in the sense of the mode.
    pub fn wait_durable(&self, position: Position) -> Result<()> {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        if let Mode::Periodic { period_millis } = shared.options.mode {
            shared.write_up_to(&mut state, position.beyond())?;
            if !shared.is_sync_late(&state, period_millis) {
                return Ok(());
            }
        }
        shared.wait_synced(&mut state, position.beyond())
    }

    /// Calls back when the record is durable in the sense of the mode. If it is durable, or only has to be written (periodic
    /// mode), the callback runs at once, on this thread; else on the sync thread.
    pub fn on_durable(&self, position: Position, callback: Callback) {
        let shared = &*self.shared;
        let mut state = shared.state.lock();
        let now = match shared.options.mode {
            _ if state.synced >= position.beyond() => Some(Ok(())),
            Mode::Periodic { period_millis } => match shared.write_up_to(&mut state, position.beyond()) {
                Ok(()) if shared.is_sync_late(&state, period_millis) => None,
                done => Some(done),
            },
            Mode::Batch | Mode::Group { .. } => shared.check_open(&state).err().map(Err),
        };
        match now {
            Some(outcome) => {
                drop(state);
                callback(outcome);
            }
            None => {
                state.callbacks.push((position, callback));
                state.is_sync_wanted = true;
                shared.sync_due.notify_one();
            }
        }
    }

    /// For a log without threads: does the work of the sync thread once, that is, syncs if a sync is due, and answers callbacks.
    /// Returns false if nothing was due. An error of the sync reaches the callers that wait for it.
    pub fn step(&self) -> bool {
        background::step(&self.shared)
    }

    /// Writes and syncs everything appended so far, whatever the mode.
    pub fn sync(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        let end = state.end_position();
        self.shared.wait_synced(&mut state, end)
    }

    /// Plans a sync of records that nobody waits for, within a tenth of a second. Does not wait. When the log is periodic, its next sync comes
    /// anyway.
    pub fn sync_later(&self) {
        let mut state = self.shared.state.lock();
        if !std::mem::replace(&mut state.is_sync_planned, true) {
            self.shared.sync_due.notify_one();
        }
    }

    /// Writes and syncs everything up to a record, whatever the mode.
    pub fn sync_upto(&self, position: Position) -> Result<()> {
        self.shared
            .wait_synced(&mut self.shared.state.lock(), position.beyond())
    }

    /// The position above all records appended so far, and at or below all that follow.
    pub fn barrier(&self) -> Position {
        self.shared.state.lock().end_position()
    }

    /// An iterator over the records from a position on that have been written. It ends at the last one; called again later, it
    /// continues with newer records. Trimmed segments are skipped.
    pub fn tail(&self, from: Position) -> Tail {
        Tail::new(Arc::clone(&self.shared), from)
    }

    /// An iterator over the captured records from a position on that are synced, including those in segments that are kept for
    /// consumers. It ends at the last one; called again later, it continues with newer records.
    ///
    /// # Errors
    /// The log captures no records, or those after the position were dropped.
    pub fn changes(&self, from: Position) -> Result<Changes> {
        Changes::new(Arc::clone(&self.shared), from)
    }

    /// Returns when the log is synced beyond the position, or after `at_most`. Does not request a sync.
    pub fn wait_for_changes(&self, beyond: Position, at_most: std::time::Duration) {
        let mut state = self.shared.state.lock();
        let is_waiting = |state: &mut State| state.synced <= beyond;
        self.shared
            .progress
            .wait_while_for(&mut state, is_waiting, at_most);
    }

    /// The position up to which the log is synced: where captured records end for now.
    pub fn synced(&self) -> Position {
        self.shared.state.lock().synced
    }

    /// Refuses a captured write while the space for captured segments is used up, after a check for segments that consumers removed.
    /// The append may still refuse the write, since the active segment may have changed in between.
    ///
    /// # Errors
    /// [`crate::Error::CaptureFull`].
    pub fn admit_captured(&self) -> Result<()> {
        self.shared.admit_captured()
    }

    /// Checks for segments that consumers removed, if the space for captured segments is used up.
    pub fn find_capture_space(&self) {
        self.shared.find_capture_space();
    }

    /// Removes the captured segments below `before`, which all consumers have read. Returns the number of removed segments, and their
    /// bytes.
    ///
    /// # Errors
    /// The log captures no records, or a file cannot be removed.
    pub fn release_captured(&self, before: SegmentId) -> Result<(u64, u64)> {
        self.shared.release_captured(before)
    }

    /// Counts of captured segments; `None` if the log captures no records.
    pub fn capture_stats(&self) -> Option<CaptureStats> {
        self.shared.capture_stats()
    }

    /// The first segment that a trim up to that position would leave, and the position up to which the log is synced.
    pub fn stretch(&self, trimmed_upto: Position) -> LogStretch {
        let state = self.shared.state.lock();
        LogStretch {
            from: state.first_untrimmed(trimmed_upto),
            to: state.synced,
        }
    }

    /// Whether [`Self::trim`] would delete anything.
    pub fn has_to_trim(&self, upto: Position) -> bool {
        let state = self.shared.state.lock();
        let oldest = state.sealed.front();
        oldest.is_some_and(|(id, _)| *id < state.first_untrimmed(upto))
    }

    /// Deletes the segments all of whose records are below the position. Segments that are not yet synced stay for now.
    pub fn trim(&self, upto: Position) -> Result<()> {
        let next = || self.shared.state.lock().pop_sealed_below(upto);
        while let Some((id, size_bytes)) = next() {
            let removed = self
                .shared
                .env
                .remove_file_if_any(&segment::path_of(&self.shared.dir, id));
            if let Err(error) = removed {
                self.shared.state.lock().sealed.push_front((id, size_bytes));
                return Err(error.into());
            }
        }
        Ok(())
    }

    /// Continues in a new segment, so that the active one can be trimmed once it is flushed. Does nothing
    /// if the active one is empty.
    pub fn rotate(&self) -> Result<()> {
        let mut state = self.shared.state.lock();
        self.shared.check_open(&state)?;
        if state.end > HEADER_BYTES as u32 {
            self.shared.rotate(&mut state)
        } else {
            Ok(())
        }
    }

    /// The directory in which sealed segments are archived; `None` without an archive.
    pub fn archive_dir(&self) -> Option<&Path> {
        self.shared.options.archive_dir.as_deref()
    }

    /// Archives every segment that is sealed and synced, if there is an archive. Call [`Self::rotate`] and [`Self::sync`] before.
    ///
    /// # Errors
    /// A segment cannot be archived; it stays in the log, and the next call or sync tries again.
    pub fn archive(&self) -> Result<()> {
        Ok(self.shared.archive_due()?)
    }

    /// The capabilities of this log.
    pub fn caps(&self) -> Capabilities {
        Capabilities {
            record_bytes_max: self.shared.options.record_max(),
            is_shared: false,
            survives_power_loss: !matches!(self.shared.options.mode, Mode::Periodic { .. }),
        }
    }

    /// The log's identity, the same over restarts.
    pub fn log_id(&self) -> Uuid {
        self.shared.log_id
    }

    /// Counts for operators.
    pub fn stats(&self) -> Stats {
        let state = self.shared.state.lock();
        let has_spare = matches!(state.spare, Spare::Ready(_));
        let files = usize::from(has_spare) + usize::from(state.active.has_file());
        let spare_bytes = u64::from(has_spare) * u64::from(self.shared.options.segment_bytes);
        let sealed_bytes: u64 = state.sealed.iter().map(|(_, size_bytes)| size_bytes).sum();
        Stats {
            appends: state.counts.appends,
            appended_bytes: state.counts.bytes,
            writes: state.counts.writes,
            syncs: state.counts.syncs,
            waiters: state.counts.waiters + state.callbacks.len(),
            pending_bytes: state.pending_bytes,
            segments: state.sealed.len() + files,
            size_bytes: sealed_bytes + spare_bytes + u64::from(state.active.size_bytes()),
        }
    }

    /// Syncs and seals the log. Dropping it does the same, but only logs an error.
    pub fn close(mut self) -> Result<()> {
        self.shut()
    }

    fn shut(&mut self) -> Result<()> {
        if std::mem::replace(&mut self.is_shut, true) {
            return Ok(());
        }
        self.shared.state.lock().is_closing = true;
        self.shared.sync_due.notify_all();
        self.shared.spare_changed.notify_all();
        for thread in self.threads.drain(..) {
            // A panic of the thread has poisoned the log; the poison is reported below.
            let _ = thread.join();
        }
        self.shared.finish()
    }
}

impl Drop for CommitLog {
    fn drop(&mut self) {
        if let Err(error) = self.shut() {
            tracing::error!(%error, "the commit log could not be closed");
        }
    }
}

impl Log for CommitLog {
    fn append(&self, envelope: &Envelope<'_>) -> Result<Position> {
        self.append(envelope)
    }

    fn wait_durable(&self, position: Position) -> Result<()> {
        self.wait_durable(position)
    }

    fn on_durable(&self, position: Position, callback: Callback) {
        self.on_durable(position, callback);
    }

    fn tail(&self, from: Position) -> Box<dyn Iterator<Item = Result<(Position, Record)>> + Send> {
        Box::new(self.tail(from))
    }

    fn barrier(&self) -> Result<Position> {
        Ok(self.barrier())
    }

    fn trim(&self, upto: Position) -> Result<()> {
        self.trim(upto)
    }

    fn caps(&self) -> Capabilities {
        self.caps()
    }
}

/// The number of the first segment of this process: never one that was used before, even if the clock was set back or the
/// directory was emptied.
fn first_segment(last: Option<SegmentId>, now_micros: i64) -> SegmentId {
    let now_millis = u64::try_from(now_micros / 1000).unwrap_or(0);
    SegmentId(last.map_or(0, |last| last.0.saturating_add(1)).max(now_millis))
}
