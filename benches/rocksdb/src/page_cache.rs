//! The page cache: filled before each measurement, since a kernel may forget what nobody reads for a while (DAMON), however much
//! memory is free; and what was read from the disk all the same.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// Reads all files below a directory.
pub fn fill(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fill(&entry.path())?,
            false => read_through(&entry.path())?,
        }
    }
    Ok(())
}

fn read_through(path: &Path) -> io::Result<()> {
    match File::open(path) {
        Ok(mut file) => io::copy(&mut file, &mut io::sink()).map(drop),
        // A compaction has removed it just now.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Bytes that this process has read from the disk; nothing where the system does not tell.
pub fn read_from_disk() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/io").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes:"))?;
    line.trim().parse().ok()
}
