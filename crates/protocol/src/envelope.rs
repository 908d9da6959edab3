//! Writes envelopes: the header is appended first, then the body; the length is set at the end.

use crate::compression::Compression;
use crate::error::Error;
use crate::header::{Flags, HEADER_BYTES, Header, set_length};
use crate::version::Version;

/// The largest body of the protocol.
pub(crate) const BODY_MAX: usize = 256 << 20;

/// Smaller bodies are not compressed: each envelope has its own flag for compression.
const COMPRESSED_MIN_BYTES: usize = 128;

/// An envelope in a buffer whose length is not set yet.
#[derive(Clone, Copy, Debug)]
#[must_use = "an envelope without its length is garbage: finish or abandon it"]
pub struct EnvelopeStart {
    offset: usize,
}

impl EnvelopeStart {
    /// Appends a header. The body is everything that is appended to `out` until `finish`.
    pub fn begin(out: &mut Vec<u8>, header: Header) -> Self {
        let offset = out.len();
        header.encode(out);
        Self { offset }
    }

    /// Compresses the body if that makes it smaller (v3 and v4 only: v5 compresses segments), and sets the length.
    ///
    /// # Errors
    /// If the body exceeds the 256 MiB of the protocol; the envelope is then removed from `out`.
    pub fn finish(self, out: &mut Vec<u8>, compression: Option<Compression>) -> Result<(), Error> {
        let size = self.body_bytes(out, 0)?;
        if let Some(compression) = compression
            && size >= COMPRESSED_MIN_BYTES
            && out[self.offset] & 0x7f < Version::V5.number()
        {
            self.compress(out, compression)?;
        }
        self.finish_before(out, 0)
    }

    /// Sets the length of an envelope whose last `more` bytes are not in the buffer.
    ///
    /// # Errors
    /// If the body exceeds the 256 MiB of the protocol; the envelope is then removed from `out`.
    pub fn finish_before(self, out: &mut Vec<u8>, more: usize) -> Result<(), Error> {
        let size = self.body_bytes(out, more)?;
        #[expect(clippy::cast_possible_truncation, reason = "checked against BODY_MAX")]
        set_length(&mut out[self.offset..], size as u32);
        Ok(())
    }

    /// Length of the body with `more` bytes. Removes the envelope if that is too much.
    fn body_bytes(&self, out: &mut Vec<u8>, more: usize) -> Result<usize, Error> {
        let size = (out.len() - self.offset - HEADER_BYTES).saturating_add(more);
        if size > BODY_MAX {
            self.abandon(out);
            return Err(Error::TooLarge {
                what: "the body of an envelope",
                size,
                max: BODY_MAX,
            });
        }
        Ok(size)
    }

    /// Removes the envelope from the buffer.
    pub fn abandon(self, out: &mut Vec<u8>) {
        out.truncate(self.offset);
    }

    fn compress(self, out: &mut Vec<u8>, compression: Compression) -> Result<(), Error> {
        let body_at = self.offset + HEADER_BYTES;
        let compressed = compression.compress_body(&out[body_at..])?;
        if compressed.len() < out.len() - body_at {
            out.truncate(body_at);
            out.extend_from_slice(&compressed);
            out[self.offset + 1] |= Flags::COMPRESSED.0;
        }
        Ok(())
    }
}

/// Appends a whole envelope with this body.
///
/// # Errors
/// If the body exceeds the 256 MiB of the protocol; `out` is then as it was.
pub fn encode_frame(
    out: &mut Vec<u8>,
    header: Header,
    body: &[u8],
    compression: Option<Compression>,
) -> Result<(), Error> {
    let start = EnvelopeStart::begin(out, header);
    out.extend_from_slice(body);
    start.finish(out, compression)
}
