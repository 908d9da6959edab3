//! Component files of attached indexes: a body in checked pages, then a tail that describes the file.
//!
//! ```text
//! file := body  page_crc:u32 *  tail                 integers are little-endian, CRCs are CRC-32 (zlib)
//! tail := fields  body_length:u64  tail_crc:u32  tail_len:u32  magic:8
//! ```
//!
//! The pages are those of `ilion-pages`. `tail_len` is the length of `fields` and `body_length`; `tail_crc` covers the same
//! bytes. A file is written under a temporary name (`.tmp`), synced, and renamed when it is complete. So a file that is being
//! read never changes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_env::{Access, Env, ReadFile};
use ilion_pages::{PageBytes, Pages, PagesWriter, paged_length};
use ilion_rows::ReadError;

use crate::Error;

pub(crate) use ilion_pages::u64_at;

/// Length of CRC, length field and magic at the end of the file.
const END_LEN: usize = 16;
/// A limit above the size of any tail.
const TAIL_LEN_MAX: usize = 1 << 20;

/// The last bytes of a file: its kind and version.
pub(crate) type Magic = [u8; 8];

/// A file that is being written. Until [`PagedWriter::finish`], it has a temporary name.
pub(crate) struct PagedWriter {
    env: Arc<dyn Env>,
    pages: PagesWriter,
    path: PathBuf,
    temporary: PathBuf,
}

impl PagedWriter {
    pub(crate) fn create(env: &Arc<dyn Env>, path: PathBuf) -> Result<Self, Error> {
        let temporary = temporary_of(&path);
        Ok(Self {
            pages: PagesWriter::new(env.create_or_truncate(&temporary)?),
            env: env.clone(),
            path,
            temporary,
        })
    }

    /// Offset of the next byte.
    pub(crate) fn position(&self) -> u64 {
        self.pages.position()
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.pages.buffer().extend_from_slice(bytes);
        Ok(self.pages.flush_if_large()?)
    }

    /// Appends zeros up to a multiple of eight.
    pub(crate) fn align(&mut self) -> Result<(), Error> {
        self.pages.align();
        Ok(self.pages.flush_if_large()?)
    }

    /// Writes the rest and the tail, syncs the file, and renames it. The name is durable when the directory is synced.
    pub(crate) fn finish(self, fields: &[u8], magic: &Magic) -> Result<(), Error> {
        let mut tail = fields.to_vec();
        tail.extend_from_slice(&self.position().to_le_bytes());
        let len = u32::try_from(tail.len()).unwrap_or(u32::MAX);
        let crc = crc32(&tail);
        tail.extend_from_slice(&crc.to_le_bytes());
        tail.extend_from_slice(&len.to_le_bytes());
        tail.extend_from_slice(magic);
        self.pages.finish(&tail)?;
        self.env.rename(&self.temporary, &self.path)?;
        Ok(())
    }

    /// Removes the temporary file.
    pub(crate) fn abandon(self) {
        drop(self.pages);
        if let Err(error) = self.env.remove_file_if_any(&self.temporary) {
            tracing::warn!(%error, "cannot remove an unused file");
        }
    }
}

/// The name of an incomplete file.
pub(crate) fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

/// An open file.
pub(crate) struct PagedFile(Pages);

impl PagedFile {
    /// Opens a file, checks its tail, and returns the fields of the tail.
    pub(crate) fn open(env: &Arc<dyn Env>, path: &Path, magic: &Magic) -> Result<(Self, Vec<u8>), Error> {
        let file = match env.open_read(path) {
            Err(error) if error.is_not_found() => return Err(unusable(path, "it is missing")),
            other => other?,
        };
        file.advise(Access::Random);
        let (mut fields, tail_at) = read_tail(&*file, magic)?;
        let Some(length_at) = fields.len().checked_sub(8) else {
            return Err(unusable(path, "its tail is too short"));
        };
        let body_length = u64_at(&fields, length_at);
        if paged_length(body_length) != Some(tail_at) {
            return Err(unusable(path, "its length differs from that in its tail"));
        }
        fields.truncate(length_at);
        let pages = Pages::of(file, body_length);
        let pages = pages.ok_or_else(|| unusable(path, "its length differs from that in its tail"))?;
        Ok((Self(pages), fields))
    }

    /// Size of the whole file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.0.file_length()
    }

    /// Size of the body.
    pub(crate) fn body_length(&self) -> u64 {
        self.0.body_length()
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// `len` bytes of the body, from offset `at`.
    #[inline]
    pub(crate) fn bytes(&self, at: u64, len: usize) -> Result<PageBytes<'_>, ReadError> {
        self.0.bytes(at, len).map_err(|error| match error {
            ilion_pages::Error::Corrupt { offset, expected, .. } => self.corrupt(offset, expected),
            ilion_pages::Error::Env(error) => io(error),
        })
    }

    /// The error for damage at offset `at`.
    #[cold]
    pub(crate) fn corrupt(&self, at: u64, expected: &str) -> ReadError {
        ReadError::Corrupt {
            file: self.path().to_path_buf(),
            offset: at,
            expected: expected.to_owned(),
        }
    }
}

/// The tail without its last 16 bytes, and its offset.
fn read_tail(file: &dyn ReadFile, magic: &Magic) -> Result<(Vec<u8>, u64), Error> {
    let refused = |reason: &str| unusable(file.path(), reason);
    let end_at = file.size_bytes().checked_sub(END_LEN as u64);
    let end_at = end_at.ok_or_else(|| refused("it is too short"))?;
    let mut end = [0; END_LEN];
    file.read_exact_at(end_at, &mut end)?;
    if !end.ends_with(magic) {
        return Err(refused("it has another kind or version, or is incomplete"));
    }
    let len = usize::try_from(u64_at(&end[4..8], 0)).unwrap_or(usize::MAX);
    let tail_at = end_at.checked_sub(len as u64);
    let Some(tail_at) = tail_at.filter(|_| len <= TAIL_LEN_MAX) else {
        return Err(refused("its tail is longer than the file"));
    };
    let mut tail = vec![0; len];
    file.read_exact_at(tail_at, &mut tail)?;
    if crc32(&tail).to_le_bytes() != end[..4] {
        return Err(refused("its tail is damaged"));
    }
    Ok((tail, tail_at))
}

/// An error about a component that must be built again.
#[cold]
pub(crate) fn unusable(file: &Path, reason: &str) -> Error {
    Error::Unusable {
        file: file.to_path_buf(),
        reason: reason.to_owned(),
    }
}

/// An I/O error of a read.
#[cold]
pub(crate) fn io(error: ilion_env::Error) -> ReadError {
    ReadError::Io {
        action: error.action,
        path: error.path,
        source: error.source,
    }
}

#[cfg(test)]
pub(crate) mod hostile {
    //! Makes files with wrong bytes and right checksums.

    use super::*;

    /// Changes the body and the tail's fields of a file, and recomputes the checksums.
    pub(crate) fn rewrite(
        env: &Arc<dyn Env>,
        path: &Path,
        magic: &Magic,
        change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>),
    ) {
        let (file, mut fields) = PagedFile::open(env, path, magic).unwrap();
        let length = usize::try_from(file.body_length()).unwrap();
        let mut body = file.bytes(0, length).unwrap().to_vec();
        drop(file);
        change(&mut body, &mut fields);
        let mut writer = PagedWriter::create(env, path.to_path_buf()).unwrap();
        writer.append(&body).unwrap();
        writer.finish(&fields, magic).unwrap();
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;
    use ilion_pages::{APPEND_BYTES, PAGE_LEN};

    use super::*;

    const MAGIC: &Magic = b"ILTEST01";

    fn written(len: usize) -> (MemEnv, Arc<dyn Env>, PathBuf) {
        let mem = MemEnv::new(1);
        let env = mem.shared();
        let path = PathBuf::from("file.db");
        let mut writer = PagedWriter::create(&env, path.clone()).unwrap();
        for byte in 0..len {
            writer.append(&[byte as u8]).unwrap();
        }
        writer.finish(b"fields", MAGIC).unwrap();
        (mem, env, path)
    }

    #[test]
    fn what_was_written_is_read() {
        for len in [0, 1, PAGE_LEN - 1, PAGE_LEN, PAGE_LEN + 1, 3 * APPEND_BYTES + 5] {
            let (_, env, path) = written(len);
            let (file, fields) = PagedFile::open(&env, &path, MAGIC).unwrap();
            assert_eq!((&fields[..], file.body_length()), (&b"fields"[..], len as u64));
            let bytes = file.bytes(0, len).unwrap();
            assert!(bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8));
            assert!(file.bytes(len as u64, 1).is_err());
            assert!(file.bytes(u64::MAX, 2).is_err());
        }
    }

    #[test]
    fn every_damaged_byte_is_noticed() {
        let len = PAGE_LEN + 100;
        let (mem, env, path) = written(len);
        let size = env.file_size(&path).unwrap();
        for at in (0..size).step_by(7).chain(len as u64..size) {
            mem.corrupt_byte(&path, at, 0x10).unwrap();
            let whole = PagedFile::open(&env, &path, MAGIC).ok();
            let bytes = whole.and_then(|(file, _)| file.bytes(0, len).map(|bytes| bytes.to_vec()).ok());
            assert!(bytes.is_none(), "byte {at}");
            mem.corrupt_byte(&path, at, 0x10).unwrap();
        }
    }

    #[test]
    fn a_file_that_is_cut_off_or_absent_is_unusable() {
        let (_, env, path) = written(5000);
        let bytes = env.read_all(&path, 1 << 20).unwrap();
        for len in [0, 3, 16, 100, bytes.len() - 1] {
            let mut file = env.create_or_truncate(&path).unwrap();
            file.append(&bytes[..len]).unwrap();
            drop(file);
            let refused = PagedFile::open(&env, &path, MAGIC).map(drop);
            assert!(matches!(refused, Err(Error::Unusable { .. })), "{len}");
        }
        env.remove_file(&path).unwrap();
        let refused = PagedFile::open(&env, &path, MAGIC).map(drop);
        assert!(matches!(refused, Err(Error::Unusable { .. })));
    }
}
