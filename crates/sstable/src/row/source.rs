//! The inputs of decoders: a stream over a file, or bytes in memory.

use std::path::Path;

use bytes::Bytes;
use ilion_codec::{Error as Malformed, Reader};

use super::rest::Rest;
use crate::error::Step;
use crate::{ChunkReader, DataStream, Error};

/// A sequence of bytes; errors name file and offset.
pub(crate) trait ByteSource {
    /// The next byte.
    fn u8(&mut self) -> Step<u8>;
    /// An unsigned vint.
    fn uvint(&mut self) -> Step<u64>;
    /// The next `len` bytes, copied only if they lie in several chunks.
    fn take(&mut self, len: usize) -> Step<Bytes>;
    /// An error about damage at the position.
    fn corrupt(&self, expected: &'static str) -> Box<Error>;

    /// The next `N` bytes.
    fn array<const N: usize>(&mut self) -> Step<[u8; N]>;

    /// An unsigned vint that is the length of the bytes behind it.
    #[inline]
    fn len(&mut self) -> Step<usize> {
        let len = self.uvint()?;
        usize::try_from(len).map_err(|_| self.corrupt("a length within the file"))
    }

    /// Length and bytes.
    #[inline]
    fn bytes_vint(&mut self) -> Step<Bytes> {
        let len = self.len()?;
        self.take(len)
    }

    /// A signed (zigzag) vint.
    fn svint(&mut self) -> Step<i64> {
        let zigzag = self.uvint()?;
        Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// The low 32 bits of an unsigned vint that carries a sign-extended `i32`.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the encoding is a sign-extended i32"
    )]
    fn uvint32(&mut self) -> Step<u32> {
        Ok(self.uvint()? as u32)
    }
}

/// The body of a row; values may be skipped.
pub(in crate::row) trait BodySource: ByteSource {
    /// Number of bytes left of the body, or of the range that is decoded.
    fn remaining(&self) -> u64;

    /// Takes the next value.
    #[inline]
    fn take_value(&mut self, len: usize) -> Step<Bytes> {
        self.take(len)
    }

    /// Skips the next value.
    fn skip_value(&mut self, len: usize) -> Step<()>;
}

impl ByteSource for DataStream {
    #[inline]
    fn u8(&mut self) -> Step<u8> {
        Self::u8(self)
    }

    #[inline]
    fn uvint(&mut self) -> Step<u64> {
        Self::uvint(self)
    }

    #[inline]
    fn take(&mut self, len: usize) -> Step<Bytes> {
        Self::take(self, len)
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        Box::new(Self::corrupt(self, expected))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        self.require(N)?;
        let Some(array) = self.rest().first_chunk::<N>().copied() else {
            return Err(ByteSource::corrupt(self, "more bytes"));
        };
        self.consume(N);
        Ok(array)
    }
}

/// Bytes of a file, in memory.
pub(crate) struct Piece<'f> {
    bytes: Bytes,
    offset: usize,
    /// Position of the first byte of `bytes` in the file.
    base: u64,
    file: &'f ChunkReader,
}

impl<'f> Piece<'f> {
    pub(crate) fn new(bytes: Bytes, base: u64, file: &'f ChunkReader) -> Self {
        Self {
            bytes,
            offset: 0,
            base,
            file,
        }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// Offset of the position in the bytes.
    pub(in crate::row) fn offset(&self) -> usize {
        self.offset
    }

    /// The rest of the bytes.
    fn stretch(&self) -> Stretch<'_> {
        Stretch {
            rest: Rest(&self.bytes[self.offset..]),
            window: &self.bytes,
            end: self.bytes.len(),
            base: self.base,
            file: self.file,
        }
    }

    /// Lets `take` consume the rest of the bytes.
    #[inline]
    fn taking<T>(&mut self, take: impl FnOnce(&mut Stretch<'_>) -> Step<T>) -> Step<T> {
        let mut stretch = self.stretch();
        let taken = take(&mut stretch)?;
        self.offset = stretch.offset();
        Ok(taken)
    }
}

impl ByteSource for Piece<'_> {
    fn u8(&mut self) -> Step<u8> {
        self.taking(|stretch| stretch.u8())
    }

    fn uvint(&mut self) -> Step<u64> {
        self.taking(|stretch| stretch.uvint())
    }

    fn take(&mut self, len: usize) -> Step<Bytes> {
        self.taking(|stretch| stretch.take(len))
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        self.stretch().corrupt(expected)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        self.taking(|stretch| stretch.array())
    }
}

/// Bytes that are in no file of an SSTable, for example in a saved cache. Errors name no file: the caller reports its own.
pub(crate) struct Unplaced<'r, 'b>(pub(crate) &'r mut Reader<'b>);

impl Unplaced<'_, '_> {
    fn damage(&self, error: &Malformed) -> Box<Error> {
        Box::new(Error::in_file(Path::new(""), 0, error))
    }
}

impl ByteSource for Unplaced<'_, '_> {
    fn u8(&mut self) -> Step<u8> {
        self.0.u8().map_err(|error| self.damage(&error))
    }

    fn uvint(&mut self) -> Step<u64> {
        self.0.uvint().map_err(|error| self.damage(&error))
    }

    fn take(&mut self, len: usize) -> Step<Bytes> {
        let taken = self.0.take(len).map(Bytes::copy_from_slice);
        taken.map_err(|error| self.damage(&error))
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        self.damage(&self.0.error(expected))
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        let taken = self.0.take(N).map_err(|error| self.damage(&error))?;
        taken
            .first_chunk()
            .copied()
            .ok_or_else(|| self.corrupt("more bytes"))
    }
}

/// A range of a stream's window. Bytes are neither counted nor copied before they are taken.
#[derive(Clone)]
pub(crate) struct Stretch<'f> {
    /// The rest of the range.
    rest: Rest<'f>,
    window: &'f Bytes,
    /// End of the range in the window.
    end: usize,
    /// Position of the window's first byte in the file.
    base: u64,
    file: &'f ChunkReader,
}

impl<'f> Stretch<'f> {
    /// The next `len` bytes of the stream, which does not move.
    ///
    /// # Errors
    /// Corrupt: the data ends before, or a chunk is damaged.
    #[inline]
    pub(crate) fn ahead(stream: &'f mut DataStream, len: usize) -> Step<Self> {
        stream.require(len)?;
        let stream: &'f DataStream = stream;
        let (window, offset) = stream.window();
        let end = offset + len;
        Ok(Self {
            rest: Rest(&window[offset..end]),
            window,
            end,
            base: stream.position().saturating_sub(offset as u64),
            file: stream.chunks(),
        })
    }

    /// The rest of the range.
    #[inline]
    pub(in crate::row) fn rest(&self) -> Rest<'f> {
        self.rest
    }

    /// This range, at the position where `rest` begins.
    #[inline]
    pub(in crate::row) fn going_on(&self, rest: Rest<'f>) -> Self {
        Self { rest, ..*self }
    }

    /// The `len` bytes before `left`, the rest after them.
    #[inline]
    pub(in crate::row) fn slice_before(&self, left: Rest<'_>, len: usize) -> Bytes {
        let end = self.end - left.0.len();
        self.window.slice(end - len..end)
    }

    /// The rest of the stream's window.
    #[inline]
    pub(in crate::row) fn at_hand(stream: &'f DataStream) -> Self {
        let (window, offset) = stream.window();
        Self {
            rest: Rest(stream.rest()),
            window,
            end: window.len(),
            base: stream.position().saturating_sub(offset as u64),
            file: stream.chunks(),
        }
    }

    /// The next `len` bytes as a range of their own; `None` if there are fewer.
    #[inline]
    pub(in crate::row) fn next_stretch(&mut self, len: usize) -> Option<Self> {
        let next = Rest(self.rest.take(len)?);
        Some(Self {
            rest: next,
            end: self.offset(),
            ..*self
        })
    }

    /// Offset of the position in the window.
    #[inline]
    pub(in crate::row) fn offset(&self) -> usize {
        self.end - self.rest.0.len()
    }

    /// Moves to the position where `rest` begins.
    #[inline]
    pub(in crate::row) fn go_to(&mut self, rest: Rest<'f>) {
        self.rest = rest;
    }
}

impl ByteSource for Stretch<'_> {
    #[inline]
    fn u8(&mut self) -> Step<u8> {
        match self.rest.u8() {
            Some(byte) => Ok(byte),
            None => Err(self.corrupt("a byte")),
        }
    }

    #[inline]
    fn uvint(&mut self) -> Step<u64> {
        match self.rest.uvint() {
            Some(value) => Ok(value),
            None => Err(self.corrupt("an unsigned vint")),
        }
    }

    #[inline]
    fn take(&mut self, len: usize) -> Step<Bytes> {
        match self.rest.take(len) {
            Some(_) => Ok(self.slice_before(self.rest, len)),
            None => Err(self.corrupt("a length within the enclosing field")),
        }
    }

    #[cold]
    #[inline(never)]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        let at = self.base.saturating_add(self.offset() as u64);
        Box::new(self.file.corrupt(at, expected))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        match self.rest.take(N).and_then(|taken| taken.first_chunk()) {
            Some(array) => Ok(*array),
            None => Err(self.corrupt("more bytes")),
        }
    }
}

impl BodySource for Stretch<'_> {
    #[inline]
    fn remaining(&self) -> u64 {
        self.rest.0.len() as u64
    }

    #[inline]
    fn skip_value(&mut self, len: usize) -> Step<()> {
        match self.rest.take(len) {
            Some(_) => Ok(()),
            None => Err(self.corrupt("a length within the enclosing field")),
        }
    }
}

/// A range of a stream that need not be in the window: skipped bytes are not read.
pub(in crate::row) struct Within<'s> {
    stream: &'s mut DataStream,
    end: u64,
    /// True if taken bytes must not be slices of the stream's windows.
    is_apart: bool,
}

impl<'s> Within<'s> {
    /// The range from the stream's position to `end`.
    pub(in crate::row) fn new(stream: &'s mut DataStream, end: u64) -> Self {
        Self {
            stream,
            end,
            is_apart: false,
        }
    }

    /// As [`Self::new`], for a row that is too large for memory.
    pub(in crate::row) fn apart(stream: &'s mut DataStream, end: u64) -> Self {
        Self {
            is_apart: true,
            ..Self::new(stream, end)
        }
    }

    fn check(&self, len: usize) -> Step<()> {
        if len as u64 > BodySource::remaining(self) {
            return Err(self.corrupt("a length within the enclosing field"));
        }
        Ok(())
    }
}

impl ByteSource for Within<'_> {
    fn u8(&mut self) -> Step<u8> {
        self.stream.u8()
    }

    fn uvint(&mut self) -> Step<u64> {
        self.stream.uvint()
    }

    fn take(&mut self, len: usize) -> Step<Bytes> {
        self.check(len)?;
        match self.is_apart {
            true => self.stream.take_apart(len),
            false => self.stream.take(len),
        }
    }

    #[cold]
    fn corrupt(&self, expected: &'static str) -> Box<Error> {
        ByteSource::corrupt(self.stream, expected)
    }

    fn array<const N: usize>(&mut self) -> Step<[u8; N]> {
        self.stream.array()
    }
}

impl BodySource for Within<'_> {
    fn remaining(&self) -> u64 {
        self.end.saturating_sub(self.stream.position())
    }

    fn skip_value(&mut self, len: usize) -> Step<()> {
        self.check(len)?;
        self.stream.skip(len as u64)
    }
}
