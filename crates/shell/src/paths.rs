//! Files that users name.

use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::ReadFile;

/// A path in which `~/` is the home directory.
pub fn expand(path: &str) -> PathBuf {
    match (path.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(rest), Some(home)) => PathBuf::from(home).join(rest),
        _ => PathBuf::from(path),
    }
}

/// Reads a file to its end.
pub struct FileReader {
    file: Arc<dyn ReadFile>,
    offset: u64,
}

impl FileReader {
    /// A reader from an offset on.
    pub fn new(file: Arc<dyn ReadFile>, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl Read for FileReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, into).map_err(io::Error::other)?;
        self.offset += count as u64;
        Ok(count)
    }
}
