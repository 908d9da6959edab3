//! The audit log: who did what, as JSON lines in files of their own.
//!
//! The main path: the server asks [`Audit::running`], which is one branch while auditing is off. Otherwise it makes an [`Entry`],
//! with the type and the names that [`Target`] finds in the text of the statement, and gives it to [`AuditLog::record`]. That
//! asks the [`Filter`], and puts the line into a queue whose size in bytes is bounded. The thread `ilion-audit` appends the
//! lines to `audit.log`. When that file's period is over or it is large, it becomes `audit-<number>.log`, and the oldest of
//! these are removed.
//!
//! | module | what |
//! | --- | --- |
//! | `entry` | [`Entry`], its line; [`EntryType`], [`Category`] |
//! | `target` | [`Target`]: the type of a statement, and what it is about |
//! | `filter` | [`Filter`]: which entries are recorded |
//! | `queue` | lines that wait to be written |
//! | `roll` | when a file is complete, and which files are removed; pure |
//! | `files` | the files |
//! | `log` | [`AuditLog`]: filter, queue and thread |
//! | `counts` | [`Counts`]: entries written, dropped, lost |
//! | `audit` | [`Audit`]: on or off |
//!
//! Compat: types, categories, field names and filters are those of `org.apache.cassandra.audit` in Cassandra 5.0. The lines are
//! JSON, and the files roll as those of `BinLog` do.
//!
//! Not here: which requests make entries; the server decides that. When you add a kind of statement, add its type to `entry` and
//! `target`.

mod audit;
mod counts;
mod entry;
mod files;
mod filter;
mod log;
mod queue;
mod roll;
mod target;

pub use audit::Audit;
pub use counts::Counts;
pub use entry::{Category, Entry, EntryType};
pub use filter::{Choice, Filter};
pub use log::{AuditLog, Options, WhenFull};
pub use roll::Limits;
pub use target::Target;
