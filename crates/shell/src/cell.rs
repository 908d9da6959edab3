//! [`Cell`]: a value as text for people. Compat: the texts are those of cqlsh.

use ilion_protocol::Rows;
use ilion_types::{
    CqlType, EPOCH_DAY, Error, civil_from_days, collection_elements, hex, map_entries, tuple_components,
    vector_elements,
};
use unicode_width::UnicodeWidthChar as _;

use crate::number_text::print_float;

const MILLIS_PER_DAY: i64 = 86_400_000;

/// A text for people, and how many columns of a terminal it takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The text; it has no control characters.
    pub text: String,
    /// Columns of a terminal.
    pub width: usize,
    /// The kind of its value.
    pub kind: Kind,
}

/// The kinds of values, for colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The name of a column.
    Name,
    /// Null, or bytes that are no value of their type.
    Null,
    /// Text.
    Text,
    /// A blob.
    Blob,
    /// A collection, tuple, user type or vector.
    Compound,
    /// Anything else.
    Scalar,
}

/// Whether texts are put in quotes, as inside of other values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Quotes {
    Without,
    With,
}

impl Cell {
    fn new(text: String, kind: Kind) -> Self {
        let width = text.chars().map(|c| c.width().unwrap_or_default()).sum();
        Self { text, width, kind }
    }

    /// The name of a column.
    pub fn of_name(name: &str) -> Self {
        let mut text = String::new();
        escape(name, Quotes::Without, &mut text);
        Self::new(text, Kind::Name)
    }

    /// A text that is no value of a column.
    pub fn of_text(content: &str) -> Self {
        let mut text = String::new();
        escape(content, Quotes::Without, &mut text);
        Self::new(text, Kind::Text)
    }

    /// The value of a column; `None` is null.
    pub fn of_value(cql_type: &CqlType, bytes: Option<&[u8]>) -> Self {
        let Some(bytes) = bytes else {
            return Self::new("null".to_owned(), Kind::Null);
        };
        let mut text = String::new();
        match print(cql_type, bytes, Quotes::Without, &mut text) {
            Ok(()) => Self::new(text, kind_of(cql_type)),
            Err(_) => Self::new(format!("0x{}", hex::print(bytes)), Kind::Null),
        }
    }
}

/// The values of rows as plain texts; null is empty.
pub fn texts_of(rows: &Rows) -> Vec<Vec<String>> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    let text = |(bytes, column): (&Option<&[u8]>, &ilion_protocol::ColumnSpec)| {
        let bytes = bytes.unwrap_or_default();
        column.cql_type.print_plain(bytes).unwrap_or_default()
    };
    rows.rows()
        .map(|row| row.iter().zip(columns).map(text).collect())
        .collect()
}

fn kind_of(cql_type: &CqlType) -> Kind {
    match cql_type {
        CqlType::Ascii | CqlType::Text => Kind::Text,
        CqlType::Blob | CqlType::Custom(_) => Kind::Blob,
        CqlType::Tuple(_) | CqlType::Udt { .. } | CqlType::Vector { .. } => Kind::Compound,
        _ if cql_type.is_collection() => Kind::Compound,
        _ => Kind::Scalar,
    }
}

/// Appends a value; a text that is part of another value is quoted.
fn print(cql_type: &CqlType, bytes: &[u8], quotes: Quotes, out: &mut String) -> Result<(), Error> {
    match cql_type {
        CqlType::Ascii | CqlType::Text => {
            escape(&String::from_utf8_lossy(bytes), quotes, out);
            Ok(())
        }
        CqlType::Blob | CqlType::Custom(_) => {
            out.push_str("0x");
            out.push_str(&hex::print(bytes));
            Ok(())
        }
        CqlType::Tuple(types) => {
            let parts = tuple_components(bytes);
            print_all(['(', ')'], parts, out, |index, part, out| {
                match types.get(index) {
                    Some(ty) => print_part(ty, part, out),
                    None => Ok(()),
                }
            })
        }
        CqlType::Udt { definition, .. } => {
            // Fields that were added later are missing in old values.
            let mut parts = tuple_components(bytes);
            let fields = definition
                .fields
                .iter()
                .map(|field| Ok((field, parts.next().transpose()?.flatten())));
            print_all(['{', '}'], fields, out, |_, ((name, ty), part), out| {
                escape(name, Quotes::Without, out);
                out.push_str(": ");
                print_part(ty, part, out)
            })
        }
        _ if bytes.is_empty() => Ok(()),
        CqlType::List { element, .. } => {
            print_elements(['[', ']'], element, collection_elements(bytes)?, out)
        }
        CqlType::Set { element, .. } => print_elements(['{', '}'], element, collection_elements(bytes)?, out),
        CqlType::Vector { element, dimension } => print_elements(
            ['[', ']'],
            element,
            vector_elements(bytes, element, *dimension),
            out,
        ),
        CqlType::Map { key, value, .. } => print_all(
            ['{', '}'],
            map_entries(bytes)?,
            out,
            |_, (key_bytes, value_bytes), out| {
                print(key, key_bytes, Quotes::With, out)?;
                out.push_str(": ");
                print(value, value_bytes, Quotes::With, out)
            },
        ),
        CqlType::Timestamp | CqlType::Inet if quotes == Quotes::With => {
            out.push('\'');
            print_scalar(cql_type, bytes, out)?;
            out.push('\'');
            Ok(())
        }
        _ => print_scalar(cql_type, bytes, out),
    }
}

fn print_scalar(cql_type: &CqlType, bytes: &[u8], out: &mut String) -> Result<(), Error> {
    match (cql_type, bytes) {
        (CqlType::Boolean, _) => out.push_str(if bytes != [0] { "True" } else { "False" }),
        (CqlType::Float, &[a, b, c, d]) => {
            out.push_str(&print_float(f64::from(f32::from_be_bytes([a, b, c, d]))));
        }
        (CqlType::Double, _) => {
            if let Ok(eight) = bytes.try_into() {
                out.push_str(&print_float(f64::from_be_bytes(eight)));
            }
        }
        (CqlType::Timestamp, _) => {
            if let Ok(eight) = bytes.try_into() {
                print_timestamp(i64::from_be_bytes(eight), out);
            }
        }
        (CqlType::Date, &[a, b, c, d]) => print_date(u32::from_be_bytes([a, b, c, d]), out),
        (CqlType::Inet, &[a, b, c, d]) => out.push_str(&std::net::Ipv4Addr::from([a, b, c, d]).to_string()),
        (CqlType::Inet, _) if bytes.len() == 16 => {
            let octets: [u8; 16] = bytes.try_into().unwrap_or_default();
            out.push_str(&std::net::Ipv6Addr::from(octets).to_string());
        }
        _ => out.push_str(&cql_type.print_plain(bytes)?),
    }
    Ok(())
}

/// Compat: years that Python has no dates for are shown as milliseconds.
fn print_timestamp(millis: i64, out: &mut String) {
    let (year, month, day) = civil_from_days(millis.div_euclid(MILLIS_PER_DAY));
    if !(1..=9999).contains(&year) {
        out.push_str(&millis.to_string());
        return;
    }
    let millis = millis.rem_euclid(MILLIS_PER_DAY);
    let seconds = millis / 1000;
    out.push_str(&format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:03}000+0000",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        millis % 1000
    ));
}

/// Compat: years that Python has no dates for are shown as days since 1970.
fn print_date(date: u32, out: &mut String) {
    let days = i64::from(date) - EPOCH_DAY;
    let (year, month, day) = civil_from_days(days);
    match (1..=9999).contains(&year) {
        true => out.push_str(&format!("{year:04}-{month:02}-{day:02}")),
        false => out.push_str(&days.to_string()),
    }
}

fn print_elements<'a>(
    brackets: [char; 2],
    element: &CqlType,
    elements: impl Iterator<Item = Result<&'a [u8], Error>>,
    out: &mut String,
) -> Result<(), Error> {
    print_all(brackets, elements, out, |_, bytes, out| {
        print(element, bytes, Quotes::With, out)
    })
}

/// Appends parts between brackets.
fn print_all<T>(
    brackets: [char; 2],
    parts: impl Iterator<Item = Result<T, Error>>,
    out: &mut String,
    mut print_one: impl FnMut(usize, T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    out.push(brackets[0]);
    for (index, part) in parts.enumerate() {
        if index > 0 {
            out.push_str(", ");
        }
        print_one(index, part?, out)?;
    }
    out.push(brackets[1]);
    Ok(())
}

fn print_part(cql_type: &CqlType, bytes: Option<&[u8]>, out: &mut String) -> Result<(), Error> {
    match bytes {
        Some(bytes) => print(cql_type, bytes, Quotes::With, out),
        None => {
            out.push_str("null");
            Ok(())
        }
    }
}

/// Appends a text without control characters. Compat: escapes are those of Python.
fn escape(text: &str, quotes: Quotes, out: &mut String) {
    let quote = (quotes == Quotes::With).then_some('\'');
    out.extend(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\'' if quote.is_some() => out.push_str("''"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{a0}' => {
                out.push_str(&format!("\\x{:02x}", u32::from(character)))
            }
            _ => out.push(character),
        }
    }
    out.extend(quote);
}
