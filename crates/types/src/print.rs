//! Values as text: plain (partition keys in `sstabledump`) and as CQL literals (in DESCRIBE).
//!
//! Compat: IPv6 addresses are written in full, like in Java (`2001:db8:0:0:0:0:0:1`), and times have nine decimals.
//! Not here: JSON (`json`), which shares the scalars.

use std::fmt::Write as _;
use std::net::IpAddr;

use crate::calendar::{print_date, print_time, print_timestamp};
use crate::custom::KnownClass;
use crate::elements::{collection_elements, map_entries, tuple_components, vector_elements};
use crate::float_text::{print_double, print_float};
use crate::value::decode_inet;
use crate::{CqlType, Decimal, Duration, Error, cql_name, decode_varint, hex};

impl CqlType {
    /// The value as plain text, without quotes and escapes. Blobs, collections and vectors are printed as hex without a prefix, empty
    /// values as an empty text.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    pub fn print_plain(&self, bytes: &[u8]) -> Result<String, Error> {
        self.validate(bytes)?;
        let mut out = String::new();
        match self {
            Self::Custom(class) => match KnownClass::of(class) {
                Some(known) => known.print(bytes, &mut out)?,
                None => hex::print_into(bytes, &mut out),
            },
            Self::Blob => hex::print_into(bytes, &mut out),
            Self::Tuple(_) | Self::Udt { .. } => self.print_components_plain(bytes, &mut out)?,
            _ if self.is_compound() => hex::print_into(bytes, &mut out),
            _ if bytes.is_empty() => {}
            Self::Timestamp => print_timestamp(bits(bytes).cast_signed(), 'T', &mut out),
            _ => self.print_scalar(bytes, &mut out),
        }
        Ok(out)
    }

    /// The value as a CQL literal.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    pub fn print_literal(&self, bytes: &[u8]) -> Result<String, Error> {
        self.validate(bytes)?;
        let mut out = String::new();
        self.print_literal_into(bytes, &mut out)?;
        Ok(out)
    }

    /// True for types whose values contain other values.
    pub(crate) fn is_compound(&self) -> bool {
        self.is_collection() || matches!(self, Self::Tuple(_) | Self::Udt { .. } | Self::Vector { .. })
    }

    /// Appends a scalar without quotes. Requires: the bytes are valid, and not empty unless the type is text or blob.
    pub(crate) fn print_scalar(&self, bytes: &[u8], out: &mut String) {
        let _ = match self {
            Self::Ascii | Self::Text => {
                out.push_str(&String::from_utf8_lossy(bytes));
                Ok(())
            }
            Self::Boolean => write!(out, "{}", bytes.first().is_some_and(|byte| *byte != 0)),
            Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt | Self::Counter => {
                write!(out, "{}", signed(bytes))
            }
            Self::Varint => write!(out, "{}", decode_varint(bytes)),
            Self::Decimal => write_parsed(out, Decimal::decode(bytes)),
            Self::Duration => write_parsed(out, Duration::decode(bytes)),
            Self::Inet => {
                print_inet(bytes, out);
                Ok(())
            }
            _ => {
                self.print_fixed(bytes, out);
                Ok(())
            }
        };
    }

    fn print_fixed(&self, bytes: &[u8], out: &mut String) {
        match (self, bytes.len()) {
            (Self::Float, 4) => print_float(f32::from_bits(bits(bytes) as u32), out),
            (Self::Double, 8) => print_double(f64::from_bits(bits(bytes)), out),
            (Self::Date, 4) => print_date(bits(bytes) as u32, out),
            (Self::Time, 8) => print_time(bits(bytes).cast_signed(), out),
            (Self::Timestamp, 8) => print_timestamp(bits(bytes).cast_signed(), ' ', out),
            (Self::Uuid | Self::TimeUuid, 16) => {
                let _ = write!(out, "{}", uuid::Uuid::from_slice(bytes).unwrap_or_default());
            }
            _ => {
                out.push_str("0x");
                hex::print_into(bytes, out);
            }
        }
    }

    fn print_literal_into(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        match self {
            Self::Ascii | Self::Text => print_quoted(&String::from_utf8_lossy(bytes), out),
            Self::Blob | Self::Custom(_) => self.print_scalar(bytes, out),
            Self::Tuple(_) | Self::Udt { .. } => return self.print_components(bytes, out),
            _ if bytes.is_empty() => out.push_str("null"),
            Self::Inet | Self::Date | Self::Time => {
                let mut text = String::new();
                self.print_scalar(bytes, &mut text);
                print_quoted(&text, out);
            }
            Self::Timestamp => {
                out.push('\'');
                print_timestamp(bits(bytes).cast_signed(), 'T', out);
                out.push('\'');
            }
            _ if self.is_compound() => return self.print_collection(bytes, out),
            _ => self.print_scalar(bytes, out),
        }
        Ok(())
    }

    fn print_collection(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        match self {
            Self::List { element, .. } => print_all(collection_elements(bytes)?, element, ['[', ']'], out),
            Self::Set { element, .. } => print_all(collection_elements(bytes)?, element, ['{', '}'], out),
            Self::Vector { element, dimension } => print_all(
                vector_elements(bytes, element, *dimension),
                element,
                ['[', ']'],
                out,
            ),
            Self::Map { key, value, .. } => {
                out.push('{');
                for (index, entry) in map_entries(bytes)?.enumerate() {
                    let (key_bytes, value_bytes) = entry?;
                    separate(index, out);
                    key.print_literal_into(key_bytes, out)?;
                    out.push_str(": ");
                    value.print_literal_into(value_bytes, out)?;
                }
                out.push('}');
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn print_components(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        let mut components = tuple_components(bytes);
        let [open, close] = if matches!(self, Self::Udt { .. }) {
            ['{', '}']
        } else {
            ['(', ')']
        };
        out.push(open);
        for (index, (name, ty)) in self.components().enumerate() {
            separate(index, out);
            if let Some(name) = name {
                let _ = write!(out, "{}: ", cql_name::quote_name(name));
            }
            match components.next().transpose()?.flatten() {
                Some(component) => ty.print_literal_into(component, out)?,
                None => out.push_str("null"),
            }
        }
        out.push(close);
        Ok(())
    }

    /// Appends a tuple as `a:b`; null is `@`, and both characters are escaped by `\` (`TupleType.getString`).
    fn print_components_plain(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        for ((index, component), (_, ty)) in tuple_components(bytes).enumerate().zip(self.components()) {
            if index > 0 {
                out.push(':');
            }
            match component? {
                None => out.push('@'),
                Some(component) => {
                    let text = ty.print_plain(component)?;
                    out.push_str(&text.replace(':', "\\:").replace('@', "\\@"));
                }
            }
        }
        Ok(())
    }

    /// The component types of a tuple or user type; fields also have names.
    pub(crate) fn components(&self) -> impl Iterator<Item = (Option<&str>, &CqlType)> {
        let (types, fields): (&[CqlType], &[(String, CqlType)]) = match self {
            Self::Tuple(types) => (types, &[]),
            Self::Udt { definition, .. } => (&[], &definition.fields),
            _ => (&[], &[]),
        };
        let fields = fields.iter().map(|(name, ty)| (Some(name.as_str()), ty));
        types.iter().map(|ty| (None, ty)).chain(fields)
    }
}

fn print_all<'a>(
    parts: impl Iterator<Item = Result<&'a [u8], Error>>,
    element: &CqlType,
    [open, close]: [char; 2],
    out: &mut String,
) -> Result<(), Error> {
    out.push(open);
    for (index, part) in parts.enumerate() {
        separate(index, out);
        element.print_literal_into(part?, out)?;
    }
    out.push(close);
    Ok(())
}

pub(crate) fn separate(index: usize, out: &mut String) {
    if index > 0 {
        out.push_str(", ");
    }
}

/// Appends a text in single quotes; quotes inside are doubled.
fn print_quoted(text: &str, out: &mut String) {
    out.push('\'');
    out.push_str(&text.replace('\'', "''"));
    out.push('\'');
}

/// Writes a decoded value. An error is not expected here: `validate` has already refused values that do not decode.
fn write_parsed<T: std::fmt::Display>(out: &mut String, parsed: Result<T, Error>) -> std::fmt::Result {
    parsed.map_or(Ok(()), |value| write!(out, "{value}"))
}

/// Returns up to eight bytes as a number.
fn bits(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |bits, byte| (bits << 8) | u64::from(*byte))
}

/// A big-endian integer of one to eight bytes.
fn signed(bytes: &[u8]) -> i64 {
    let unused_bits = 64 - 8 * bytes.len().clamp(1, 8);
    (bits(bytes) << unused_bits).cast_signed() >> unused_bits
}

fn print_inet(bytes: &[u8], out: &mut String) {
    let _ = match decode_inet(bytes).map(|address| address.to_canonical()) {
        Ok(IpAddr::V4(v4)) => write!(out, "{v4}"),
        Ok(IpAddr::V6(v6)) => {
            for (index, segment) in v6.segments().into_iter().enumerate() {
                let separator = if index == 0 { "" } else { ":" };
                let _ = write!(out, "{separator}{segment:x}");
            }
            Ok(())
        }
        Err(_) => Ok(()),
    };
}
