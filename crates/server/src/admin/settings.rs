//! Settings at run time, and the port of clients.

use serde::{Deserialize, Serialize};

/// The current settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SettingsReport {
    /// Names and values, in the order of the settings' documentation.
    pub settings: Vec<(String, String)>,
    /// The values at the start of those that have changed since.
    pub at_start: Vec<(String, String)>,
}

impl SettingsReport {
    /// The value of a setting at the start.
    pub fn value_at_start(&self, name: &str) -> Option<&str> {
        let found = self.at_start.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value).or_else(|| self.value(name))
    }

    /// The value of a setting.
    pub fn value(&self, name: &str) -> Option<&str> {
        let found = self.settings.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }
}

/// Changes settings until the next start: all of them or none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SettingsOrder {
    /// `name=value`, one per line.
    pub assignments: String,
}

impl SettingsOrder {
    pub(super) fn pairs(&self) -> Result<Vec<(&str, &str)>, String> {
        let expected = |line: &str| format!("expected name=value, got {line:?}");
        self.assignments
            .lines()
            .map(|line| {
                let (name, value) = line.split_once('=').ok_or_else(|| expected(line))?;
                Ok((name.trim(), value.trim()))
            })
            .collect()
    }
}

/// Whether clients may connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinaryReport {
    /// Whether clients may connect.
    pub on: bool,
}
