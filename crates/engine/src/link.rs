//! Second names for files of SSTables: hard links where that is possible, else copies. Durable either way.

use std::path::Path;

use ilion_env::{Env, Result};

const COPY_BYTES: usize = 1 << 20;

/// Gives the file a second name, or copies it if the second name is on another file system. The bytes are
/// durable when it returns; the name is durable after a sync of its directory.
pub(crate) fn link_or_copy(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    match link(env, from, to) {
        Ok(()) => Ok(()),
        Err(error) if error.is_already_exists() || error.is_not_found() || error.is_no_space() => Err(error),
        // Another file system, one without links, or a file that may not be linked or synced.
        Err(_) => {
            env.remove_file_if_any(to)?;
            copy(env, from, to)
        }
    }
}

fn link(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    env.hard_link(from, to)?;
    env.open_append(to)?.sync()
}

/// Copies a file. The copy is durable when this returns.
pub(crate) fn copy(env: &dyn Env, from: &Path, to: &Path) -> Result<()> {
    let source = env.open_read(from)?;
    let mut target = env.create(to)?;
    let mut buffer = vec![0; COPY_BYTES];
    loop {
        let length = source.read_at(target.position(), &mut buffer)?;
        if length == 0 {
            return target.sync();
        }
        target.append(&buffer[..length])?;
    }
}
