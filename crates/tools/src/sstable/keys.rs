//! Partition keys as text: components joined by colons (`CompositeType.getString`).

use anyhow::{Context as _, bail};
use bytes::Bytes;
use ilion_schema::TableSchema;
use ilion_sstable::dump::key_texts;
use ilion_types::{CqlType, encode_composite};

/// Prints a key; colons inside components are escaped.
pub(super) fn print_key(table: &TableSchema, key: &[u8]) -> String {
    let mut texts = key_texts(table, key);
    match texts.len() {
        1 => texts.remove(0),
        _ => texts
            .iter()
            .map(|text| text.replace(':', "\\:"))
            .collect::<Vec<_>>()
            .join(":"),
    }
}

/// Parses a key from text and serializes it.
pub(super) fn parse_key(table: &TableSchema, text: &str) -> anyhow::Result<Bytes> {
    let types: Vec<&CqlType> = table.partition_key().map(|column| &column.ty).collect();
    let texts = match types.len() {
        1 => vec![text.to_owned()],
        _ => split_components(text),
    };
    if texts.len() != types.len() {
        bail!("{text}: the key has {} components, joined by colons", types.len());
    }
    let mut parts = Vec::new();
    for (ty, part) in types.iter().zip(&texts) {
        let value = parse_component(ty, part);
        parts.push(value.with_context(|| format!("{text}: no key of type {ty}"))?);
    }
    if let [only] = &mut parts[..] {
        return Ok(std::mem::take(only).into());
    }
    let mut key = Vec::new();
    encode_composite(parts.iter().map(Vec::as_slice), &mut key)?;
    Ok(key.into())
}

fn parse_component(ty: &CqlType, text: &str) -> Result<Vec<u8>, ilion_types::Error> {
    match ty {
        // Keys of these types are printed as hex.
        _ if ty.is_collection() || matches!(ty, CqlType::Vector { .. }) => CqlType::Blob.parse_plain(text),
        _ => ty.parse_plain(text),
    }
}

fn split_components(text: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek()) {
            ('\\', Some(':')) => {
                characters.next();
                push(&mut parts, ':');
            }
            (':', _) => parts.push(String::new()),
            _ => push(&mut parts, character),
        }
    }
    parts
}

fn push(parts: &mut [String], character: char) {
    if let Some(last) = parts.last_mut() {
        last.push(character);
    }
}
