//! The audit log: its state, switching it, and its metrics.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ilion_audit::{Audit, Choice};
use ilion_settings::{Loaded, Settings};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use serde::{Deserialize, Serialize};

use super::AdminError;
use crate::audit_options::{audit_options, check_switched_on};
use crate::auditor::Auditor;

/// Common start of the names of the audit log's settings.
const PREFIX: &str = "audit_logging_options_";

/// Switches the audit log on or off, until the next start. A field that is `None` keeps the value of its setting.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct AuditLogOrder {
    /// True switches it on.
    pub on: bool,
    /// Class of the logger.
    pub logger: Option<String>,
    /// Keyspaces whose statements are logged, separated by commas.
    pub included_keyspaces: Option<String>,
    /// Keyspaces whose statements are not logged, separated by commas.
    pub excluded_keyspaces: Option<String>,
    /// Categories that are logged, separated by commas.
    pub included_categories: Option<String>,
    /// Categories that are not logged, separated by commas.
    pub excluded_categories: Option<String>,
    /// Roles whose requests are logged, separated by commas.
    pub included_users: Option<String>,
    /// Roles whose requests are not logged, separated by commas.
    pub excluded_users: Option<String>,
}

/// The state of the audit log: its options, without the prefix of their settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditLogReport {
    /// Names and values; `enabled` is the first.
    pub options: Vec<(String, String)>,
}

/// Compat: the names and columns that `nodetool getauditlog` prints.
impl fmt::Display for AuditLogReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.options.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let lines = self
            .options
            .iter()
            .map(|(name, value)| format!("{name:width$} {value}"));
        f.write_str(&lines.collect::<Vec<_>>().join("\n"))
    }
}

impl AuditLogOrder {
    /// Switches the audit log as the order says.
    pub(super) fn execute(&self, audit: &Audit, settings: &Settings) -> Result<(), AdminError> {
        if !self.on {
            audit.switch_off();
            tracing::info!("the audit log is off, by order of an operator");
            return Ok(());
        }
        let settings = self.adjusted(settings)?;
        check_switched_on(&settings).map_err(AdminError::Refused)?;
        audit
            .switch_on(&audit_options(&settings))
            .map_err(|error| AdminError::Failed(error.to_string()))?;
        tracing::info!("the audit log is on, by order of an operator");
        Ok(())
    }

    fn adjusted(&self, settings: &Settings) -> Result<Settings, AdminError> {
        let given = [
            ("logger", &self.logger),
            ("included_keyspaces", &self.included_keyspaces),
            ("excluded_keyspaces", &self.excluded_keyspaces),
            ("included_categories", &self.included_categories),
            ("excluded_categories", &self.excluded_categories),
            ("included_users", &self.included_users),
            ("excluded_users", &self.excluded_users),
        ];
        let mut loaded = Loaded {
            settings: settings.clone(),
            ..Loaded::default()
        };
        for (name, value) in given {
            if let Some(value) = value {
                loaded
                    .set(&format!("{PREFIX}{name}"), value, || name.to_owned())
                    .map_err(|error| AdminError::Refused(error.to_string()))?;
            }
        }
        Ok(loaded.settings)
    }
}

impl AuditLogReport {
    /// The current options: those of the settings or, while the log is on, those of its own filter.
    pub(super) fn of(audit: &Audit, settings: &Settings) -> Self {
        let running = audit.running();
        let filter = running.as_ref().map(|log| log.filter());
        let filter = filter.as_deref();
        let names = |names: &[String]| match names {
            [] => "none".to_owned(),
            names => names.join(", "),
        };
        let choices = |choice: &Choice| (names(choice.included()), names(choice.excluded()));
        let held = filter.map(|filter| [&filter.keyspaces, &filter.categories, &filter.users].map(choices));
        let current = |name: &str, value: String| {
            let Some([keyspaces, categories, users]) = &held else {
                return value;
            };
            match name {
                "logger" => "FileAuditLogger".to_owned(),
                "included_keyspaces" => keyspaces.0.clone(),
                "excluded_keyspaces" => keyspaces.1.clone(),
                "included_categories" => categories.0.clone(),
                "excluded_categories" => categories.1.clone(),
                "included_users" => users.0.clone(),
                "excluded_users" => users.1.clone(),
                _ => value,
            }
        };
        let of_setting = |(name, value): (&str, String)| {
            let name = name.strip_prefix(PREFIX)?;
            let value = match name {
                "enabled" => running.is_some().to_string(),
                "audit_logs_dir" => settings.audit_path().display().to_string(),
                name => current(name, value),
            };
            Some((name.to_owned(), value))
        };
        Self {
            options: settings.printed().filter_map(of_setting).collect(),
        }
    }
}

/// Collects the metrics of the audit log.
pub(super) struct AuditMetrics(pub Arc<Auditor>);

impl fmt::Debug for AuditMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AuditMetrics")
    }
}

impl Collector for AuditMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let audit = self.0.audit();
        let counts = audit.counts();
        for (name, help, count) in [
            (
                "audit_entries",
                "Entries of the audit log that were written",
                &counts.written,
            ),
            (
                "audit_entries_dropped",
                "Entries of the audit log that were dropped, since its queue was full",
                &counts.dropped,
            ),
            (
                "audit_entries_failed",
                "Entries of the audit log that were lost, since its file could not be written",
                &counts.failed,
            ),
        ] {
            let counter = ConstCounter::new(count.load(Relaxed));
            counter.encode(encoder.encode_descriptor(name, help, None, counter.metric_type())?)?;
        }
        let gauge = ConstGauge::new(i64::try_from(audit.queued_bytes()).unwrap_or(i64::MAX));
        let help = "Entries of the audit log that wait to be written";
        gauge.encode(encoder.encode_descriptor("audit_queue_bytes", help, None, gauge.metric_type())?)
    }
}
