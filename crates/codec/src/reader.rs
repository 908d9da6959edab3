//! A bounds-checked cursor over bytes from disk or network.
//!
//! Numbers are big-endian unless the name says `le`. No method panics on any input. No method allocates memory for a length in
//! the input before that many bytes are known to be there.

use crate::vint;

/// The bytes break the format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {offset}: expected {expected}")]
pub struct Error {
    /// Offset of the reader in the slice.
    pub offset: usize,
    /// What the format requires at this offset.
    pub expected: &'static str,
}

/// A cursor over a byte slice.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

macro_rules! fixed {
    ($($(#[$doc:meta])* $name:ident: $ty:ty, $from:ident, $expected:literal;)*) => {$(
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$ty, Error> {
            Ok(<$ty>::$from(self.array($expected)?))
        }
    )*};
}

impl<'a> Reader<'a> {
    /// A reader at the first byte of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Bytes consumed so far.
    #[inline]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Bytes not yet consumed.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// True when every byte was consumed.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.offset == self.bytes.len()
    }

    /// The bytes not yet consumed, without consuming them.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.offset..]
    }

    /// An error at the current offset.
    #[cold]
    pub fn error(&self, expected: &'static str) -> Error {
        Error {
            offset: self.offset,
            expected,
        }
    }

    #[inline]
    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], Error> {
        match self.rest().first_chunk::<N>() {
            Some(chunk) => {
                self.offset += N;
                Ok(*chunk)
            }
            None => Err(self.error(expected)),
        }
    }

    /// The next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], Error> {
        match self.rest().get(..len) {
            Some(slice) => {
                self.offset += len;
                Ok(slice)
            }
            None => Err(self.error("more bytes")),
        }
    }

    /// Moves past `len` bytes.
    #[inline]
    pub fn skip(&mut self, len: usize) -> Result<(), Error> {
        self.take(len).map(drop)
    }

    /// The next byte, without consuming it.
    #[inline]
    pub fn peek_u8(&self) -> Result<u8, Error> {
        self.rest().first().copied().ok_or_else(|| self.error("a byte"))
    }

    fixed! {
        /// One byte.
        u8: u8, from_be_bytes, "u8";
        /// One signed byte.
        i8: i8, from_be_bytes, "i8";
        /// Two bytes.
        u16: u16, from_be_bytes, "u16";
        /// Two bytes, signed.
        i16: i16, from_be_bytes, "i16";
        /// Four bytes.
        u32: u32, from_be_bytes, "u32";
        /// Four bytes, signed.
        i32: i32, from_be_bytes, "i32";
        /// Eight bytes.
        u64: u64, from_be_bytes, "u64";
        /// Eight bytes, signed.
        i64: i64, from_be_bytes, "i64";
        /// Four bytes, little-endian.
        u32_le: u32, from_le_bytes, "u32 (little-endian)";
        /// Eight bytes, little-endian.
        i64_le: i64, from_le_bytes, "i64 (little-endian)";
        /// An IEEE 754 double.
        f64: f64, from_be_bytes, "f64";
    }

    /// A byte that must be 0 or 1.
    pub fn bool(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Error {
                offset: self.offset - 1,
                expected: "a boolean (0 or 1)",
            }),
        }
    }

    /// Sixteen bytes (a UUID).
    #[inline]
    pub fn uuid_bytes(&mut self) -> Result<[u8; 16], Error> {
        self.array("16 bytes of a UUID")
    }

    /// Cassandra's unsigned vint (`VIntCoding.readUnsignedVInt`): 1 to 9 bytes.
    #[inline]
    pub fn uvint(&mut self) -> Result<u64, Error> {
        let (value, len) = vint::read_unsigned(self.rest()).ok_or_else(|| self.error("an unsigned vint"))?;
        self.offset += len;
        Ok(value)
    }

    /// A signed (zigzag) vint.
    #[inline]
    pub fn svint(&mut self) -> Result<i64, Error> {
        Ok(vint::zigzag_decode(self.uvint()?))
    }

    /// An unsigned vint that is the length of the bytes after it; an error if fewer bytes remain.
    #[inline]
    pub fn uvint_len(&mut self) -> Result<usize, Error> {
        let at = self.offset;
        let len = self.uvint()?;
        match usize::try_from(len) {
            Ok(len) if len <= self.remaining() => Ok(len),
            _ => Err(Error {
                offset: at,
                expected: "a length within the input",
            }),
        }
    }

    /// The low 32 bits of an unsigned vint that carries a sign-extended `i32` (`uvint32` of the format notes).
    #[inline]
    pub fn uvint32(&mut self) -> Result<i32, Error> {
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the encoding is a sign-extended i32"
        )]
        Ok(self.uvint()? as i32)
    }

    /// `u16` length, then bytes.
    #[inline]
    pub fn bytes16(&mut self) -> Result<&'a [u8], Error> {
        let len = self.u16()?;
        self.take(usize::from(len))
    }

    /// `i32` length (negative is an error), then bytes.
    pub fn bytes32(&mut self) -> Result<&'a [u8], Error> {
        let at = self.offset;
        let len = self.i32()?;
        let len = usize::try_from(len).map_err(|_| Error {
            offset: at,
            expected: "a length >= 0",
        })?;
        self.take(len)
    }

    /// `i32` length, then bytes; any negative length is null.
    #[inline]
    pub fn bytes32_or_null(&mut self) -> Result<Option<&'a [u8]>, Error> {
        let len = self.i32()?;
        match usize::try_from(len) {
            Ok(len) => self.take(len).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Unsigned vint length, then bytes.
    #[inline]
    pub fn bytes_vint(&mut self) -> Result<&'a [u8], Error> {
        let len = self.uvint_len()?;
        self.take(len)
    }

    /// `u16` length, then UTF-8.
    pub fn string16(&mut self) -> Result<&'a str, Error> {
        let at = self.offset;
        std::str::from_utf8(self.bytes16()?).map_err(|_| Error {
            offset: at,
            expected: "UTF-8",
        })
    }

    /// Unsigned vint length, then UTF-8.
    pub fn string_vint(&mut self) -> Result<&'a str, Error> {
        let at = self.offset;
        std::str::from_utf8(self.bytes_vint()?).map_err(|_| Error {
            offset: at,
            expected: "UTF-8",
        })
    }

    /// A capacity for `count` announced elements of at least `element_min_bytes` each, limited to what the input can hold.
    #[inline]
    pub fn capacity_for(&self, count: usize, element_min_bytes: usize) -> usize {
        count.min(self.remaining() / element_min_bytes.max(1))
    }
}
