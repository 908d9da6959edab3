//! The properties after `WITH`, as the statement has them: names with texts or maps of texts.
//!
//! Not here: which properties exist and what they mean (`options`, `replication`).

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

use crate::error::{Error, syntax};

/// The value of a property. Numbers, booleans and words are kept as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PropertyValue {
    /// `'text'`, `0.1`, `true`.
    Text(String),
    /// `{'a': 1}`.
    Map(BTreeMap<String, String>),
}

impl From<&str> for PropertyValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<const N: usize> From<[(&str, &str); N]> for PropertyValue {
    fn from(pairs: [(&str, &str); N]) -> Self {
        Self::Map(
            pairs
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value.to_owned()))
                .collect(),
        )
    }
}

/// The properties, by lower-case name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Properties(pub BTreeMap<String, PropertyValue>);

impl<'a, V: Into<PropertyValue>> FromIterator<(&'a str, V)> for Properties {
    fn from_iter<I: IntoIterator<Item = (&'a str, V)>>(pairs: I) -> Self {
        Self(
            pairs
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
        )
    }
}

impl Properties {
    /// Refuses names that are not among `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Error> {
        match self.0.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => syntax(format!("Unknown property '{name}'")),
            None => Ok(()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Result<Option<&str>, Error> {
        match self.0.get(name) {
            None => Ok(None),
            Some(PropertyValue::Text(text)) => Ok(Some(text)),
            Some(PropertyValue::Map(_)) => syntax(format!(
                "Invalid value for property '{name}'. It should be a string"
            )),
        }
    }

    pub(crate) fn map(&self, name: &str) -> Result<Option<&BTreeMap<String, String>>, Error> {
        match self.0.get(name) {
            None => Ok(None),
            Some(PropertyValue::Map(map)) => Ok(Some(map)),
            Some(PropertyValue::Text(_)) => syntax(format!(
                "Invalid value for property '{name}'. It should be a map."
            )),
        }
    }

    pub(crate) fn int(&self, name: &str) -> Result<Option<i32>, Error> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => syntax(format!("Invalid integer value {text} for '{name}'")),
        }
    }

    pub(crate) fn double(&self, name: &str) -> Result<Option<f64>, Error> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.trim().parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => syntax(format!("Invalid double value {text} for '{name}'")),
        }
    }

    pub(crate) fn boolean(&self, name: &str) -> Result<Option<bool>, Error> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.to_ascii_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(Some(true)),
            "0" | "false" | "no" => Ok(Some(false)),
            _ => syntax(format!(
                "Invalid boolean value {text} for '{name}'. Positive values can be '1', 'true' or 'yes'. \
                 Negative values can be '0', 'false' or 'no'."
            )),
        }
    }
}
