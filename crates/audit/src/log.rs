//! The log while it is on: filter, queue, and the thread that writes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{self, JoinHandle};

use arc_swap::ArcSwap;
use ilion_env::{Env, Error, Result};

use crate::counts::Counts;
use crate::entry::Entry;
use crate::files::Files;
use crate::filter::Filter;
use crate::queue::{Put, Queue};
use crate::roll::Limits;

/// Lines are written in pieces of about this size, so that a large queue does not become one large file.
const PIECE_BYTES: usize = 64 << 10;
/// A failure that lasts is logged again after this time.
const TELL_AGAIN_NANOS: u64 = 60_000_000_000;

/// What happens to an entry while the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// Its request waits.
    Wait,
    /// It is dropped and counted.
    Drop,
}

/// Options of the audit log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Directory for the files of the audit log only.
    pub directory: PathBuf,
    /// What happens while the queue is full.
    pub when_full: WhenFull,
    /// Bytes of lines that may wait to be written.
    pub queue_bytes_max: usize,
    /// Limits of the files.
    pub limits: Limits,
    /// Which entries are recorded.
    pub filter: Filter,
}

/// The audit log while it is on.
pub struct AuditLog {
    filter: ArcSwap<Filter>,
    when_full: WhenFull,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
}

impl AuditLog {
    /// Opens the files and starts the thread, which ends after [`AuditLog::close`].
    pub(crate) fn start(
        env: &Arc<dyn Env>,
        options: &Options,
        counts: Arc<Counts>,
    ) -> Result<(Self, JoinHandle<()>)> {
        let files = Files::open(env.clone(), &options.directory, options.limits)?;
        let queue = Arc::new(Queue::new(options.queue_bytes_max));
        let writer = Writer {
            env: env.clone(),
            files,
            queue: queue.clone(),
            counts: counts.clone(),
            told_nanos: None,
        };
        let thread = thread::Builder::new()
            .name("ilion-audit".to_owned())
            .spawn(move || writer.run())
            .map_err(|error| Error::new("start the thread for", &options.directory, error))?;
        let log = Self {
            filter: ArcSwap::from_pointee(options.filter.clone()),
            when_full: options.when_full,
            queue,
            counts,
        };
        Ok((log, thread))
    }

    /// Which entries are recorded.
    pub fn filter(&self) -> Arc<Filter> {
        self.filter.load_full()
    }

    pub(crate) fn set_filter(&self, filter: Filter) {
        self.filter.store(Arc::new(filter));
    }

    /// Records an entry, if the filter admits it. Waits while the queue is full, if the options say so.
    pub fn record(&self, entry: &Entry<'_>) {
        match self.when_full {
            WhenFull::Wait => self.put(entry, Queue::put),
            WhenFull::Drop => self.put(entry, Queue::put_now),
        }
    }

    /// Like [`Self::record`], for callers that must not wait: drops the entry while the queue is full.
    pub fn record_now(&self, entry: &Entry<'_>) {
        self.put(entry, Queue::put_now);
    }

    fn put(&self, entry: &Entry<'_>, put: impl Fn(&Queue, &[u8]) -> Put) {
        if self.filter.load().admits(entry) && put(&self.queue, &entry.line()) == Put::Refused {
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Bytes of lines that are not written yet.
    pub(crate) fn queued_bytes(&self) -> usize {
        self.queue.bytes()
    }

    /// Ends the thread, after it has written what is queued. Later entries are dropped.
    pub(crate) fn close(&self) {
        self.queue.close();
    }
}

/// The thread that writes.
struct Writer {
    env: Arc<dyn Env>,
    files: Files,
    queue: Arc<Queue>,
    counts: Arc<Counts>,
    /// When a failure was last logged.
    told_nanos: Option<u64>,
}

/// Requests that wait for room must not wait for a thread that has panicked.
impl Drop for Writer {
    fn drop(&mut self) {
        self.queue.close();
    }
}

impl Writer {
    fn run(mut self) {
        let mut lines = Vec::new();
        while self.queue.take(&mut lines) {
            let mut rest = lines.as_slice();
            while !rest.is_empty() {
                let (piece, more) = rest.split_at(piece_end(rest));
                self.write(piece);
                rest = more;
            }
        }
        if let Err(error) = self.files.sync() {
            self.tell(&error);
        }
    }

    fn write(&mut self, piece: &[u8]) {
        if let Err(error) = self.files.roll_before(piece.len()) {
            self.tell(&error);
        }
        let count = piece.iter().filter(|byte| **byte == b'\n').count() as u64;
        match self.files.append(piece) {
            Ok(()) => {
                self.counts.written.fetch_add(count, Relaxed);
            }
            Err(error) => {
                self.counts.failed.fetch_add(count, Relaxed);
                self.tell(&error);
            }
        }
    }

    /// Logs a failure, but not each of many.
    fn tell(&mut self, error: &Error) {
        let now = self.env.monotonic_nanos();
        if is_told_again(self.told_nanos, now) {
            self.told_nanos = Some(now);
            let failed = self.counts.failed.load(Relaxed);
            tracing::error!(entries_lost = failed, "the audit log cannot be written: {error}");
        }
    }
}

/// True if a failure must be logged; `told_nanos` is when the last one was logged.
fn is_told_again(told_nanos: Option<u64>, now_nanos: u64) -> bool {
    told_nanos.is_none_or(|told| now_nanos.saturating_sub(told) >= TELL_AGAIN_NANOS)
}

/// The end of the first piece: whole lines of up to [`PIECE_BYTES`], or one longer line.
fn piece_end(lines: &[u8]) -> usize {
    let is_break = |byte: &u8| *byte == b'\n';
    let start = &lines[..lines.len().min(PIECE_BYTES)];
    let end = match start.iter().rposition(is_break) {
        Some(last) => Some(last + 1),
        None => lines.iter().position(is_break).map(|first| first + 1),
    };
    end.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_lines() {
        assert_eq!(piece_end(b"a\nb\n"), 4);
        let long = [vec![b'x'; PIECE_BYTES], b"\ny\n".to_vec()].concat();
        assert_eq!(piece_end(&long), PIECE_BYTES + 1);
        let two = [
            vec![b'x'; PIECE_BYTES - 10],
            b"\n".to_vec(),
            vec![b'y'; 20],
            b"\n".to_vec(),
        ]
        .concat();
        assert_eq!(piece_end(&two), PIECE_BYTES - 9);
        assert_eq!(piece_end(b"without an end"), 14);
    }

    #[test]
    fn a_lasting_failure_is_logged_once_a_minute() {
        assert!(is_told_again(None, 5));
        assert!(!is_told_again(Some(5), 5 + TELL_AGAIN_NANOS - 1));
        assert!(is_told_again(Some(5), 5 + TELL_AGAIN_NANOS));
    }
}
