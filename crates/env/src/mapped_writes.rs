//! Writes to a file through a mapping of a part of it: without a system call each.
//!
//! As with write(2), the kernel has the bytes at once: they survive the process, and a sync makes them durable. Space must be
//! reserved before, since a full disk could not be reported any more. If another process truncates the file, the next write
//! fails (unless that happens during the copy: then the kernel kills the process).

use std::fs::File;
use std::io;
use std::ptr;

use memmap2::{Advice, MmapOptions, MmapRaw};
use rustix::fs::SeekFrom;

/// Size of the mapped window, which counts as memory of the process.
const WINDOW_BYTES: u64 = 1 << 20;

/// The current window.
#[derive(Debug)]
pub(crate) struct MappedWrites {
    /// Bytes from the start of the file for which space is reserved.
    reserved_bytes: u64,
    /// Offset of the window, a multiple of [`WINDOW_BYTES`].
    start: u64,
    window: Option<MmapRaw>,
}

impl MappedWrites {
    pub(crate) fn new(reserved_bytes: u64) -> Self {
        Self {
            reserved_bytes,
            start: 0,
            window: None,
        }
    }

    /// Fails if the file was truncated: bytes beyond its end cannot be written through memory, and the bytes that were there
    /// are lost.
    pub(crate) fn check_not_cut(&self, file: &File) -> io::Result<()> {
        // The cheapest way to get the size. The file's position is not used.
        let size = rustix::fs::seek(file, SeekFrom::End(0))?;
        if size >= self.reserved_bytes {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "another process truncated it to {size} bytes; its data is still in memtables: flush all tables, then restart"
        )))
    }

    /// True if these bytes lie in the reserved space.
    pub(crate) fn reach(&self, offset: u64, len: usize) -> bool {
        let end = offset.checked_add(len as u64);
        end.is_some_and(|end| end <= self.reserved_bytes)
    }

    /// Writes bytes. Requires: they lie in the reserved space, the file is not truncated, and only this value writes the file.
    pub(crate) fn write(&mut self, file: &File, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let start = offset / WINDOW_BYTES * WINDOW_BYTES;
            let window = self.window_at(file, start)?;
            let within = usize::try_from(offset - start).unwrap_or(usize::MAX);
            let count = bytes.len().min(window.len().saturating_sub(within));
            #[expect(unsafe_code, reason = "memory maps cannot be had without")]
            // Safety: `within + count` is at most the length of the map, and no reference to the map exists.
            unsafe {
                ptr::copy_nonoverlapping(bytes.as_ptr(), window.as_mut_ptr().add(within), count);
            }
            offset += count as u64;
            bytes = &bytes[count..];
        }
        Ok(())
    }

    fn window_at(&mut self, file: &File, start: u64) -> io::Result<&MmapRaw> {
        let known = self.window.take_if(|_| self.start == start);
        let window = match known {
            Some(window) => window,
            None => {
                let len = WINDOW_BYTES.min(self.reserved_bytes - start);
                let len = usize::try_from(len).map_err(io::Error::other)?;
                let window = MmapOptions::new().offset(start).len(len).map_raw(file)?;
                // Otherwise the first write to a page waits for as many pages of zeros as the device is set to read ahead. 8 MiB took 24 ms.
                let _ = window.advise(Advice::Random);
                window
            }
        };
        self.start = start;
        Ok(self.window.insert(window))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    #[test]
    fn what_is_written_by_memory_is_read_from_the_file() {
        let file = tempfile::tempfile().unwrap();
        let reserved = 2 * WINDOW_BYTES + 1000;
        file.set_len(reserved).unwrap();
        let mut writes = MappedWrites::new(reserved);
        let mut expected = vec![0; usize::try_from(reserved).unwrap()];
        for (offset, len, byte) in [
            (0, 10, 1),
            (WINDOW_BYTES - 5, 12, 2),
            (10, 20, 3),
            (WINDOW_BYTES + 7, usize::try_from(WINDOW_BYTES).unwrap() + 993, 4),
        ] {
            assert!(writes.reach(offset, len));
            writes.write(&file, offset, &vec![byte; len]).unwrap();
            let at = usize::try_from(offset).unwrap();
            expected[at..at + len].fill(byte);
        }
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == expected);
        assert!(!writes.reach(reserved - 5, 6) && !writes.reach(u64::MAX, 1));
        writes.check_not_cut(&file).unwrap();
        for size in [reserved - 1, 0] {
            file.set_len(size).unwrap();
            let error = writes.check_not_cut(&file).unwrap_err().to_string();
            assert!(error.contains("flush all tables, then restart"), "{error}");
        }
    }
}
