//! The only access to files, clock and randomness.
//!
//! All crates above take an `Arc<dyn Env>` and never use `std::fs`, the clock or a random source directly. This makes three
//! things cheap: crash tests ([`MemEnv::crash`] returns the disk as a power loss would leave it), fault tests ([`FaultEnv`]
//! fails the n-th write of matching files), and exact accounting ([`account`] counts and times every read, write and sync, in
//! total and per request; a traced request records each I/O).
//!
//! | module | contents |
//! | --- | --- |
//! | `door` | the traits: [`Env`], [`ReadFile`], [`WriteFile`], [`SyncFile`], [`FileLock`] |
//! | `real` | [`RealEnv`], the operating system |
//! | `mem` | [`MemEnv`], a disk in memory that can crash and tear |
//! | `linked` | [`LinkedEnv`], a directory in memory with links to files of another `Env`, which are only read |
//! | `fault` | [`FaultEnv`] and its [`Rule`]s, over any other `Env` |
//! | `account` | totals per [`FileKind`], [`RequestIo`] per request, and each I/O of a traced request |
//! | `request_io` | [`RequestIo`]: reads, writes and syncs, and their duration; [`IoVerb`] |
//! | `file_kind` | [`FileKind`]: the purpose of a file, derived from its name |
//! | `spectrogram` | all I/O of the last minutes by time and latency |
//! | `cost` | [`Cost`] per request: its I/O, and the counts of the layers above |
//! | `count` | [`Count`]: the names of these counts |
//! | `books` | the thread-local counters of `account` and `cost` |
//! | `trace` | the steps of a traced request |
//! | `patience` | the deadline of a thread's work for a request |
//! | `parking` | requests that do not hold a thread while they wait for the disk, or for an event |
//! | `handover` | what a thread hands over to others before it waits |
//! | `disk_reads` | [`DiskReads`]: carries out the reads of parked requests |
//! | `client_waits` | whether a client waits for the work of a thread |
//! | `turns` | [`turns::Turns`]: threads that take turns, for simulations |
//! | `thread_flag` | [`ThreadFlag`]: a flag of a thread that is set until a scope is dropped |
//! | `page_memory` | [`PageMemory`]: the pages of a file that were read and checked |
//! | `mapped_writes` | writes to a file through a mapping |
//! | `descriptors` | the limit of open files and sockets |
//! | `large_pages` | small pages of memory instead of large ones |
//! | `scratch` | [`Scratch`]: bytes that are kept in unnamed files instead of memory |
//! | `ids` | [`Ids`]: unique timestamps and version 1 UUIDs |
//! | `seeded` | [`Seeded`]: the random generator of tests and `MemEnv` |
//!
//! Durability rules that callers rely on, and that `MemEnv` enforces: written bytes are durable after `sync` of their file. A
//! created, renamed or removed name is durable after `sync_dir` of its directory. `create_dir_all` is durable when it returns.

pub mod account;
mod books;
mod client_waits;
pub mod cost;
mod count;
mod descriptors;
mod disk_reads;
mod door;
mod error;
mod fault;
mod file_kind;
pub mod handover;
mod ids;
mod large_pages;
mod linked;
mod mapped_writes;
mod mem;
mod page_memory;
pub mod parking;
pub mod patience;
mod real;
mod request_io;
mod scratch;
mod seeded;
pub mod spectrogram;
mod thread_flag;
pub mod trace;
pub mod turns;

pub use client_waits::{client_waits, does_client_wait};
pub use cost::Cost;
pub use count::Count;
pub use descriptors::{descriptor_limit, raise_descriptor_limit};
pub use disk_reads::DiskReads;
pub use door::{Access, DirEntry, Env, FileLock, ReadFile, SyncFile, WriteFile, parent_of};
pub use error::{Error, Result};
pub use fault::{Effect, FaultEnv, Operation, Rule, RuleError};
pub use file_kind::FileKind;
pub use ids::Ids;
pub use large_pages::use_small_pages;
pub use linked::LinkedEnv;
pub use mem::{CrashRule, MemEnv, Moment, SyncEvent};
pub use page_memory::{PAGE_BYTES, PageBudget, PageMemory};
pub use real::RealEnv;
pub use request_io::{IoVerb, RequestIo};
pub use scratch::{Keeping, Kept, Scratch, each_piece};
pub use seeded::Seeded;
pub use thread_flag::ThreadFlag;
