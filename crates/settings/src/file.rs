//! The settings file: turns YAML into a flat list of names and values, each with its line.
//!
//! Nested names are joined with underscores (`sstable: {selected_format: big}` is `sstable_selected_format`), a list of one
//! value is that value, and a class with parameters is its name.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Spanned;

/// A name with its value as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub name: String,
    pub value: String,
    pub line: u64,
}

/// A YAML value. Scalars stay text.
enum YamlValue {
    Null,
    Scalar(String),
    List(Vec<YamlValue>),
    Map(Vec<(Spanned<String>, YamlValue)>),
}

/// Parses the text of a settings file.
pub(crate) fn parse(text: &str) -> Result<Vec<Entry>, String> {
    let node: YamlValue = if text.lines().all(is_blank) {
        YamlValue::Null
    } else {
        // Errors about settings are one line, so they must not have a snippet of the file.
        serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())?
    };
    let mut entries = Vec::new();
    match node {
        YamlValue::Null => {}
        YamlValue::Map(pairs) => flatten("", pairs, &mut entries),
        YamlValue::Scalar(_) | YamlValue::List(_) => {
            return Err("expected lines of the form `name: value`".to_owned());
        }
    }
    Ok(entries)
}

fn is_blank(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#')
}

fn flatten(prefix: &str, pairs: Vec<(Spanned<String>, YamlValue)>, entries: &mut Vec<Entry>) {
    for (key, node) in pairs {
        let line = key.referenced.line();
        let name = match (prefix, key.value.as_str()) {
            ("", name) => name.to_owned(),
            // `authenticator: {class_name: X, parameters: ..}` is X, as before Cassandra 5.
            (prefix, "class_name") => prefix.to_owned(),
            (prefix, name) => format!("{prefix}_{name}"),
        };
        match node {
            // Compat: a name without a value has no effect.
            YamlValue::Null => {}
            YamlValue::Scalar(value) => entries.push(Entry { name, value, line }),
            // A list of one class, as in `audit_logging_options: {logger: [{class_name: X}]}`.
            YamlValue::List(mut items)
                if items.len() == 1 && name == "audit_logging_options_logger" && is_block(&items[0]) =>
            {
                if let Some(YamlValue::Map(pairs)) = items.pop() {
                    flatten(&name, pairs, entries);
                }
            }
            YamlValue::List(items) => entries.push(Entry {
                name,
                value: list(items),
                line,
            }),
            YamlValue::Map(pairs) if name == "default_compaction" => entries.push(Entry {
                value: compaction(pairs),
                name,
                line,
            }),
            // A block here has parameters of formats, such as `sstable: {format: {bti: ..}}`.
            YamlValue::Map(_) if name == "sstable_format" => entries.push(Entry {
                name: "sstable_format_parameters".to_owned(),
                value: "(a block)".to_owned(),
                line,
            }),
            // Of a block that Ilion does not support, only its name and `enabled` matter.
            YamlValue::Map(pairs) if super::foreign::find(&name).is_some() => entries.push(Entry {
                name,
                value: switch(&pairs),
                line,
            }),
            YamlValue::Map(pairs) => flatten(&name, pairs, entries),
        }
    }
}

fn is_block(value: &YamlValue) -> bool {
    matches!(value, YamlValue::Map(_))
}

/// The value of `enabled` in a block that Ilion does not support; empty if it is missing, which means off.
fn switch(pairs: &[(Spanned<String>, YamlValue)]) -> String {
    let found = pairs
        .iter()
        .find_map(|(key, node)| match (key.value.as_str(), node) {
            ("enabled", YamlValue::Scalar(value)) => Some(value.clone()),
            _ => None,
        });
    found.unwrap_or_default()
}

/// Converts `{class_name: C, parameters: {a: b}}` to the text `C; a=b`.
fn compaction(pairs: Vec<(Spanned<String>, YamlValue)>) -> String {
    let (mut class, mut options) = (String::new(), String::new());
    for (key, node) in pairs {
        match (key.value.as_str(), node) {
            ("class_name", YamlValue::Scalar(name)) => class = name,
            ("parameters", YamlValue::Map(parameters)) => options.push_str(&parameter_list(parameters)),
            // The parameters may also be a list of one block.
            ("parameters", YamlValue::List(blocks)) => {
                for block in blocks {
                    if let YamlValue::Map(parameters) = block {
                        options.push_str(&parameter_list(parameters));
                    }
                }
            }
            (name, _) => options.push_str(&format!("; {name}")),
        }
    }
    class + &options
}

fn parameter_list(parameters: Vec<(Spanned<String>, YamlValue)>) -> String {
    let parameters = parameters.into_iter();
    parameters
        .map(|(key, node)| match node {
            YamlValue::Scalar(value) => format!("; {}={value}", key.value),
            _ => format!("; {}", key.value),
        })
        .collect()
}

/// Joins the values of a list. Several joined values do not parse as one value.
fn list(items: Vec<YamlValue>) -> String {
    let texts: Vec<String> = items
        .into_iter()
        .map(|item| match item {
            YamlValue::Scalar(text) => text,
            _ => "(a block)".to_owned(),
        })
        .collect();
    texts.join(LIST_SEPARATOR)
}

/// Separator of joined values.
pub(crate) const LIST_SEPARATOR: &str = ", ";

impl<'de> Deserialize<'de> for YamlValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(YamlVisitor)
    }
}

struct YamlVisitor;

impl<'de> Visitor<'de> for YamlVisitor {
    type Value = YamlValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value, a list or a block")
    }

    fn visit_bool<E>(self, value: bool) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_string()))
    }

    fn visit_str<E>(self, value: &str) -> Result<YamlValue, E> {
        Ok(YamlValue::Scalar(value.to_owned()))
    }

    fn visit_unit<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_none<E>(self) -> Result<YamlValue, E> {
        Ok(YamlValue::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<YamlValue, D::Error> {
        YamlValue::deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<YamlValue, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(YamlValue::List(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<YamlValue, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(YamlValue::Map(pairs))
    }
}
