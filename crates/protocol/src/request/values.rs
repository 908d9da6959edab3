//! Bind values.
//!
//! ```text
//! values := n: u16, n x ([name: string] value)        value := i32 length, bytes; -1 null, -2 unset (v4, v5)
//! ```
//!
//! Decoded values are spans of the frame's body. Up to eight spans are stored inline, so that decoding a typical EXECUTE
//! allocates no memory for its values.

use std::fmt;

use bytes::Bytes;
use smallvec::SmallVec;

use crate::error::Error;
use crate::notation::{Input, put_i32, try_count, try_size, try_string};
use crate::version::Version;

const NULL: i32 = -1;
const UNSET: i32 = -2;

/// One bind value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// Null.
    Null,
    /// The column is not written (v4 and later).
    Unset,
    /// The encoded value.
    Bytes(&'a [u8]),
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Unset => f.write_str("unset"),
            Self::Bytes(bytes) => write!(f, "\"{}\"", bytes.escape_ascii()),
        }
    }
}

/// The place of a value in the body; `len` may be `NULL` or `UNSET`.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: u32,
    len: i32,
}

/// The bind values of a statement, with or without names.
#[derive(Clone, Default)]
pub struct Values {
    source: Bytes,
    spans: SmallVec<[Span; 8]>,
    names: Option<Vec<String>>,
}

impl Values {
    /// Number of values.
    #[inline]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// True if there are no values.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The value at a position.
    #[inline]
    pub fn value(&self, index: usize) -> Option<Value<'_>> {
        self.spans.get(index).map(|&span| self.at(span))
    }

    /// The value at a position as a slice of the frame; `None` if it is null or unset. The slice keeps the whole read buffer
    /// in memory: copy small values if you keep them.
    pub fn value_bytes(&self, index: usize) -> Option<Bytes> {
        let span = self.spans.get(index)?;
        let len = usize::try_from(span.len).ok()?;
        let start = span.start as usize;
        Some(self.source.slice(start..start + len))
    }

    /// The values in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Value<'_>> {
        self.spans.iter().map(|&span| self.at(span))
    }

    /// The names, in the order of the values; `None` for positional values.
    pub fn names(&self) -> Option<&[String]> {
        self.names.as_deref()
    }

    #[inline]
    fn at(&self, span: Span) -> Value<'_> {
        match usize::try_from(span.len) {
            Ok(len) => Value::Bytes(&self.source[span.start as usize..][..len]),
            Err(_) if span.len == UNSET => Value::Unset,
            Err(_) => Value::Null,
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        try_count(out, "the list of values", self.len())?;
        for (index, value) in self.iter().enumerate() {
            if let Some(name) = self.names.as_ref().and_then(|names| names.get(index)) {
                try_string(out, "the name of a value", name)?;
            }
            encode_value(out, version, value)?;
        }
        Ok(())
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let count = usize::from(input.u16()?);
        let mut spans = SmallVec::with_capacity(input.reader().capacity_for(count, 4));
        for _ in 0..count {
            spans.push(decode_span(input, version)?);
        }
        Ok(Self {
            source: input.body().clone(),
            spans,
            names: None,
        })
    }

    pub(super) fn decode_named(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let count = usize::from(input.u16()?);
        let capacity = input.reader().capacity_for(count, 6);
        let mut spans = SmallVec::with_capacity(capacity);
        let mut names = Vec::with_capacity(capacity);
        for _ in 0..count {
            names.push(input.string()?);
            spans.push(decode_span(input, version)?);
        }
        Ok(Self {
            source: input.body().clone(),
            spans,
            names: Some(names),
        })
    }
}

/// Prints the values, not the whole body.
impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.names {
            Some(names) => f.debug_map().entries(names.iter().zip(self.iter())).finish(),
            None => f.debug_list().entries(self.iter()).finish(),
        }
    }
}

impl PartialEq for Values {
    fn eq(&self, other: &Self) -> bool {
        self.names == other.names && self.iter().eq(other.iter())
    }
}

impl<'a> FromIterator<Value<'a>> for Values {
    fn from_iter<I: IntoIterator<Item = Value<'a>>>(values: I) -> Self {
        let mut builder = ValuesBuilder::new();
        for value in values {
            builder.push(value);
        }
        builder.build()
    }
}

fn encode_value(out: &mut Vec<u8>, version: Version, value: Value<'_>) -> Result<(), Error> {
    match value {
        Value::Null => put_i32(out, NULL),
        Value::Unset if version == Version::V3 => {
            return Err(Error::refused("unset values need protocol v4 or later"));
        }
        Value::Unset => put_i32(out, UNSET),
        Value::Bytes(bytes) => {
            try_size(out, "a value", bytes.len())?;
            out.extend_from_slice(bytes);
        }
    }
    Ok(())
}

#[inline]
fn decode_span(input: &mut Input<'_>, version: Version) -> Result<Span, Error> {
    let len = input.i32()?;
    // Frames are far below 4 GiB, so the conversion succeeds.
    let start = u32::try_from(input.reader().offset()).map_err(|_| input.reader().error("a shorter body"))?;
    match usize::try_from(len) {
        Ok(size) => input.reader().skip(size)?,
        Err(_) if version == Version::V3 => return Ok(Span { start, len: NULL }),
        Err(_) if len < UNSET => return Err(Error::refused(format!("Invalid ByteBuf length {len}"))),
        Err(_) => {}
    }
    Ok(Span { start, len })
}

/// Builds bind values for a request.
#[derive(Clone, Debug, Default)]
pub struct ValuesBuilder {
    source: Vec<u8>,
    spans: SmallVec<[Span; 8]>,
    names: Vec<String>,
}

impl ValuesBuilder {
    /// A builder without values.
    pub fn new() -> Self {
        Self::default()
    }

    /// A builder with room for values of this many bytes together.
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            source: Vec::with_capacity(bytes),
            ..Self::default()
        }
    }

    /// Adds a value without a name.
    ///
    /// # Panics
    /// If all values together exceed 2 GiB: the limit of an envelope is lower.
    #[expect(clippy::expect_used, reason = "an envelope carries at most 256 MiB")]
    pub fn push(&mut self, value: Value<'_>) {
        let start = u32::try_from(self.source.len()).expect("values are below 2 GiB");
        let len = match value {
            Value::Null => NULL,
            Value::Unset => UNSET,
            Value::Bytes(bytes) => {
                self.source.extend_from_slice(bytes);
                i32::try_from(bytes.len()).expect("a value is below 2 GiB")
            }
        };
        self.spans.push(Span { start, len });
    }

    /// Adds a value with a name. Name all values or none.
    pub fn push_named(&mut self, name: &str, value: Value<'_>) {
        self.names.push(name.to_owned());
        self.push(value);
    }

    /// The values.
    ///
    /// # Panics
    /// If some values have names and others have none.
    pub fn build(self) -> Values {
        assert!(
            self.names.is_empty() || self.names.len() == self.spans.len(),
            "name all values or none"
        );
        Values {
            source: Bytes::from(self.source),
            spans: self.spans,
            names: (!self.names.is_empty()).then_some(self.names),
        }
    }
}
