//! Counts and times every read, write and sync.
//!
//! Two books are kept. The totals are atomics per [`FileKind`], for metrics. The charges are plain thread-local
//! counters that only ever grow; a [`Scope`] remembers where they stood, so a request costs two copies of a small struct and
//! scopes may nest. Work that a request hands to another thread is brought home with [`charge`].

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use crate::books::{BOOKS, Books};
use crate::request_io::RequestIo;
use crate::spectrogram::{self, Done, TableTag};

/// Starts to charge this thread's I/O to a request.
#[inline]
pub fn begin() -> Scope {
    Scope {
        start: BOOKS.with(Books::charged),
        this_thread: PhantomData,
    }
}

/// Adds I/O that another thread did for this thread's request.
pub fn charge(io: RequestIo) {
    BOOKS.with(|books| books.charge(io));
}

/// The I/O of this thread since [`begin`].
#[derive(Debug)]
pub struct Scope {
    start: RequestIo,
    this_thread: PhantomData<*const ()>,
}

impl Scope {
    /// What was charged until now.
    #[inline]
    pub fn so_far(&self) -> RequestIo {
        BOOKS.with(Books::charged) - self.start
    }

    /// What was charged from begin to end.
    pub fn finish(self) -> RequestIo {
        self.so_far()
    }
}

/// One I/O of a request that is traced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IoEvent {
    /// What was done.
    pub verb: IoVerb,
    /// To which file.
    pub path: PathBuf,
    /// From which byte on; 0 of a sync.
    pub offset: u64,
    /// How many bytes; 0 of a sync.
    pub bytes: u64,
    /// How long it took.
    pub nanos: u64,
}

/// What an I/O did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IoVerb {
    /// Read bytes.
    Read,
    /// Wrote bytes.
    Wrote,
    /// Made bytes or names durable.
    Synced,
}

/// A trace keeps this many events; the counters of the scope know the rest.
const TRACED_EVENTS_MAX: usize = 1000;

thread_local! {
    static IS_TRACING: Cell<bool> = const { Cell::new(false) };
    static EVENTS: RefCell<Vec<IoEvent>> = const { RefCell::new(Vec::new()) };
}

/// Starts to note each I/O of this thread, file by file, for a request that is traced. Costs an allocation per I/O.
pub fn begin_trace() {
    IS_TRACING.set(true);
    EVENTS.with_borrow_mut(Vec::clear);
}

/// Ends what [`begin_trace`] began, and returns the first thousand events.
pub fn finish_trace() -> Vec<IoEvent> {
    IS_TRACING.set(false);
    EVENTS.take()
}

fn trace(verb: IoVerb, place: Place<'_>, bytes: u64, nanos: u64) {
    crate::trace::note(|| activity(verb, place, bytes, nanos));
    if !IS_TRACING.get() {
        return;
    }
    EVENTS.with_borrow_mut(|events| {
        if events.len() < TRACED_EVENTS_MAX {
            events.push(IoEvent {
                verb,
                path: place.path.to_path_buf(),
                offset: place.offset,
                bytes,
                nanos,
            });
        }
    });
}

/// What is known of a file by its path.
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

    /// Of a directory, whose names are synced.
    pub(crate) const fn directory() -> Self {
        Self {
            kind: FileKind::Directory,
            table: TableTag::NONE,
        }
    }
}

fn activity(verb: IoVerb, place: Place<'_>, bytes: u64, nanos: u64) -> String {
    let name = place.path.file_name().unwrap_or(place.path.as_os_str());
    let (name, micros) = (name.display(), nanos.div_ceil(1000));
    match verb {
        IoVerb::Read => format!("Read {bytes} bytes of {name} at {} in {micros} us", place.offset),
        IoVerb::Wrote => format!("Wrote {bytes} bytes of {name} at {} in {micros} us", place.offset),
        IoVerb::Synced => format!("Synced {name} in {micros} us"),
    }
}

/// Where an I/O happens.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub file: FileTag,
    pub path: &'a Path,
    pub offset: u64,
}

/// What a file is for, told by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum FileKind {
    /// SSTable rows.
    Data,
    /// SSTable partition index, of either format, and indexes attached to it.
    Index,
    /// SSTable partition summary.
    Summary,
    /// SSTable Bloom filter.
    Filter,
    /// SSTable chunk offsets.
    CompressionInfo,
    /// SSTable statistics.
    Statistics,
    /// Ilion's token map.
    Tokens,
    /// Ilion's cell map.
    Cells,
    /// Commit log segments.
    CommitLog,
    /// Directories, where names are synced.
    Directory,
    /// Everything else.
    Other,
}

impl FileKind {
    /// All kinds, in the order of [`totals`].
    pub const ALL: [Self; 11] = [
        Self::Data,
        Self::Index,
        Self::Summary,
        Self::Filter,
        Self::CompressionInfo,
        Self::Statistics,
        Self::Tokens,
        Self::Cells,
        Self::CommitLog,
        Self::Directory,
        Self::Other,
    ];

    /// The kind that the file's name tells.
    pub fn of(path: &Path) -> Self {
        let name = path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if name.starts_with("ilion-1-") && name.ends_with(".log") {
            return Self::CommitLog;
        }
        match name.rsplit('-').next().unwrap_or_default() {
            "Data.db" => Self::Data,
            "Index.db" | "Partitions.db" | "Rows.db" => Self::Index,
            "Summary.db" => Self::Summary,
            "Filter.db" => Self::Filter,
            "CompressionInfo.db" => Self::CompressionInfo,
            "Statistics.db" => Self::Statistics,
            "Tokens.db" => Self::Tokens,
            "Cells.db" => Self::Cells,
            name if name.starts_with("Index+") => Self::Index,
            _ => Self::Other,
        }
    }

    /// The kind as metrics spell it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Index => "index",
            Self::Summary => "summary",
            Self::Filter => "filter",
            Self::CompressionInfo => "compression_info",
            Self::Statistics => "statistics",
            Self::Tokens => "tokens",
            Self::Cells => "cells",
            Self::CommitLog => "commit_log",
            Self::Directory => "directory",
            Self::Other => "other",
        }
    }
}

/// Cache lines of their own, so that readers of data do not slow down the log.
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

/// What this process read, wrote and synced since its start, per kind of file.
pub fn totals() -> [(FileKind, RequestIo); FileKind::ALL.len()] {
    FileKind::ALL.map(|kind| (kind, TOTALS[kind as usize].load()))
}

/// What this process read, wrote and synced of one kind since its start.
pub fn totals_of(kind: FileKind) -> RequestIo {
    TOTALS[kind as usize].load()
}

/// A running clock for one I/O; the `*_done` calls book it.
pub(crate) struct Timer(Instant);

impl Timer {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn read_done(self, place: Place<'_>, bytes: usize) {
        let (bytes, nanos) = self.done(IoVerb::Read, place, bytes);
        TOTALS[place.file.kind as usize].add(0, bytes, nanos);
        charge(RequestIo {
            reads: 1,
            bytes_read: bytes,
            read_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    pub(crate) fn write_done(self, place: Place<'_>, bytes: usize) {
        let (bytes, nanos) = self.done(IoVerb::Wrote, place, bytes);
        TOTALS[place.file.kind as usize].add(3, bytes, nanos);
        charge(RequestIo {
            writes: 1,
            bytes_written: bytes,
            write_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    pub(crate) fn sync_done(self, file: FileTag, path: &Path) {
        let place = Place {
            file,
            path,
            offset: 0,
        };
        let (_, nanos) = self.done(IoVerb::Synced, place, 0);
        let counters = &TOTALS[file.kind as usize].counters;
        counters[6].fetch_add(1, Relaxed);
        counters[7].fetch_add(nanos, Relaxed);
        charge(RequestIo {
            syncs: 1,
            sync_nanos: nanos,
            ..RequestIo::NONE
        });
    }

    /// Tells the trace and the spectrogram; returns bytes and nanoseconds.
    fn done(self, verb: IoVerb, place: Place<'_>, bytes: usize) -> (u64, u64) {
        let at = Instant::now();
        let elapsed = at.saturating_duration_since(self.0).as_nanos();
        let nanos = u64::try_from(elapsed).unwrap_or(u64::MAX);
        let bytes = bytes as u64;
        trace(verb, place, bytes, nanos);
        spectrogram::record(&Done {
            verb,
            file: place.file.kind,
            table: place.file.table,
            path: place.path,
            offset: place.offset,
            bytes,
            nanos,
            at,
        });
        (bytes, nanos)
    }
}
