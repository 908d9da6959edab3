//! `default_compaction`: the compaction of tables that do not set it.
//!
//! ```text
//! default := class (";" option "=" value)*
//! ```

use std::collections::BTreeMap;

use ilion_schema::{Properties, PropertyValue, TableOptions};

use crate::form::Form;

/// Class and options as in the table option `compaction`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultCompaction(pub BTreeMap<String, String>);

impl Form for DefaultCompaction {
    fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(';').map(str::trim);
        let class = parts.next().unwrap_or_default();
        let mut options = BTreeMap::from([("class".to_owned(), class.to_owned())]);
        for part in parts {
            let (name, value) = part
                .split_once('=')
                .ok_or_else(|| format!("an option and its value, as in enabled=true, not {part}"))?;
            options.insert(name.trim().to_owned(), value.trim().to_owned());
        }
        let property = PropertyValue::Map(options.clone());
        let properties: Properties = [("compaction", property)].into_iter().collect();
        match TableOptions::parse_new(&properties) {
            Ok(_) => Ok(Self(options)),
            Err(error) => Err(format!("a compaction strategy with its options: {error}")),
        }
    }

    fn print(&self) -> String {
        let mut text = self.0.get("class").cloned().unwrap_or_default();
        for (name, value) in self.0.iter().filter(|(name, _)| *name != "class") {
            text.push_str(&format!("; {name}={value}"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_and_its_options_are_checked_as_those_of_a_table() {
        let text = "UnifiedCompactionStrategy; scaling_parameters=T4, L10; target_sstable_size=1GiB";
        assert_eq!(DefaultCompaction::parse(text).unwrap().print(), text);
        assert!(DefaultCompaction::parse("FastCompactionStrategy").is_err());
        assert!(DefaultCompaction::parse("UnifiedCompactionStrategy; min_threshold=4").is_err());
        assert!(DefaultCompaction::parse("UnifiedCompactionStrategy; x").is_err());
    }
}
