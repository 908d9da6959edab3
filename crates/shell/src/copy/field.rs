//! Values to fields of CSV files, and back. A printed value is parsed to the same value.
//!
//! A scalar is printed as plain text, a text without quotes, and values with parts as literals of CQL: `['a', 'b']`.

use std::borrow::Cow;
use std::cmp::Ordering;

use ilion_cql::ast::{Literal, Term};
use ilion_cql::parse_term;
use ilion_types::{CqlType, Error, encode_list, encode_map, encode_tuple, encode_vector, hex};

/// Maximum depth of values inside values.
const DEPTH_MAX: usize = 64;

/// A value as a field.
///
/// # Errors
/// The bytes are no value of the type.
pub fn print(cql_type: &CqlType, bytes: &[u8]) -> Result<String, Error> {
    match cql_type {
        CqlType::Blob | CqlType::Custom(_) => Ok(format!("0x{}", hex::print(bytes))),
        // Compat: cqlsh reads this form.
        CqlType::Timestamp => {
            let mut text = cql_type.print_plain(bytes)?;
            if let Some(at) = text.find('T') {
                text.replace_range(at..=at, " ");
            }
            if text.ends_with('Z') {
                text.pop();
                text.push_str("+0000");
            }
            Ok(text)
        }
        CqlType::Boolean => Ok(if cql_type.print_plain(bytes)? == "true" {
            "True"
        } else {
            "False"
        }
        .to_owned()),
        _ if has_parts(cql_type) => cql_type.print_literal(bytes),
        _ => cql_type.print_plain(bytes),
    }
}

/// The value of a field.
///
/// # Errors
/// The text is no value of the type.
pub fn parse<'t>(cql_type: &CqlType, text: &'t str) -> Result<Cow<'t, [u8]>, String> {
    if *cql_type == CqlType::Text {
        return Ok(Cow::Borrowed(text.as_bytes()));
    }
    if !has_parts(cql_type) {
        return parse_scalar(cql_type, text).map(Cow::Owned);
    }
    let term = parse_term(text).map_err(|error| error.to_string())?;
    let value = parse_value(cql_type, &term, DEPTH_MAX)?;
    value
        .map(Cow::Owned)
        .ok_or_else(|| "null is no value here".to_owned())
}

fn has_parts(cql_type: &CqlType) -> bool {
    cql_type.is_collection()
        || matches!(
            cql_type,
            CqlType::Tuple(_) | CqlType::Udt { .. } | CqlType::Vector { .. }
        )
}

fn parse_scalar(cql_type: &CqlType, text: &str) -> Result<Vec<u8>, String> {
    let text = match cql_type {
        CqlType::Blob | CqlType::Custom(_) => text.strip_prefix("0x").unwrap_or(text),
        _ => text,
    };
    match cql_type {
        CqlType::Blob | CqlType::Custom(_) => {
            hex::parse(text).ok_or_else(|| format!("'{text}' is no blob in hexadecimal digits"))
        }
        _ => cql_type.parse_plain(text).map_err(|error| error.to_string()),
    }
}

/// The bytes of a term; `None` is null.
fn parse_value(cql_type: &CqlType, term: &Term, depth: usize) -> Result<Option<Vec<u8>>, String> {
    let depth = depth.checked_sub(1).ok_or("values are nested too deeply")?;
    let element_of = |element: &CqlType, term: &Term| {
        parse_value(element, term, depth)?.ok_or_else(|| "null is no element of a collection".to_owned())
    };
    let all = |element: &CqlType, terms: &[Term]| -> Result<Vec<Vec<u8>>, String> {
        terms.iter().map(|term| element_of(element, term)).collect()
    };
    Ok(Some(match (cql_type, term) {
        (_, Term::Literal(Literal::Null)) => return Ok(None),
        (CqlType::List { element, .. }, Term::List(terms)) => encode_list(slices(&all(element, terms)?)),
        (CqlType::Set { element, .. }, Term::Set(terms)) => {
            let mut elements = all(element, terms)?;
            elements.sort_by(|left, right| element.compare(left, right));
            elements.dedup_by(|left, right| element.compare(left, right) == Ordering::Equal);
            encode_list(slices(&elements))
        }
        (CqlType::Map { .. }, Term::Set(terms)) if terms.is_empty() => encode_map([]),
        (CqlType::Map { key, value, .. }, Term::Map(terms)) => {
            let entry = |(left, right): &(Term, Term)| {
                Ok::<_, String>((element_of(key, left)?, element_of(value, right)?))
            };
            let mut entries: Vec<(Vec<u8>, Vec<u8>)> = terms.iter().map(entry).collect::<Result<_, _>>()?;
            entries.sort_by(|left, right| key.compare(&left.0, &right.0));
            entries.dedup_by(|left, right| key.compare(&left.0, &right.0) == Ordering::Equal);
            encode_map(
                entries
                    .iter()
                    .map(|(key, value)| (key.as_slice(), value.as_slice())),
            )
        }
        (CqlType::Vector { element, dimension }, Term::List(terms)) => {
            if u32::try_from(terms.len()) != Ok(*dimension) {
                return Err(format!(
                    "the vector has {} elements instead of {dimension}",
                    terms.len()
                ));
            }
            encode_vector(slices(&all(element, terms)?), element)
        }
        (CqlType::Tuple(types), Term::Tuple(terms)) if terms.len() <= types.len() => {
            let parts = types
                .iter()
                .zip(terms)
                .map(|(ty, term)| parse_value(ty, term, depth));
            let parts: Vec<_> = parts.collect::<Result<_, _>>()?;
            encode_tuple(parts.iter().map(Option::as_deref))
        }
        (CqlType::Udt { definition, .. }, Term::UserType(terms)) => {
            let known = |name: &str| definition.fields.iter().any(|(field, _)| field == name);
            if let Some((name, _)) = terms.iter().find(|(name, _)| !known(name.as_str())) {
                return Err(format!(
                    "the type {} has no field {}",
                    definition.name,
                    name.as_str()
                ));
            }
            let value =
                |(field, ty): &(String, CqlType)| match terms.iter().find(|(name, _)| name.as_str() == field)
                {
                    Some((_, term)) => parse_value(ty, term, depth),
                    None => Ok(None),
                };
            let parts: Vec<_> = definition
                .fields
                .iter()
                .map(value)
                .collect::<Result<_, String>>()?;
            encode_tuple(parts.iter().map(Option::as_deref))
        }
        (cql_type, Term::Literal(literal)) if !has_parts(cql_type) => {
            parse_scalar(cql_type, literal_text(literal))?
        }
        _ => return Err(format!("this is no value of type {cql_type}")),
    }))
}

fn slices(elements: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    elements.iter().map(Vec::as_slice)
}

fn literal_text(literal: &Literal) -> &str {
    match literal {
        Literal::Null => "",
        Literal::String(text)
        | Literal::Integer(text)
        | Literal::Float(text)
        | Literal::Uuid(text)
        | Literal::Blob(text)
        | Literal::Duration(text) => text,
        Literal::NaN => "NaN",
        Literal::Infinity => "Infinity",
        Literal::NegativeInfinity => "-Infinity",
        Literal::Boolean(true) => "true",
        Literal::Boolean(false) => "false",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there_and_back(cql_type: &str, text: &str) -> String {
        let cql_type = CqlType::parse_cql(cql_type, "ks", &|_| None).unwrap();
        print(&cql_type, &parse(&cql_type, text).unwrap()).unwrap()
    }

    #[test]
    fn fields_keep_their_values() {
        for (cql_type, text) in [
            ("text", "it's \\ \n"),
            ("int", "-5"),
            ("blob", "0xcafe"),
            ("boolean", "True"),
            ("double", "0.1"),
            ("timestamp", "2026-01-02 03:04:05.678+0000"),
            ("list<text>", "['a', 'it''s']"),
            ("set<int>", "{1, 3}"),
            ("map<text, frozen<list<int>>>", "{'a': [1]}"),
            ("map<int, int>", "{}"),
            ("tuple<int, text>", "(1, null)"),
            ("vector<float, 2>", "[1.5, 1.0E-5]"),
        ] {
            assert_eq!(there_and_back(cql_type, text), text, "{cql_type}");
        }
        assert_eq!(there_and_back("set<int>", "{3, 1, 3}"), "{1, 3}");
    }

    #[test]
    fn wrong_fields_are_refused() {
        for (cql_type, text) in [
            ("int", "x"),
            ("blob", "xyz"),
            ("list<int>", "[1"),
            ("list<int>", "{1: 2}"),
            ("list<int>", "[null]"),
            ("vector<float, 2>", "[1]"),
            ("list<text>", "[f(1)]"),
        ] {
            let cql_type = CqlType::parse_cql(cql_type, "ks", &|_| None).unwrap();
            assert!(parse(&cql_type, text).is_err(), "{cql_type}: {text}");
        }
    }
}
