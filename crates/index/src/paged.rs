//! Component files of attached indexes: a body in checked pages, then a tail that says what the file is.
//!
//! ```text
//! file := body  page_crc:u32 *  tail                 integers are little-endian, CRCs are CRC-32 (zlib)
//! tail := fields  body_length:u64  tail_crc:u32  tail_len:u32  magic:8
//! ```
//!
//! There is a CRC of each 4096 bytes of the body, the last page may be short. `tail_len` counts `fields` and `body_length`,
//! `tail_crc` is of the same bytes. A file is written beside its name (`.tmp`), synced, and given its name when it is whole:
//! so one that is being read, as memory, is never changed. The body is mapped; a page is read through the file and checked
//! when it is first touched, so that what the disk cannot give is an error and what it gives is counted.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_codec::crc32;
use ilion_env::{Access, Env, FileMap, ReadFile, WriteFile};
use ilion_rows::ReadError;

use crate::Error;

pub(crate) const PAGE_LEN: usize = 4096;
const CRC_LEN: usize = 4;
/// CRC, length and magic.
const END_LEN: usize = 16;
/// More than any tail has.
const TAIL_LEN_MAX: usize = 1 << 20;
/// Bytes that are gathered before they go to the file.
const APPEND_BYTES: usize = 64 * PAGE_LEN;

/// What a file begins to say of itself at its very end.
pub(crate) type Magic = [u8; 8];

/// A file being written. Without [`PagedWriter::finish`] it leaves one with a temporary name.
pub(crate) struct PagedWriter {
    env: Arc<dyn Env>,
    file: Box<dyn WriteFile>,
    path: PathBuf,
    temporary: PathBuf,
    buffer: Vec<u8>,
    flushed: u64,
    crcs: Vec<u8>,
}

impl PagedWriter {
    pub(crate) fn create(env: &Arc<dyn Env>, path: PathBuf) -> Result<Self, Error> {
        let temporary = temporary_of(&path);
        Ok(Self {
            file: env.create_or_truncate(&temporary)?,
            env: env.clone(),
            path,
            temporary,
            buffer: Vec::new(),
            flushed: 0,
            crcs: Vec::new(),
        })
    }

    /// Where the next byte goes.
    pub(crate) fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        if self.buffer.len() < APPEND_BYTES {
            return Ok(());
        }
        self.write(self.buffer.len() / PAGE_LEN * PAGE_LEN)
    }

    /// Zeros up to a multiple of eight.
    pub(crate) fn align(&mut self) -> Result<(), Error> {
        let zeros = self.position().wrapping_neg() % 8;
        self.append(&[0; 8][..usize::try_from(zeros).unwrap_or(0)])
    }

    fn write(&mut self, len: usize) -> Result<(), Error> {
        for page in self.buffer[..len].chunks(PAGE_LEN) {
            self.crcs.extend_from_slice(&crc32(page).to_le_bytes());
        }
        self.file.append(&self.buffer[..len])?;
        self.buffer.drain(..len);
        self.flushed += len as u64;
        Ok(())
    }

    /// Writes what is left and the tail, makes it durable and gives the file its name, durable when the directory is synced.
    pub(crate) fn finish(mut self, fields: &[u8], magic: &Magic) -> Result<(), Error> {
        self.write(self.buffer.len())?;
        let mut tail = fields.to_vec();
        tail.extend_from_slice(&self.flushed.to_le_bytes());
        let len = u32::try_from(tail.len()).unwrap_or(u32::MAX);
        let crc = crc32(&tail);
        tail.extend_from_slice(&crc.to_le_bytes());
        tail.extend_from_slice(&len.to_le_bytes());
        tail.extend_from_slice(magic);
        self.file.append(&self.crcs)?;
        self.file.append(&tail)?;
        self.file.sync()?;
        self.env.rename(&self.temporary, &self.path)?;
        Ok(())
    }

    /// Removes what was written.
    pub(crate) fn abandon(self) {
        drop(self.file);
        if let Err(error) = self.env.remove_file(&self.temporary) {
            tracing::warn!(%error, "a file that nobody needs stays");
        }
    }
}

/// The name of a file that is not whole.
pub(crate) fn temporary_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".tmp");
    path.with_file_name(name)
}

/// A file that is there.
pub(crate) struct PagedFile {
    file: Arc<dyn ReadFile>,
    map: FileMap,
    body_length: usize,
    /// A bit for each page that passed.
    checked: Box<[AtomicU64]>,
}

impl PagedFile {
    /// Opens it and gives the fields of its tail, checked.
    pub(crate) fn open(env: &Arc<dyn Env>, path: &Path, magic: &Magic) -> Result<(Self, Vec<u8>), Error> {
        let file = match env.open_read(path) {
            Err(error) if error.is_not_found() => return Err(unusable(path, "it is not there")),
            other => other?,
        };
        file.advise(Access::Random);
        let (mut fields, tail_at) = read_tail(&*file, magic)?;
        let length_at = fields.len().checked_sub(8);
        let body_length = length_at.and_then(|at| usize::try_from(u64_at(&fields, at)).ok());
        let pages = body_length.map(|len| len.div_ceil(PAGE_LEN));
        let end = pages
            .and_then(|pages| pages.checked_mul(CRC_LEN))
            .zip(body_length)
            .and_then(|(crcs, body)| crcs.checked_add(body));
        let (Some(pages), Some(body_length)) = (pages, body_length) else {
            return Err(unusable(path, "its tail is too short"));
        };
        if end.map(|end| end as u64) != Some(tail_at) {
            return Err(unusable(path, "its length is not what its tail says"));
        }
        fields.truncate(fields.len() - 8);
        let map = file.map()?;
        if map.len() as u64 != file.size_bytes() {
            return Err(unusable(path, "its length changed"));
        }
        let paged = Self {
            file,
            map,
            body_length,
            checked: (0..pages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        };
        Ok((paged, fields))
    }

    /// Bytes of the whole file.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// Bytes of the body.
    pub(crate) fn body_length(&self) -> u64 {
        self.body_length as u64
    }

    pub(crate) fn path(&self) -> &Path {
        self.file.path()
    }

    /// `len` bytes of the body from `at` on.
    #[inline]
    pub(crate) fn bytes(&self, at: u64, len: usize) -> Result<&[u8], ReadError> {
        let start = usize::try_from(at).unwrap_or(usize::MAX);
        let end = start.checked_add(len).filter(|end| *end <= self.body_length);
        let Some(end) = end else {
            return Err(self.corrupt(at, "a place in the body"));
        };
        for page in start / PAGE_LEN..end.div_ceil(PAGE_LEN) {
            if self.checked[page / 64].load(Relaxed) >> (page % 64) & 1 == 0 {
                self.check(page)?;
            }
        }
        Ok(&self.map[start..end])
    }

    #[cold]
    fn check(&self, page: usize) -> Result<(), ReadError> {
        let mut buffer = [0; PAGE_LEN];
        let start = page * PAGE_LEN;
        let bytes = &mut buffer[..PAGE_LEN.min(self.body_length - start)];
        self.file.read_exact_at(start as u64, bytes).map_err(io)?;
        let crc_at = self.body_length + page * CRC_LEN;
        if crc32(bytes).to_le_bytes() != self.map[crc_at..crc_at + CRC_LEN] {
            return Err(self.corrupt(start as u64, "a page with the CRC that the file has for it"));
        }
        self.checked[page / 64].fetch_or(1 << (page % 64), Relaxed);
        Ok(())
    }

    /// Damage at `at`.
    #[cold]
    pub(crate) fn corrupt(&self, at: u64, expected: &str) -> ReadError {
        ReadError::Corrupt {
            file: self.path().to_path_buf(),
            offset: at,
            expected: expected.to_owned(),
        }
    }
}

/// The tail before its last 16 bytes, and where it starts.
fn read_tail(file: &dyn ReadFile, magic: &Magic) -> Result<(Vec<u8>, u64), Error> {
    let refused = |reason: &str| unusable(file.path(), reason);
    let end_at = file.size_bytes().checked_sub(END_LEN as u64);
    let end_at = end_at.ok_or_else(|| refused("it is too short"))?;
    let mut end = [0; END_LEN];
    file.read_exact_at(end_at, &mut end)?;
    if !end.ends_with(magic) {
        return Err(refused("it is of another kind or version, or not whole"));
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

/// A component that has to be made again.
#[cold]
pub(crate) fn unusable(file: &Path, reason: &str) -> Error {
    Error::Unusable {
        file: file.to_path_buf(),
        reason: reason.to_owned(),
    }
}

/// The operating system refused to read.
#[cold]
pub(crate) fn io(error: ilion_env::Error) -> ReadError {
    ReadError::Io {
        action: error.action,
        path: error.path,
        source: error.source,
    }
}

/// The number at `at`; zeros beyond the end.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    if let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        return u64::from_le_bytes(*chunk);
    }
    let mut padded = [0; 8];
    let rest = bytes.get(at..).unwrap_or_default();
    padded[..rest.len()].copy_from_slice(rest);
    u64::from_le_bytes(padded)
}

#[cfg(test)]
pub(crate) mod hostile {
    //! Files whose checksums are right and whose bytes are not.

    use super::*;

    /// Changes the body and the tail's fields of a file and makes the checksums right again.
    pub(crate) fn rewrite(
        env: &Arc<dyn Env>,
        path: &Path,
        magic: &Magic,
        change: impl FnOnce(&mut Vec<u8>, &mut Vec<u8>),
    ) {
        let (file, mut fields) = PagedFile::open(env, path, magic).unwrap();
        let mut body = file.bytes(0, file.body_length).unwrap().to_vec();
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
            let bytes = whole.and_then(|(file, _)| file.bytes(0, len).map(<[u8]>::to_vec).ok());
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
