//! A growing byte buffer, the counterpart of [`crate::Reader`]. Big-endian unless the name says `le`.

use crate::vint;

/// Bytes that are being written.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with capacity for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
        }
    }

    /// Appends to `bytes`.
    pub fn from_vec(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }

    /// Number of bytes written.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// True if no bytes were written.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The written bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// The written bytes, to be changed in place (for lengths that are known late).
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// Returns the buffer as a vector.
    pub fn into_vec(self) -> Vec<u8> {
        self.bytes
    }

    /// Removes the content, keeps the memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Removes the content after the first `len` bytes.
    #[inline]
    pub fn truncate(&mut self, len: usize) {
        self.bytes.truncate(len);
    }

    /// One byte.
    #[inline]
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    /// Two bytes.
    #[inline]
    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Four bytes.
    #[inline]
    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Four bytes, signed.
    #[inline]
    pub fn i32(&mut self, value: i32) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Eight bytes.
    #[inline]
    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Eight bytes, signed.
    #[inline]
    pub fn i64(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// Four bytes, little-endian.
    #[inline]
    pub fn u32_le(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Eight bytes, signed, little-endian.
    #[inline]
    pub fn i64_le(&mut self, value: i64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// An IEEE 754 double.
    pub fn f64(&mut self, value: f64) {
        self.bytes.extend_from_slice(&value.to_be_bytes());
    }

    /// One byte, 0 or 1.
    pub fn bool(&mut self, value: bool) {
        self.bytes.push(u8::from(value));
    }

    /// The bytes as they are.
    #[inline]
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// An unsigned vint.
    #[inline]
    pub fn uvint(&mut self, value: u64) {
        vint::write_unsigned(&mut self.bytes, value);
    }

    /// A signed (zigzag) vint.
    #[inline]
    pub fn svint(&mut self, value: i64) {
        self.uvint(vint::zigzag_encode(value));
    }

    /// A sign-extended `i32` as an unsigned vint (`uvint32` of the format notes).
    #[inline]
    pub fn uvint32(&mut self, value: i32) {
        self.uvint(i64::from(value).cast_unsigned());
    }

    /// `u16` length, then bytes.
    ///
    /// # Panics
    /// If there are more than 65535 bytes: the caller checks the limit and reports it to the user.
    #[expect(
        clippy::expect_used,
        reason = "callers check the 64 KiB limit of keys and names"
    )]
    #[inline]
    pub fn bytes16(&mut self, bytes: &[u8]) {
        self.u16(u16::try_from(bytes.len()).expect("at most 65535 bytes"));
        self.bytes(bytes);
    }

    /// `i32` length, then bytes.
    ///
    /// # Panics
    /// If there are more than `i32::MAX` bytes; frames and cells are limited far below that.
    #[expect(clippy::expect_used, reason = "frames and cells are limited far below 2 GiB")]
    #[inline]
    pub fn bytes32(&mut self, bytes: &[u8]) {
        self.i32(i32::try_from(bytes.len()).expect("below 2 GiB"));
        self.bytes(bytes);
    }

    /// `i32` length, then bytes; null is length -1.
    #[inline]
    pub fn bytes32_or_null(&mut self, bytes: Option<&[u8]>) {
        match bytes {
            Some(bytes) => self.bytes32(bytes),
            None => self.i32(-1),
        }
    }

    /// Unsigned vint length, then bytes.
    #[inline]
    pub fn bytes_vint(&mut self, bytes: &[u8]) {
        self.uvint(bytes.len() as u64);
        self.bytes(bytes);
    }

    /// `u16` length, then UTF-8. Same limit as [`Writer::bytes16`].
    pub fn string16(&mut self, text: &str) {
        self.bytes16(text.as_bytes());
    }
}

impl From<Writer> for Vec<u8> {
    fn from(writer: Writer) -> Self {
        writer.into_vec()
    }
}
