//! Decodes the cells of a row by name. A missing or null cell is `None`; a cell that does not decode is an error that names the
//! row.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_types::{CqlType, collection_elements, map_entries};
use uuid::Uuid;

use super::SchemaRow;
use crate::{Error, Keyspace};

impl SchemaRow {
    fn cell(&self, name: &str) -> Option<&Bytes> {
        self.cells.iter().find(|(column, _)| *column == name)?.1.as_ref()
    }

    /// An error about this row.
    pub(super) fn corrupt(&self, expected: impl Into<String>) -> Error {
        let clustering: Vec<_> = self
            .clustering
            .iter()
            .map(|part| String::from_utf8_lossy(part))
            .collect();
        let row = format!("{} {}", self.keyspace, clustering.join(" "));
        Error::Corrupt {
            table: self.table,
            row,
            expected: expected.into(),
        }
    }

    pub(super) fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, Error> {
        value.ok_or_else(|| self.corrupt(format!("a value of {name}")))
    }

    /// Parses a type in a text of this row.
    pub(super) fn parse_type(&self, text: &str, keyspace: &Keyspace) -> Result<CqlType, Error> {
        let ty = keyspace
            .parse_type(text)
            .map_err(|refused| self.corrupt(format!("a type, not {text} ({refused})")))?;
        self.check_limits(&ty)?;
        Ok(ty)
    }

    /// Refuses types that are so large or deep that walks of them would take too long.
    pub(super) fn check_limits(&self, ty: &CqlType) -> Result<(), Error> {
        ty.check_limits()
            .map_err(|refused| self.corrupt(format!("a type within the limits ({refused})")))
    }

    /// A component of the clustering that is text.
    pub(super) fn key_text(&self, index: usize) -> Result<String, Error> {
        let bytes = self
            .clustering
            .get(index)
            .ok_or_else(|| self.corrupt("a longer clustering"))?;
        self.utf8(bytes)
    }

    fn utf8(&self, bytes: &[u8]) -> Result<String, Error> {
        std::str::from_utf8(bytes)
            .map(str::to_owned)
            .map_err(|_| self.corrupt("UTF-8"))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Error> {
        self.cell(name).map(|bytes| self.utf8(bytes)).transpose()
    }

    pub(super) fn boolean(&self, name: &str) -> Option<bool> {
        self.cell(name)
            .filter(|bytes| !bytes.is_empty())
            .map(|bytes| bytes[0] != 0)
    }

    fn fixed<const N: usize>(&self, name: &str) -> Result<Option<[u8; N]>, Error> {
        let Some(bytes) = self.cell(name).filter(|bytes| !bytes.is_empty()) else {
            return Ok(None);
        };
        match <[u8; N]>::try_from(&bytes[..]) {
            Ok(array) => Ok(Some(array)),
            Err(_) => Err(self.corrupt(format!("{N} bytes in {name}"))),
        }
    }

    pub(super) fn int(&self, name: &str) -> Result<Option<i32>, Error> {
        Ok(self.fixed(name)?.map(i32::from_be_bytes))
    }

    pub(super) fn bigint(&self, name: &str) -> Result<Option<i64>, Error> {
        Ok(self.fixed(name)?.map(i64::from_be_bytes))
    }

    pub(super) fn double(&self, name: &str) -> Result<Option<f64>, Error> {
        Ok(self.fixed(name)?.map(f64::from_be_bytes))
    }

    pub(super) fn uuid(&self, name: &str) -> Result<Option<Uuid>, Error> {
        Ok(self.fixed(name)?.map(Uuid::from_bytes))
    }

    pub(super) fn text_map(&self, name: &str) -> Result<Option<BTreeMap<String, String>>, Error> {
        let Some(map) = self.blob_map(name)? else {
            return Ok(None);
        };
        map.into_iter()
            .map(|(key, value)| Ok((key, self.utf8(&value)?)))
            .collect::<Result<_, _>>()
            .map(Some)
    }

    pub(super) fn blob_map(&self, name: &str) -> Result<Option<BTreeMap<String, Bytes>>, Error> {
        let Some(bytes) = self.cell(name) else {
            return Ok(None);
        };
        let bad = |_| self.corrupt(format!("a map in {name}"));
        let mut map = BTreeMap::new();
        for entry in map_entries(bytes).map_err(bad)? {
            let (key, value) = entry.map_err(bad)?;
            map.insert(self.utf8(key)?, Bytes::copy_from_slice(value));
        }
        Ok(Some(map))
    }

    pub(super) fn texts(&self, name: &str) -> Result<Option<Vec<String>>, Error> {
        self.cell(name).map(|bytes| self.text_list(bytes)).transpose()
    }

    /// A list of booleans.
    pub(super) fn booleans(&self, name: &str) -> Result<Option<Vec<bool>>, Error> {
        let Some(bytes) = self.cell(name) else {
            return Ok(None);
        };
        let bad = |_| self.corrupt(format!("a list of booleans in {name}"));
        let mut booleans = Vec::new();
        for element in collection_elements(bytes).map_err(bad)? {
            booleans.push(element.map_err(bad)?.first().is_some_and(|byte| *byte != 0));
        }
        Ok(Some(booleans))
    }

    /// A serialized list or set of texts.
    pub(super) fn text_list(&self, bytes: &[u8]) -> Result<Vec<String>, Error> {
        let bad = |_| self.corrupt("a list of texts");
        let mut texts = Vec::new();
        for element in collection_elements(bytes).map_err(bad)? {
            texts.push(self.utf8(element.map_err(bad)?)?);
        }
        Ok(texts)
    }
}
