//! A stream that prints each piece that is read from it.

use std::io::Write;

use anyhow::Context as _;
use ilion_codec::Reader;
use ilion_sstable::DataStream;
use ilion_types::hex;

/// Most bytes on a line.
const SHOWN_BYTES: usize = 12;
/// Most characters of a value on a line.
const SHOWN_CHARACTERS: usize = 80;
const VINT_LEN_MAX: usize = 9;

/// A stream of bytes that are printed with names.
pub(super) struct Named<'o> {
    stream: DataStream,
    out: &'o mut dyn Write,
    depth: usize,
}

impl<'o> Named<'o> {
    pub(super) fn new(stream: DataStream, out: &'o mut dyn Write) -> Self {
        Self {
            stream,
            out,
            depth: 0,
        }
    }

    pub(super) fn position(&self) -> u64 {
        self.stream.position()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.stream.is_at_end()
    }

    pub(super) fn seek(&mut self, position: u64) {
        self.stream.seek(position);
    }

    pub(super) fn indent(&mut self) {
        self.depth += 1;
    }

    pub(super) fn outdent(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(super) fn peek_byte(&mut self) -> anyhow::Result<u8> {
        self.stream.require(1)?;
        Ok(self.stream.rest()[0])
    }

    /// Reads and prints `length` bytes; `value` prints their meaning.
    pub(super) fn take(
        &mut self,
        length: usize,
        name: &str,
        value: impl FnOnce(&[u8]) -> String,
    ) -> anyhow::Result<::bytes::Bytes> {
        let position = self.position();
        let bytes = self.stream.take(length)?;
        let shown = match bytes.get(..SHOWN_BYTES) {
            Some(first) if bytes.len() > SHOWN_BYTES => format!("{}..", hex::print(first)),
            _ => hex::print(&bytes),
        };
        let value = value(&bytes);
        let indent = self.depth * 2;
        let line = format!(
            "{position:>10} {length:>6}  {shown:<26}  {:indent$}{name}: {}",
            "",
            printable(&value)
        );
        writeln!(self.out, "{}", line.trim_end()).context("writing to stdout")?;
        Ok(bytes)
    }

    pub(super) fn u16(&mut self, name: &str) -> anyhow::Result<u16> {
        let bytes = self.take(2, name, super::big_endian)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    pub(super) fn flags(&mut self, name: &str, names: fn(u8) -> String) -> anyhow::Result<u8> {
        Ok(self.take(1, name, |bytes| names(bytes[0]))?[0])
    }

    /// Reads and prints an unsigned vint; `value` prints its meaning.
    pub(super) fn uvint(&mut self, name: &str, value: impl FnOnce(u64) -> String) -> anyhow::Result<u64> {
        let peeked = self.stream.peek(VINT_LEN_MAX)?;
        let mut input = Reader::new(peeked);
        let decoded = input.uvint();
        let length = input.offset();
        let Ok(decoded) = decoded else {
            return Err(self.stream.corrupt("an unsigned vint").into());
        };
        self.take(length, name, |_| value(decoded))?;
        Ok(decoded)
    }

    /// Reads and prints a vint.
    pub(super) fn count(&mut self, name: &str) -> anyhow::Result<u64> {
        self.uvint(name, |count| count.to_string())
    }

    /// Reads and prints the length of the next field.
    pub(super) fn length(&mut self, name: &str) -> anyhow::Result<usize> {
        let length = self.count(name)?;
        match usize::try_from(length) {
            Ok(length) => Ok(length),
            Err(_) => Err(self.stream.corrupt("a length within the file").into()),
        }
    }

    /// The error that bytes at the current position do not follow the format.
    pub(super) fn corrupt(&self, expected: &str) -> anyhow::Error {
        self.stream.corrupt(expected).into()
    }
}

/// Escapes control characters, and cuts long values.
fn printable(value: &str) -> String {
    let shown = value
        .chars()
        .take(SHOWN_CHARACTERS)
        .map(|character| match character {
            control if control.is_control() => control.escape_default().to_string(),
            other => other.to_string(),
        });
    shown.collect()
}
