//! Open files of the in-memory disk.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::file::MemFile;
use super::{MemEnv, Served};
use crate::account::{FileTag, IoTarget, Timer};
use crate::door::{ReadFile, SyncFile, WriteFile};
use crate::{Error, Result};

pub(super) struct MemReadFile {
    file: Arc<MemFile>,
    size_bytes: u64,
    file_tag: FileTag,
    path: PathBuf,
    served: Arc<Served>,
}

const BLOCK_BYTES: usize = 4096;

impl MemReadFile {
    pub(super) fn new(file: Arc<MemFile>, path: &Path, served: &Arc<Served>) -> Self {
        Self {
            size_bytes: file.size_bytes(),
            file,
            file_tag: FileTag::of(path),
            path: path.to_path_buf(),
            served: served.clone(),
        }
    }
}

impl ReadFile for MemReadFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<usize> {
        let timer = Timer::start();
        let count = self.file.read_at(offset, into);
        self.served.reads.fetch_add(1, Relaxed);
        self.served.bytes.fetch_add(count as u64, Relaxed);
        timer.read_done(
            IoTarget {
                file: self.file_tag,
                path: &self.path,
                offset,
            },
            count,
        );
        Ok(count)
    }

    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn path(&self) -> &Path {
        &self.path
    }

    /// Works on blocks, as file systems do.
    fn data_from(&self, offset: u64) -> Result<Option<u64>> {
        let mut block = [0; BLOCK_BYTES];
        let mut at = offset - offset % BLOCK_BYTES as u64;
        while at < self.size_bytes {
            let count = self.file.read_at(at, &mut block);
            if block[..count].iter().any(|byte| *byte != 0) {
                return Ok(Some(at.max(offset)));
            }
            at += BLOCK_BYTES as u64;
        }
        Ok(None)
    }
}

pub(super) struct MemWriteFile {
    env: MemEnv,
    file: Arc<MemFile>,
    position: u64,
    file_tag: FileTag,
    path: PathBuf,
}

impl MemWriteFile {
    pub(super) fn new(env: MemEnv, file: Arc<MemFile>, path: &Path) -> Self {
        let position = file.size_bytes();
        Self {
            env,
            file,
            position,
            file_tag: FileTag::of(path),
            path: path.to_path_buf(),
        }
    }

    fn needs_space(&self, end: u64, action: &'static str) -> Result<()> {
        if self.env.has_space(end.saturating_sub(self.file.size_bytes())) {
            return Ok(());
        }
        Err(Error::new(action, &self.path, ErrorKind::StorageFull.into()))
    }
}

impl WriteFile for MemWriteFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_at(self.position, bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        let timer = Timer::start();
        self.needs_space(offset + bytes.len() as u64, "write")?;
        self.env.changing(|| self.file.write_at(offset, bytes));
        timer.write_done(
            IoTarget {
                file: self.file_tag,
                path: &self.path,
                offset,
            },
            bytes.len(),
        );
        Ok(())
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn sync(&mut self) -> Result<()> {
        self.sync_handle().sync()
    }

    fn preallocate(&mut self, size_bytes: u64) -> Result<()> {
        self.needs_space(size_bytes, "reserve space for")?;
        self.env.changing(|| self.file.grow(size_bytes));
        Ok(())
    }

    fn truncate(&mut self, size_bytes: u64) -> Result<()> {
        self.env.changing(|| self.file.truncate(size_bytes));
        self.position = self.position.min(size_bytes);
        Ok(())
    }

    fn sync_handle(&self) -> Arc<dyn SyncFile> {
        Arc::new(MemSyncFile {
            env: self.env.clone(),
            file: Arc::clone(&self.file),
            file_tag: self.file_tag,
            path: self.path.clone(),
        })
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

struct MemSyncFile {
    env: MemEnv,
    file: Arc<MemFile>,
    file_tag: FileTag,
    path: PathBuf,
}

impl SyncFile for MemSyncFile {
    fn sync(&self) -> Result<()> {
        self.env.syncing(self.file_tag, &self.path, || {
            self.env.changing(|| self.file.sync());
            Ok(())
        })
    }
}
