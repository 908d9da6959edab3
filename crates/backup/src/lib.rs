//! Backups of a node to a directory or an object store, and restores from them.
//!
//! **A backup** ([`create`]) is made of a moment of the node ([`Moment`]; `Engine::begin_backup` takes it): links of all SSTables, and
//! of the stretch of the commit log that makes them one moment. Files are cut into chunks of 16 MiB. A chunk is an object that is
//! named after its SHA-256, so it is uploaded once, even if several backups, tables or nodes have it. The manifest of a backup names the
//! chunks of each file; it is written last, so a backup exists as a whole or not at all.
//! **A restore** ([`restore_node`], [`restore_table`]) downloads into a directory beside the target and checks each chunk. Then it opens
//! an engine there, which replays the log, closes it, and renames the directory. A partial restore is never visible under that name.
//!
//! ```text
//! DEST/ilion-backup.json                  {"format": 1}
//!     /backups/NAME.json                  manifest of a backup
//!     /objects/ab/abcd...                 a chunk, named after the SHA-256 of its bytes, in hexadecimal
//!     /log/<node>/<segment>.json          an archived segment of a node's commit log
//!     /log/<node>/reached.json            up to when the archived segments of the node go
//!     /running/<who>.json                 who is adding or removing objects now
//! ```
//!
//! | module | what |
//! | --- | --- |
//! | `place` | [`Place`]: the interface of a destination; opening the destination of a text |
//! | `directory` | a destination in a directory, through `env` |
//! | `cloud` | a destination in an object store: the border to the async runtime |
//! | `manifest` | [`Manifest`], chunks, and their checks |
//! | `catalogue` | the content of a destination: format, backups, objects |
//! | `running` | marks, so that no tool removes chunks that another one relies on |
//! | `create` | a backup |
//! | `plan` | the files of a backup, and which of them the previous backup already has |
//! | `upload` | uploads chunks, on several threads |
//! | `log` | archived segments of the commit log |
//! | `verify`, `delete` | checks backups; removes backups |
//! | `restore` | restores a node or a table |
//! | `download` | downloads files, on several threads |
//! | `pace`, `progress` | the limit of bytes per second; the progress of a tool |

mod catalogue;
mod cloud;
mod create;
mod delete;
mod directory;
mod download;
mod error;
mod log;
mod manifest;
mod moment;
mod pace;
mod place;
mod plan;
mod progress;
mod restore;
mod running;
mod upload;
mod verify;

pub use catalogue::{Backup, Catalogue};
pub use create::{CreateOptions, Created, create};
pub use delete::{Deleted, delete};
pub use directory::Directory;
pub use error::{Error, Result};
pub use log::{Shipped, ship_log};
pub use manifest::{FileEntry, Hash, Manifest, TableEntry};
pub use moment::{Moment, MomentKeyspace, MomentTable};
pub use pace::Pace;
pub use place::{Place, open_place};
pub use progress::{Progress, Silent};
pub use restore::{RestoreOptions, Restored, RestoredTable, TableChoice, Until, restore_node, restore_table};
pub use verify::{Finding, Verified, verify};
