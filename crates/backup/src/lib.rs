//! Backups of a node to a directory or an object store, and restores from them.
//!
//! **A backup** ([`create`]) is made of a moment of the node ([`Moment`]; `Engine::begin_backup` takes it): links of all SSTables, and
//! of the stretch of the commit log that makes them one moment. Files are cut into chunks of 16 MiB. A chunk is an object that is
//! named after its SHA-256, so it is uploaded once, whatever backup, table or node has it. The manifest of a backup names the chunks of
//! each file; it is written last, so a backup is there as a whole or not at all.
//! **A restore** ([`restore_node`], [`restore_table`]) downloads into a directory beside the target and checks each chunk. Then it opens
//! an engine there, which replays the log, closes it, and renames the directory. Nobody ever sees half of it.
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
//! | `place` | [`Place`]: what a destination can do, and which one a text names |
//! | `directory` | a destination in a directory, through `env` |
//! | `cloud` | a destination in an object store: the border to the async runtime |
//! | `manifest` | [`Manifest`], chunks, and their checks |
//! | `catalogue` | what is at a destination: format, backups, objects |
//! | `running` | no tool removes what another one counts on |
//! | `create` | a backup |
//! | `plan` | which files a backup has, and which of them are known from the one before |
//! | `upload` | chunks to the destination, on several threads |
//! | `log` | archived segments of the commit log |
//! | `verify`, `delete` | reading a backup back; removing some |
//! | `restore` | a node or a table as it was |
//! | `download` | files from the destination, on several threads |
//! | `pace`, `progress` | the limit of bytes per second; what a tool shows |

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
