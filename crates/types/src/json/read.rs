//! JSON to serialized values (`AbstractType.fromJSONObject`).
//!
//! Compat: every scalar is also accepted as a string, a collection as a string that contains JSON. Sets and maps are sorted; of
//! equal elements or keys, the last one is kept.

use std::fmt::Display;

use super::tree::Json;
use crate::{CqlType, Error, UserType, encode_list, encode_map, encode_tuple, encode_vector, hex};

/// The name of the column or field that a member of an object sets: lower-cased unless it is in double quotes.
pub fn column_name(member: &str) -> String {
    match member.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(quoted) => quoted.to_owned(),
        None => member.to_lowercase(),
    }
}

impl CqlType {
    /// The serialized value of a JSON value; `None` for `null`.
    ///
    /// # Errors
    /// The JSON value is not of this type.
    pub fn parse_json(&self, json: &Json) -> Result<Option<Vec<u8>>, Error> {
        match json {
            Json::Null => Ok(None),
            json => self.parse_present(json).map(Some),
        }
    }

    fn parse_present(&self, json: &Json) -> Result<Vec<u8>, Error> {
        match self {
            Self::List { .. }
            | Self::Set { .. }
            | Self::Map { .. }
            | Self::Tuple(_)
            | Self::Udt { .. }
            | Self::Vector { .. } => match json {
                Json::String(text) => self.parse_compound(&Json::parse(text)?),
                json => self.parse_compound(json),
            },
            _ => self.parse_json_scalar(json),
        }
    }

    fn parse_json_scalar(&self, json: &Json) -> Result<Vec<u8>, Error> {
        match (self, json) {
            (Self::Counter | Self::Empty, _) => Err(Error::literal(format!("{self} has no JSON form"))),
            (Self::Text | Self::Ascii, Json::String(text)) => self.parse_plain(text),
            (Self::Blob | Self::Custom(_), Json::String(text)) => parse_blob(text),
            (Self::Boolean, Json::Boolean(value)) => Ok(vec![u8::from(*value)]),
            (Self::Date | Self::Time, Json::String(text)) => self.parse_plain(text),
            // Compat: for most types, an empty string is an empty value.
            (Self::Varint, Json::String(text)) if text.is_empty() => Err(no_number(self, json)),
            (_, Json::String(text)) if text.is_empty() => Ok(Vec::new()),
            (Self::Decimal | Self::Varint, Json::String(text)) => {
                self.parse_plain(text).map_err(|_| no_number(self, json))
            }
            (_, Json::String(text)) => self.parse_plain(text),
            (Self::TinyInt | Self::SmallInt, Json::Number(text)) if json.java_class() == "Integer" => {
                self.parse_plain(text)
            }
            (
                Self::TinyInt | Self::SmallInt | Self::Int | Self::BigInt | Self::Varint | Self::Timestamp,
                Json::Number(text),
            ) if json.java_class() != "Double" => self.parse_plain(text).map_err(|_| unexpected(self, json)),
            (Self::Decimal | Self::Float | Self::Double, Json::Number(text)) => self.parse_plain(text),
            (Self::Decimal | Self::Varint, _) => Err(no_number(self, json)),
            _ => Err(unexpected(self, json)),
        }
    }

    fn parse_compound(&self, json: &Json) -> Result<Vec<u8>, Error> {
        match (self, json) {
            (Self::List { element, .. }, Json::Array(values)) => {
                Ok(encode_list(slices(&parse_elements(element, values, "list")?)))
            }
            (Self::Set { element, .. }, Json::Array(values)) => {
                let mut elements = parse_elements(element, values, "set")?;
                elements.sort_by(|a, b| element.compare(a, b));
                elements.dedup_by(|a, b| element.compare(a, b).is_eq());
                Ok(encode_list(slices(&elements)))
            }
            (Self::Vector { element, dimension }, Json::Array(values)) => {
                if values.len() != *dimension as usize {
                    return Err(Error::literal(format!(
                        "List had incorrect size: expected {dimension} but given {}; {}",
                        values.len(),
                        excerpt(json)
                    )));
                }
                let elements = parse_elements(element, values, "list")?;
                Ok(encode_vector(slices(&elements), element))
            }
            (Self::Map { key, value, .. }, Json::Object(members)) => parse_map(key, value, members),
            (Self::Tuple(types), Json::Array(values)) => parse_tuple(types, values, json),
            (Self::Udt { definition, .. }, Json::Object(members)) => parse_user_type(definition, members),
            _ => Err(unexpected(self, json)),
        }
    }
}

fn unexpected(ty: &CqlType, json: &Json) -> Error {
    let wanted: &dyn Display = match ty {
        CqlType::Text => &"UTF-8 string",
        CqlType::Ascii => &"ASCII string",
        CqlType::Timestamp => &"long or a datestring representation of a timestamp value",
        CqlType::Uuid | CqlType::TimeUuid | CqlType::Date | CqlType::Time | CqlType::Blob => {
            &format!("string representation of a {ty} value")
        }
        CqlType::Inet => &"string representation of an inet value",
        CqlType::Duration => &"string representation of a duration",
        CqlType::List { .. } => &"list",
        CqlType::Set { .. } => &"list (representing a set)",
        CqlType::Map { .. } | CqlType::Udt { .. } => &"map",
        CqlType::Tuple(_) => &"list representation of a tuple",
        CqlType::Vector { .. } => &"list",
        scalar => &format!("{scalar} value"),
    };
    let article = if matches!(ty, CqlType::Int | CqlType::Ascii) {
        "an"
    } else {
        "a"
    };
    Error::literal(format!(
        "Expected {article} {wanted}, but got a {}: {}",
        json.java_class(),
        excerpt(json)
    ))
}

fn no_number(ty: &CqlType, json: &Json) -> Error {
    Error::literal(format!(
        "Value '{}' is not a valid representation of a {ty} value",
        excerpt(json)
    ))
}

/// A recognizable part of the value, as Java would print it.
fn excerpt(json: &Json) -> String {
    let mut text = String::new();
    print_excerpt(json, &mut text);
    text.chars().take(EXCERPT_MAX).collect()
}

const EXCERPT_MAX: usize = 100;

fn print_excerpt(json: &Json, out: &mut String) {
    if out.len() > EXCERPT_MAX * 4 {
        return;
    }
    match json {
        Json::Number(text) | Json::String(text) => out.push_str(text),
        Json::Boolean(value) => out.push_str(&value.to_string()),
        Json::Null => out.push_str("null"),
        Json::Array(values) => {
            out.push('[');
            for (index, value) in values.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                print_excerpt(value, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (index, (name, value)) in members.iter().enumerate() {
                out.push_str(if index > 0 { ", " } else { "" });
                out.push_str(name);
                out.push('=');
                print_excerpt(value, out);
            }
            out.push('}');
        }
    }
}

fn parse_blob(text: &str) -> Result<Vec<u8>, Error> {
    let refused = |why: String| {
        Error::literal(format!(
            "Value '{text}' is not a valid blob representation: {why}"
        ))
    };
    let digits = text.strip_prefix("0x").ok_or_else(|| {
        refused(format!(
            "String representation of blob is missing 0x prefix: {text}"
        ))
    })?;
    hex::parse(digits).ok_or_else(|| refused(format!("cannot parse '{digits}' as hex bytes")))
}

fn parse_elements(element: &CqlType, values: &[Json], kind: &str) -> Result<Vec<Vec<u8>>, Error> {
    let null = || Error::literal(format!("Invalid null element in {kind}"));
    values
        .iter()
        .map(|value| element.parse_json(value)?.ok_or_else(null))
        .collect()
}

fn slices(parts: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    parts.iter().map(Vec::as_slice)
}

fn parse_map(key: &CqlType, value: &CqlType, members: &[(String, Json)]) -> Result<Vec<u8>, Error> {
    let mut entries = Vec::with_capacity(members.len());
    // In reverse, so that the stable sort puts the last of equal keys first.
    for (name, member) in members.iter().rev() {
        let key_bytes = key.parse_present(&Json::String(name.clone()))?;
        let value_bytes = value
            .parse_json(member)?
            .ok_or_else(|| Error::literal("Invalid null value in map"))?;
        entries.push((key_bytes, value_bytes));
    }
    entries.sort_by(|a, b| key.compare(&a.0, &b.0));
    entries.dedup_by(|later, kept| key.compare(&later.0, &kept.0).is_eq());
    Ok(encode_map(
        entries.iter().map(|(k, v)| (k.as_slice(), v.as_slice())),
    ))
}

fn parse_tuple(types: &[CqlType], values: &[Json], json: &Json) -> Result<Vec<u8>, Error> {
    if values.len() != types.len() {
        let what = if values.len() > types.len() {
            "contains extra"
        } else {
            "is missing"
        };
        return Err(Error::literal(format!(
            "Tuple {what} items (expected {}): {}",
            types.len(),
            excerpt(json)
        )));
    }
    let components: Vec<_> = types
        .iter()
        .zip(values)
        .map(|(ty, value)| ty.parse_json(value))
        .collect::<Result<_, _>>()?;
    Ok(encode_tuple(components.iter().map(Option::as_deref)))
}

fn parse_user_type(definition: &UserType, members: &[(String, Json)]) -> Result<Vec<u8>, Error> {
    let mut components = vec![None; definition.fields.len()];
    for (member, json) in members {
        let name = column_name(member);
        let (index, ty) = definition.field(&name).ok_or_else(|| {
            Error::literal(format!(
                "Unknown field '{name}' in value of user defined type {}",
                definition.name
            ))
        })?;
        components[index] = ty.parse_json(json)?;
    }
    Ok(encode_tuple(components.iter().map(Option::as_deref)))
}
