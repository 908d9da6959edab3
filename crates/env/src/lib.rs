//! The one door to files, clock and randomness.
//!
//! Everything above takes an `Arc<dyn Env>` and never touches `std::fs`, the clock or a random source itself. That is what makes
//! three things cheap: crash tests ([`MemEnv::crash`] gives the disk as a power loss would leave it), fault tests ([`FaultEnv`]
//! fails the n-th write of the files that match) and exact accounting ([`account`] counts and times every read, write and sync, in
//! total and for the request that caused it; a traced request is told each I/O).
//!
//! | module | what lives there |
//! | --- | --- |
//! | `door` | the traits: [`Env`], [`ReadFile`], [`WriteFile`], [`SyncFile`], [`FileLock`] |
//! | `real` | [`RealEnv`], the operating system |
//! | `mem` | [`MemEnv`], a disk in memory that can crash and tear |
//! | `fault` | [`FaultEnv`] and its [`Rule`]s, over any other `Env` |
//! | `account` | totals per [`FileKind`], and [`RequestIo`] per request |
//! | `request_io` | [`RequestIo`]: reads, writes and syncs, and their time |
//! | `spectrogram` | the same by time and latency, for the last minutes |
//! | `cost` | [`Cost`] per request: its I/O, and what the layers above count |
//! | `count` | [`Count`]: what they count |
//! | `books` | the numbers that a thread keeps for both |
//! | `trace` | what a traced request does, step by step |
//! | `patience` | when what a thread does for a request has to end |
//! | `page_memory` | [`PageMemory`], the pages of a file that were read and found to be right |
//! | `mapped_writes` | writes to a file by a stretch of it that is mapped |
//! | `descriptors` | how many files and sockets the process may have open |
//! | `scratch` | [`Scratch`], bytes that are kept in files without a name rather than in memory |
//! | `ids` | unique timestamps and version 1 UUIDs out of a clock that may stand still or step back |
//! | `seeded` | the small seeded generator that tests and `MemEnv` share |
//!
//! Durability rules that callers rely on (and that `MemEnv` punishes when broken): bytes are durable after `sync` of their file; a
//! created, renamed or removed name is durable after `sync_dir` of its directory; `create_dir_all` is durable when it returns.

pub mod account;
mod books;
pub mod cost;
mod count;
mod descriptors;
mod door;
mod error;
mod fault;
mod ids;
mod mapped_writes;
mod mem;
mod page_memory;
pub mod patience;
mod real;
mod request_io;
mod scratch;
mod seeded;
pub mod spectrogram;
pub mod trace;

pub use account::FileKind;
pub use cost::Cost;
pub use count::Count;
pub use descriptors::{descriptor_limit, raise_descriptor_limit};
pub use door::{Access, DirEntry, Env, FileLock, ReadFile, SyncFile, WriteFile};
pub use error::{Error, Result};
pub use fault::{Effect, FaultEnv, Operation, Rule, RuleError};
pub use ids::Ids;
pub use mem::{CrashRule, MemEnv, Moment, SyncEvent};
pub use page_memory::{PAGE_BYTES, PageBudget, PageMemory};
pub use real::RealEnv;
pub use request_io::RequestIo;
pub use scratch::{Keeping, Kept, Scratch, each_piece};
pub use seeded::Seeded;
