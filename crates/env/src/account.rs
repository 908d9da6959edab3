//! Counts and times every read, write and sync.
//!
//! Each I/O is counted twice. The totals are atomics per [`FileKind`], for metrics. The charges are thread-local counters that
//! only grow. A [`Scope`] remembers their values at its start, so a scope costs two copies of a small struct, and scopes may
//! nest. Work that a request hands to another thread is added to the request's own thread by `charge`.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::books::{BOOKS, Books};
use crate::file_kind::FileKind;
use crate::request_io::{IoVerb, RequestIo};
use crate::spectrogram::{self, Done, TableTag};

/// Starts to measure this thread's I/O for a request.
#[inline]
pub fn begin() -> Scope {
    Scope {
        start: BOOKS.with(Books::charged),
        this_thread: PhantomData,
    }
}

/// Adds I/O that another thread did for this thread's request.
pub(crate) fn charge(io: RequestIo) {
    BOOKS.with(|books| books.charge(io));
}

/// The I/O of this thread since [`begin`].
#[derive(Debug)]
pub struct Scope {
    start: RequestIo,
    this_thread: PhantomData<*const ()>,
}

impl Scope {
    /// The I/O since the start of the scope.
    #[inline]
    pub fn so_far(&self) -> RequestIo {
        BOOKS.with(Books::charged) - self.start
    }

    /// The I/O between the start and the end of the scope.
    pub fn finish(self) -> RequestIo {
        self.so_far()
    }
}

/// One I/O of a traced request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoEvent {
    /// Whether it read, wrote or synced.
    pub verb: IoVerb,
    /// Path of the file or directory.
    pub path: PathBuf,
    /// Offset in the file; 0 for a sync.
    pub offset: u64,
    /// Number of bytes; 0 for a sync.
    pub bytes: u64,
    /// Duration.
    pub nanos: u64,
}

/// Maximum number of events of a trace; the counters of the scope count the rest, too.
const TRACED_EVENTS_MAX: usize = 1000;

thread_local! {
    static IS_TRACING: Cell<bool> = const { Cell::new(false) };
    static EVENTS: RefCell<Vec<IoEvent>> = const { RefCell::new(Vec::new()) };
}

/// Starts to record each I/O of this thread, for tests of which files are read. Each I/O then costs an allocation.
pub fn begin_trace() {
    IS_TRACING.set(true);
    EVENTS.with_borrow_mut(Vec::clear);
}

/// Ends what [`begin_trace`] started, and returns the first thousand events.
pub fn finish_trace() -> Vec<IoEvent> {
    IS_TRACING.set(false);
    EVENTS.take()
}

fn trace(verb: IoVerb, target: IoTarget<'_>, bytes: u64, nanos: u64) {
    crate::trace::note(|| activity(verb, target, bytes, nanos));
    if !IS_TRACING.get() {
        return;
    }
    EVENTS.with_borrow_mut(|events| {
        if events.len() < TRACED_EVENTS_MAX {
            events.push(IoEvent {
                verb,
                path: target.path.to_path_buf(),
                offset: target.offset,
                bytes,
                nanos,
            });
        }
    });
}

/// The properties of a file that its path shows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileTag {
    pub kind: FileKind,
    pub table: TableTag,
}

impl FileTag {
    pub(crate) fn of(path: &Path) -> Self {
        Self {
            kind: FileKind::of(path),
            table: TableTag::of(path),
        }
    }

    /// The tag of a directory, for syncs of its names.
    pub(crate) const fn directory() -> Self {
        Self {
            kind: FileKind::Directory,
            table: TableTag::NONE,
        }
    }
}

fn activity(verb: IoVerb, target: IoTarget<'_>, bytes: u64, nanos: u64) -> String {
    let name = target.path.file_name().unwrap_or(target.path.as_os_str());
    let (name, micros) = (name.display(), nanos.div_ceil(1000));
    match verb {
        IoVerb::Read => format!("Read {bytes} bytes of {name} at {} in {micros} us", target.offset),
        IoVerb::Wrote => format!(
            "Wrote {bytes} bytes of {name} at {} in {micros} us",
            target.offset
        ),
        IoVerb::Synced => format!("Synced {name} in {micros} us"),
    }
}

/// The file and offset of an I/O.
#[derive(Clone, Copy)]
pub(crate) struct IoTarget<'a> {
    pub file: FileTag,
    pub path: &'a Path,
    pub offset: u64,
}

/// Each kind has its own cache lines, so that readers of data do not slow down the log.
#[repr(align(128))]
struct KindTotals {
    counters: [AtomicU64; 8],
}

impl KindTotals {
    const fn zero() -> Self {
        Self {
            counters: [const { AtomicU64::new(0) }; 8],
        }
    }

    fn add(&self, first: usize, bytes: u64, nanos: u64) {
        self.counters[first].fetch_add(1, Relaxed);
        self.counters[first + 1].fetch_add(bytes, Relaxed);
        self.counters[first + 2].fetch_add(nanos, Relaxed);
    }

    fn load(&self) -> RequestIo {
        let [
            reads,
            bytes_read,
            read_nanos,
            writes,
            bytes_written,
            write_nanos,
            syncs,
            sync_nanos,
        ] = std::array::from_fn(|index| self.counters[index].load(Relaxed));
        RequestIo {
            reads,
            bytes_read,
            read_nanos,
            writes,
            bytes_written,
            write_nanos,
            syncs,
            sync_nanos,
        }
    }
}

static TOTALS: [KindTotals; FileKind::ALL.len()] = [const { KindTotals::zero() }; FileKind::ALL.len()];

/// I/O of this process since its start, per kind of file.
pub fn totals() -> [(FileKind, RequestIo); FileKind::ALL.len()] {
    FileKind::ALL.map(|kind| (kind, TOTALS[kind as usize].load()))
}

/// The duration of one I/O; the `*_done` functions record it.
pub(crate) struct Timer(Instant);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn started_at(began: Instant) -> Self {
        Self(began)
    }

    pub(crate) fn read_done(self, target: IoTarget<'_>, bytes: usize) {
        let (bytes, nanos) = self.done(IoVerb::Read, target, bytes);
        TOTALS[target.file.kind as usize].add(0, bytes, nanos);
        charge(RequestIo {
            reads: 1,
            bytes_read: bytes,
            read_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    pub(crate) fn write_done(self, target: IoTarget<'_>, bytes: usize) {
        let (bytes, nanos) = self.done(IoVerb::Wrote, target, bytes);
        TOTALS[target.file.kind as usize].add(3, bytes, nanos);
        charge(RequestIo {
            writes: 1,
            bytes_written: bytes,
            write_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    pub(crate) fn sync_done(self, file: FileTag, path: &Path) {
        let target = IoTarget {
            file,
            path,
            offset: 0,
        };
        let (_, nanos) = self.done(IoVerb::Synced, target, 0);
        let counters = &TOTALS[file.kind as usize].counters;
        counters[6].fetch_add(1, Relaxed);
        counters[7].fetch_add(nanos, Relaxed);
        charge(RequestIo {
            syncs: 1,
            sync_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    /// Records the I/O in trace and spectrogram; returns bytes and nanoseconds.
    fn done(self, verb: IoVerb, target: IoTarget<'_>, bytes: usize) -> (u64, u64) {
        let at = Instant::now();
        let elapsed = at.saturating_duration_since(self.0).as_nanos();
        let nanos = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let bytes = bytes as u64;
        trace(verb, target, bytes, nanos);
        spectrogram::record(&Done {
            verb,
            file: target.file.kind,
            table: target.file.table,
            path: target.path,
            offset: target.offset,
            bytes,
            nanos,
            at,
        });
        (bytes, nanos)
    }
}
