//! Prints values as JSON text (`AbstractType.toJSONString`).
//!
//! Compat: an empty value of a type that is not text is `""`, NaN and infinities are `null`. Map keys that are not strings are
//! quoted once more; names that are not lower case have quotes inside the string.

use std::fmt::Write as _;

use crate::elements::{collection_elements, map_entries, tuple_components, vector_elements};
use crate::print::separate;
use crate::{CqlType, Error, hex};

impl CqlType {
    /// The value as JSON.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    pub fn print_json(&self, bytes: &[u8]) -> Result<String, Error> {
        let mut out = String::new();
        self.print_json_into(bytes, &mut out)?;
        Ok(out)
    }

    /// Appends the value as JSON.
    ///
    /// # Errors
    /// The bytes are not a value of this type; `out` then contains a part of it.
    pub fn print_json_into(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        self.validate(bytes)?;
        self.write_json(bytes, out)
    }

    fn write_json(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        match self {
            Self::Ascii | Self::Text => print_string(&String::from_utf8_lossy(bytes), out),
            Self::Blob | Self::Custom(_) => {
                out.push_str("\"0x");
                hex::print_into(bytes, out);
                out.push('"');
            }
            Self::Tuple(_) | Self::Udt { .. } => return self.write_components(bytes, out),
            _ if bytes.is_empty() => out.push_str("\"\""),
            Self::Uuid
            | Self::TimeUuid
            | Self::Inet
            | Self::Date
            | Self::Time
            | Self::Timestamp
            | Self::Duration => {
                out.push('"');
                self.print_scalar(bytes, out);
                out.push('"');
            }
            Self::Float | Self::Double => {
                let start = out.len();
                self.print_scalar(bytes, out);
                if out.ends_with(['N', 'y']) {
                    out.truncate(start);
                    out.push_str("null");
                }
            }
            _ if self.is_compound() => return self.write_collection(bytes, out),
            _ => self.print_scalar(bytes, out),
        }
        Ok(())
    }

    fn write_collection(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        match self {
            Self::List { element, .. } | Self::Set { element, .. } => {
                write_array(collection_elements(bytes)?, element, out)
            }
            Self::Vector { element, dimension } => {
                write_array(vector_elements(bytes, element, *dimension), element, out)
            }
            Self::Map { key, value, .. } => {
                out.push('{');
                for (index, entry) in map_entries(bytes)?.enumerate() {
                    let (key_bytes, value_bytes) = entry?;
                    separate(index, out);
                    write_key(key, key_bytes, out)?;
                    out.push_str(": ");
                    value.write_json(value_bytes, out)?;
                }
                out.push('}');
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn write_components(&self, bytes: &[u8], out: &mut String) -> Result<(), Error> {
        let mut components = tuple_components(bytes);
        let [open, close] = if matches!(self, Self::Udt { .. }) {
            ['{', '}']
        } else {
            ['[', ']']
        };
        out.push(open);
        for (index, (name, ty)) in self.components().enumerate() {
            separate(index, out);
            if let Some(name) = name {
                print_name(name, out);
                out.push_str(": ");
            }
            match components.next().transpose()?.flatten() {
                Some(component) => ty.write_json(component, out)?,
                None => out.push_str("null"),
            }
        }
        out.push(close);
        Ok(())
    }
}

fn write_array<'a>(
    parts: impl Iterator<Item = Result<&'a [u8], Error>>,
    element: &CqlType,
    out: &mut String,
) -> Result<(), Error> {
    out.push('[');
    for (index, part) in parts.enumerate() {
        separate(index, out);
        element.write_json(part?, out)?;
    }
    out.push(']');
    Ok(())
}

/// Appends a map key, which is always a string in JSON.
fn write_key(key: &CqlType, bytes: &[u8], out: &mut String) -> Result<(), Error> {
    let mut text = String::new();
    key.write_json(bytes, &mut text)?;
    if text.starts_with('"') {
        out.push_str(&text);
    } else {
        print_string(&text, out);
    }
    Ok(())
}

/// Appends the name of a column or field: with quotes inside the string unless it is lower case.
pub fn print_name(name: &str, out: &mut String) {
    if name.chars().any(char::is_uppercase) {
        print_string(&format!("\"{name}\""), out);
    } else {
        print_string(name, out);
    }
}

/// Appends a JSON string.
pub fn print_string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
