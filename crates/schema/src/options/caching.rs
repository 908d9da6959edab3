//! `WITH caching = {'keys': ..., 'rows_per_partition': ...}`.

use std::collections::BTreeMap;

use crate::error::config;
use crate::{CachingOptions, Error};

const KEYS: &str = "keys";
const ROWS: &str = "rows_per_partition";

pub(crate) fn parse(map: &BTreeMap<String, String>) -> Result<CachingOptions, Error> {
    let unknown: Vec<&str> = map
        .keys()
        .map(String::as_str)
        .filter(|key| ![KEYS, ROWS].contains(key))
        .collect();
    if !unknown.is_empty() {
        return config(format!(
            "Invalid caching sub-options [{}]: only '{KEYS}' and '{ROWS}' are allowed",
            unknown.join(", ")
        ));
    }
    let keys = match map.get(KEYS).map(|value| value.to_ascii_uppercase()).as_deref() {
        None | Some("ALL") => true,
        Some("NONE") => false,
        Some(other) => {
            return config(format!(
                "Invalid value '{other}' for caching sub-option '{KEYS}': only 'ALL' and 'NONE' are allowed"
            ));
        }
    };
    let rows_per_partition = match map.get(ROWS).map(|value| value.to_ascii_uppercase()).as_deref() {
        None | Some("NONE") => None,
        Some("ALL") => Some(u32::MAX),
        Some(number) => match number.parse::<i32>().map(u32::try_from) {
            Ok(Ok(0)) => None,
            Ok(Ok(rows)) => Some(rows),
            _ => {
                return config(format!(
                    "Invalid value '{number}' for caching sub-option '{ROWS}': only 'ALL', 'NONE', and integer values \
                     are allowed"
                ));
            }
        },
    };
    Ok(CachingOptions {
        keys,
        rows_per_partition,
    })
}

impl CachingOptions {
    /// The map in the form of `system_schema` and DESCRIBE.
    pub(crate) fn to_map(&self) -> BTreeMap<String, String> {
        let keys = if self.keys { "ALL" } else { "NONE" };
        let rows = match self.rows_per_partition {
            None => "NONE".to_owned(),
            Some(u32::MAX) => "ALL".to_owned(),
            Some(rows) => rows.to_string(),
        };
        [(KEYS.to_owned(), keys.to_owned()), (ROWS.to_owned(), rows)].into()
    }
}
