//! Where decoders take bytes from: a stream over a file, or a piece of it at hand.

use std::borrow::Borrow;

use bytes::Bytes;
use ilion_codec::Reader;

use crate::{ChunkReader, DataStream, Error, Result};

/// Bytes that are taken one after another; errors name file and offset.
pub(crate) trait ByteSource {
    /// The next byte.
    fn u8(&mut self) -> Result<u8>;
    /// An unsigned vint.
    fn uvint(&mut self) -> Result<u64>;
    /// The next `len` bytes, copied only where they lie in several chunks.
    fn take(&mut self, len: usize) -> Result<Bytes>;
    /// Damage at the position.
    fn corrupt(&self, expected: &'static str) -> Error;

    /// The next `N` bytes.
    fn array<const N: usize>(&mut self) -> Result<[u8; N]>;

    /// An unsigned vint that is the length of what follows.
    fn len(&mut self) -> Result<usize> {
        let len = self.uvint()?;
        usize::try_from(len).map_err(|_| self.corrupt("a length within the file"))
    }

    /// Length and bytes.
    fn bytes_vint(&mut self) -> Result<Bytes> {
        let len = self.len()?;
        self.take(len)
    }

    /// A signed (zigzag) vint.
    fn svint(&mut self) -> Result<i64> {
        let zigzag = self.uvint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// The low 32 bits of an unsigned vint that carries a sign-extended `i32`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the encoding is a sign-extended i32"
    )]
    fn uvint32(&mut self) -> Result<u32> {
        Ok(self.uvint()? as u32)
    }
}

/// The unsigned vint at the start of `bytes`, and its length.
#[inline]
pub(crate) fn read_uvint(bytes: &[u8]) -> Option<(u64, usize)> {
    match *bytes {
        [first @ ..0x80, ..] => return Some((u64::from(first), 1)),
        [first @ 0x80..0xC0, second, ..] => {
            return Some((u64::from(first & 0x3F) << 8 | u64::from(second), 2));
        }
        _ => {}
    }
    let mut input = Reader::new(bytes);
    let value = input.uvint().ok()?;
    Some((value, input.offset()))
}

/// Bytes of the body of a row: values may be passed over.
pub(super) trait BodySource: ByteSource {
    /// Bytes that the body, or what of it is looked at, still has.
    fn remaining(&self) -> u64;

    /// The value that comes next.
    fn take_value(&mut self, len: usize) -> Result<Bytes> {
        self.take(len)
    }

    /// Moves past the value that comes next.
    fn skip_value(&mut self, len: usize) -> Result<()>;
}

impl ByteSource for DataStream {
    #[inline]
    fn u8(&mut self) -> Result<u8> {
        Self::u8(self)
    }

    #[inline]
    fn uvint(&mut self) -> Result<u64> {
        Self::uvint(self)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<Bytes> {
        Self::take(self, len)
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Error {
        Self::corrupt(self, expected)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.require(N)?;
        let Some(array) = self.rest().first_chunk::<N>().copied() else {
            return Err(Self::corrupt(self, "more bytes"));
        };
        self.consume(N);
        Ok(array)
    }
}

/// Bytes of a file that are at hand: their own, or a stretch of a stream's window, of which nothing is counted or copied before it
/// is taken.
pub(crate) struct Piece<'f, B = Bytes> {
    bytes: B,
    offset: usize,
    end: usize,
    /// Position of the first byte of `bytes` in the file.
    base: u64,
    file: &'f ChunkReader,
}

/// A stretch of a stream's window.
pub(crate) type Stretch<'f> = Piece<'f, &'f Bytes>;

impl<'f> Piece<'f> {
    pub(crate) fn new(bytes: Bytes, base: u64, file: &'f ChunkReader) -> Self {
        Self {
            offset: 0,
            end: bytes.len(),
            bytes,
            base,
            file,
        }
    }
}

impl<'f> Stretch<'f> {
    /// The next `len` bytes of the stream, which stays where it is.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub(crate) fn ahead(stream: &'f mut DataStream, len: usize) -> Result<Self> {
        stream.require(len)?;
        let stream: &'f DataStream = stream;
        let (window, offset) = stream.window();
        Ok(Self {
            bytes: window,
            offset,
            end: offset + len,
            base: stream.position().saturating_sub(offset as u64),
            file: stream.chunks(),
        })
    }
}

impl<B: Borrow<Bytes>> Piece<'_, B> {
    #[inline]
    pub(crate) fn remaining(&self) -> usize {
        self.end - self.offset
    }

    /// Where it stands, in its bytes.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    #[inline]
    fn rest(&self) -> &[u8] {
        &self.bytes.borrow()[self.offset..self.end]
    }
}

impl<B: Borrow<Bytes>> ByteSource for Piece<'_, B> {
    #[inline]
    fn u8(&mut self) -> Result<u8> {
        match self.rest().first().copied() {
            Some(byte) => {
                self.offset += 1;
                Ok(byte)
            }
            None => Err(self.corrupt("a byte")),
        }
    }

    #[inline]
    fn uvint(&mut self) -> Result<u64> {
        match read_uvint(self.rest()) {
            Some((value, len)) => {
                self.offset += len;
                Ok(value)
            }
            None => Err(self.corrupt("an unsigned vint")),
        }
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<Bytes> {
        if len > self.remaining() {
            return Err(self.corrupt("a length within what holds it"));
        }
        let taken = self.bytes.borrow().slice(self.offset..self.offset + len);
        self.offset += len;
        Ok(taken)
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Error {
        self.file
            .corrupt(self.base.saturating_add(self.offset as u64), expected)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        match self.rest().first_chunk::<N>().copied() {
            Some(array) => {
                self.offset += N;
                Ok(array)
            }
            None => Err(self.corrupt("more bytes")),
        }
    }
}

impl<B: Borrow<Bytes>> BodySource for Piece<'_, B> {
    #[inline]
    fn remaining(&self) -> u64 {
        Self::remaining(self) as u64
    }

    #[inline]
    fn skip_value(&mut self, len: usize) -> Result<()> {
        if len > Self::remaining(self) {
            return Err(self.corrupt("a length within what holds it"));
        }
        self.offset += len;
        Ok(())
    }
}

/// A stretch of a stream that is walked through without all of it being at hand: what is passed over is not read.
pub(super) struct Within<'s> {
    stream: &'s mut DataStream,
    end: u64,
}

impl<'s> Within<'s> {
    /// From where the stream stands up to `end`.
    pub(super) fn new(stream: &'s mut DataStream, end: u64) -> Self {
        Self { stream, end }
    }

    fn check(&self, len: usize) -> Result<()> {
        if len as u64 > BodySource::remaining(self) {
            return Err(self.corrupt("a length within what holds it"));
        }
        Ok(())
    }
}

impl ByteSource for Within<'_> {
    fn u8(&mut self) -> Result<u8> {
        self.stream.u8()
    }

    fn uvint(&mut self) -> Result<u64> {
        self.stream.uvint()
    }

    fn take(&mut self, len: usize) -> Result<Bytes> {
        self.check(len)?;
        self.stream.take(len)
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Error {
        self.stream.corrupt(expected)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.stream.array()
    }
}

impl BodySource for Within<'_> {
    fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.stream.position())
    }

    fn skip_value(&mut self, len: usize) -> Result<()> {
        self.check(len)?;
        self.stream.skip(len as u64)
    }
}
