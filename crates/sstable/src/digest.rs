//! Digest.crc32: the CRC-32 of the whole Data.db as stored, in decimal ASCII without a newline.

use std::path::Path;

use ilion_env::{Env, ReadFile};

use crate::{Component, Descriptor, Error, Result};

const READ_BYTES: usize = 256 << 10;

/// Decodes the component.
///
/// # Errors
/// Corrupt: not a decimal `u32`.
pub fn decode(bytes: &[u8], file: &Path) -> Result<u32> {
    let text = std::str::from_utf8(bytes).map(str::trim_end).unwrap_or_default();
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|_| is_decimal)
        .ok_or_else(|| Error::corrupt(file, 0, "a decimal CRC-32"))
}

/// The bytes of the component.
pub fn encode(digest: u32) -> Vec<u8> {
    digest.to_string().into_bytes()
}

/// Reads a whole file; returns its CRC-32 and its length in bytes.
pub(crate) fn crc_of(file: &dyn ReadFile, on_progress: &mut dyn FnMut(u64)) -> Result<(u32, u64)> {
    let mut buffer = vec![0; READ_BYTES];
    let (mut crc, mut offset) = (0, 0);
    loop {
        let count = file.read_at(offset, &mut buffer)?;
        if count == 0 {
            return Ok((crc, offset));
        }
        crc = ilion_codec::crc32_extend(crc, &buffer[..count]);
        offset += count as u64;
        on_progress(offset);
    }
}

/// Reads all of Data.db and compares it with the digest. Returns false if there is no digest.
///
/// # Errors
/// Corrupt if they differ.
pub fn verify(env: &dyn Env, descriptor: &Descriptor) -> Result<bool> {
    let path = descriptor.path(&Component::Digest);
    if !env.exists(&path) {
        return Ok(false);
    }
    let expected = decode(&env.read_all(&path, 64)?, &path)?;
    let data = env.open_read(&descriptor.path(&Component::Data))?;
    let (crc, _) = crc_of(&*data, &mut |_| {})?;
    if crc == expected {
        return Ok(true);
    }
    let reason = format!("bytes with the digest {expected}, not {crc}");
    Err(Error::corrupt(data.path(), 0, reason))
}
