//! Which log the data directory of a restored node belongs to.
//!
//! At first that of the node that was backed up ([`continue_log`]): its log is replayed, and its SSTables name the stretches of this log
//! that they cover. Then one of its own ([`begin_new_log`]), since the restored node goes on from a moment of the past. With the old id its
//! log would be a second continuation of the same log, and a later restore could mix the two. With a new id, no record of the old log is
//! mistaken for one of the new log.

use std::path::Path;

use ilion_commitlog::{LogStretch, Position, SegmentId};
use ilion_env::Env;
use uuid::Uuid;

use crate::purged;
use crate::reached::Reached;
use crate::recovery::{LOCK_FILE, write_id};
use crate::{EngineOptions, Error, Result};

/// Makes an engine that opens this data directory continue the log of the node with this id. `purged` is that of the
/// [`crate::BackupPoint`]; empty if it had none.
///
/// # Errors
/// The operating system returned an error.
pub fn continue_log(env: &dyn Env, data_dir: &Path, id: Uuid, purged: &str) -> Result<()> {
    env.create_dir_all(data_dir)?;
    if !purged.is_empty() {
        env.write_atomically(&data_dir.join(purged::FILE), purged.as_bytes())?;
    }
    write_id(env, data_dir, id)
}

/// Gives a closed data directory a new id, and removes its commit log. Returns the id. All timestamps that a node gives in this
/// directory are above `floor_micros`. Requires: the engine was drained before it was closed, so that no record of the log is needed.
///
/// # Errors
/// The directory is in use, was not closed properly, or the operating system returned an error. A crash in between leaves a directory
/// that does not open.
pub fn begin_new_log(env: &dyn Env, options: &EngineOptions, floor_micros: i64) -> Result<Uuid> {
    let data_dir = &options.data_dir;
    let _lock = env
        .lock(&data_dir.join(LOCK_FILE))
        .map_err(|error| match error.is_locked() {
            true => Error::InUse(data_dir.clone()),
            false => error.into(),
        })?;
    let Some(reached) = Reached::read(env, data_dir)? else {
        return Err(Error::Refused(format!(
            "{} was not closed by Ilion",
            data_dir.display()
        )));
    };
    let mut newest = reached.log.to.segment;
    for entry in env.list(&options.commitlog_dir)? {
        if let Some(id) = SegmentId::of_file_name(&entry.name) {
            newest = newest.max(id);
            env.remove_file(&options.commitlog_dir.join(&entry.name))?;
        }
    }
    env.sync_dir(&options.commitlog_dir)?;
    // Numbers of segments are not used again, and timestamps do not step back.
    let reached = Reached {
        log: LogStretch {
            from: newest,
            to: Position {
                segment: newest,
                offset: 0,
            },
        },
        timestamp_micros: reached.timestamp_micros.max(floor_micros),
    };
    reached.write(env, data_dir)?;
    let id = env.random_uuid();
    write_id(env, data_dir, id)?;
    Ok(id)
}
