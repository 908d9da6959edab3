//! `system_views.settings`, which can be updated.

use std::sync::Arc;

use bytes::Bytes;
use ilion_engine::{VirtualRow, VirtualTable};
use ilion_settings::Settings;

use crate::live::LiveSettings;
use crate::values::{cell, text};

/// `system_views.settings`.
pub(super) struct SettingsTable(pub Arc<LiveSettings>);

impl VirtualTable for SettingsTable {
    fn rows(&self) -> Vec<VirtualRow> {
        rows(&self.0.current())
    }

    fn is_settable(&self) -> bool {
        true
    }

    fn set(&self, key: &[u8], cells: &[(String, Option<Bytes>)]) -> Result<(), String> {
        let name = String::from_utf8_lossy(key);
        let [(_, Some(value))] = cells else {
            return Err(format!("{name} needs a value"));
        };
        self.0.change(&[(&name, &String::from_utf8_lossy(value))])
    }
}

fn rows(settings: &Settings) -> Vec<VirtualRow> {
    settings
        .printed()
        .map(|(name, value)| VirtualRow {
            partition_key: vec![text(name)],
            clustering: Vec::new(),
            cells: vec![cell("value", text(&value))],
        })
        .collect()
}
