//! The commit log: what makes a write durable before its memtable is flushed.
//!
//! Records are opaque here. The main path: a writer appends an [`Envelope`] (encoded and checksummed outside
//! the lock, copied into one pending buffer under it) and gets its [`Position`]. Then it calls
//! [`CommitLog::written`] (the bytes have reached the kernel: they survive kill -9), or waits for the mode's
//! promise with [`CommitLog::wait_durable`] or [`CommitLog::on_durable`]. The first of these callers writes
//! everything that is pending, with one write(2) (in periodic mode, one copy into the mapped segment). So a caller
//! that appends N records and then waits once pays for one write. One background thread syncs, another creates
//! segments in advance.
//!
//! | module | contents |
//! | --- | --- |
//! | `envelope` | [`Envelope`], [`Record`]: the fields of a record beside its body |
//! | `frame` | the bytes of segments and records; reading them back step by step |
//! | `replay` | reading a log at the start: holes, torn tail or corruption, and how they are handled |
//! | `foreign` | Cassandra's segments in the directory |
//! | `segment` | segment files: names, creation, sealing |
//! | `segment_file` | the bytes of a segment, read as far as they are needed |
//! | `log` | [`CommitLog`]: the public calls |
//! | `state` | the state that its threads share; [`Callback`] |
//! | `write` | append, rotate, write |
//! | `sync` | sync, answer, close |
//! | `background` | the sync thread and the thread that creates segments |
//! | `archive` | copies of sealed segments, kept for a restore to a point in time |
//! | `cut` | a copy of the log, cut at a moment |
//! | `capture` | change data capture: sealed segments with captured records, kept for consumers |
//! | `captured_dir` | the directory of these segments |
//! | `changes` | reading captured records while the log grows |
//! | `segment_records` | the records of one segment, one at a time |
//! | `tail` | reading written records while the log grows |
//! | `door` | [`Log`]: the interface of a log |
//! | `shared` | [`SharedLogs`]: the interface of the logs of a cluster |
//! | `options`, `error`, `position` | the options of a log; its errors; the position of a record |
//!
//! Durability rules: a segment is synced before any record of the next one counts as synced, so what is
//! durable is always a prefix of the log. A failed write or sync poisons the log for good
//! ([`Error::Poisoned`]): the kernel may have dropped the pages, so a second sync proves nothing. Only a write
//! that finds no space is tried again (see `write`). When you change bytes in `frame` or `envelope`, raise the
//! version there.

mod archive;
mod background;
mod capture;
mod captured_dir;
mod changes;
mod cut;
mod door;
mod envelope;
mod error;
mod foreign;
mod frame;
mod log;
mod options;
mod position;
mod progress;
mod replay;
mod segment;
mod segment_file;
mod segment_records;
mod shared;
mod state;
mod sync;
mod tail;
mod write;

pub use capture::CaptureStats;
pub use changes::Changes;
pub use cut::{Cut, SegmentFacts, cut_after};
pub use door::{Capabilities, Log};
pub use envelope::{ENVELOPE_BYTES, Envelope, Kind, Origin, Record};
pub use error::{Error, ReplayFailure, Result};
pub use log::{CommitLog, Stats};
pub use options::{Capture, Damage, LogStretch, Mode, Options, WhenFull};
pub use position::{Position, SegmentId};
pub use progress::ReplayProgress;
pub use replay::{Hole, Judge, Missing, Receiver, ReplayReport, read_segments};
pub use shared::{AppendCallback, AppendError, Delivered, EndCallback, SharedLogs, SharedTail, TailError};
pub use state::Callback;
pub use tail::Tail;
