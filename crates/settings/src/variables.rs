//! Environment variables that other projects have named: OpenTelemetry, and the Cassandra image.
//!
//! A variable of our own (`ILION_..`) beats both. Variables of the Cassandra image count only with `cassandra_variables: true`, as the
//! container sets it: elsewhere they may be meant for another program.

use std::ffi::OsString;

use crate::{Loaded, Settings, SettingsError, is_known, text_of};

/// What the value of a variable means.
enum Meaning {
    /// The value of the setting with this name, after the unit is appended.
    Setting(&'static str, &'static str),
    /// The exporter of a signal: `otlp`, or `none`, which switches off the endpoint in this setting.
    Exporter(&'static str),
    /// `true` switches everything off.
    Disabled,
    /// Only this value is accepted.
    Only(&'static str),
    /// It has no meaning for Ilion, for this reason.
    Foreign(&'static str),
}

const OPENTELEMETRY: &[(&str, Meaning)] = &[
    (
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        Meaning::Setting("otlp_endpoint", ""),
    ),
    (
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        Meaning::Setting("otlp_traces_endpoint", ""),
    ),
    (
        "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
        Meaning::Setting("otlp_metrics_endpoint", ""),
    ),
    ("OTEL_EXPORTER_OTLP_HEADERS", Meaning::Setting("otlp_headers", "")),
    (
        "OTEL_EXPORTER_OTLP_TIMEOUT",
        Meaning::Setting("otlp_timeout", "ms"),
    ),
    (
        "OTEL_METRIC_EXPORT_INTERVAL",
        Meaning::Setting("otlp_metrics_interval", "ms"),
    ),
    ("OTEL_SERVICE_NAME", Meaning::Setting("otlp_service_name", "")),
    (
        "OTEL_RESOURCE_ATTRIBUTES",
        Meaning::Setting("otlp_resource_attributes", ""),
    ),
    // These come after the endpoints, since they may switch an endpoint off.
    ("OTEL_TRACES_EXPORTER", Meaning::Exporter("otlp_traces_endpoint")),
    (
        "OTEL_METRICS_EXPORTER",
        Meaning::Exporter("otlp_metrics_endpoint"),
    ),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", Meaning::Only("http/protobuf")),
    (
        "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
        Meaning::Only("http/protobuf"),
    ),
    (
        "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
        Meaning::Only("http/protobuf"),
    ),
    ("OTEL_EXPORTER_OTLP_COMPRESSION", Meaning::Only("none")),
    ("OTEL_SDK_DISABLED", Meaning::Disabled),
    (
        "OTEL_LOGS_EXPORTER",
        Meaning::Foreign("the log goes where log_to says"),
    ),
];

const OPENTELEMETRY_PREFIX: &str = "OTEL_";

const CASSANDRA: &[(&str, Meaning)] = &[
    ("CASSANDRA_CLUSTER_NAME", Meaning::Setting("cluster_name", "")),
    ("CASSANDRA_DC", Meaning::Setting("data_center", "")),
    ("CASSANDRA_RACK", Meaning::Setting("rack", "")),
    ("CASSANDRA_RPC_ADDRESS", Meaning::Setting("rpc_address", "")),
    (
        "CASSANDRA_BROADCAST_RPC_ADDRESS",
        Meaning::Setting("broadcast_rpc_address", ""),
    ),
    ("CASSANDRA_LISTEN_ADDRESS", Meaning::Setting("listen_address", "")),
    (
        "CASSANDRA_BROADCAST_ADDRESS",
        Meaning::Setting("broadcast_address", ""),
    ),
    ("CASSANDRA_NUM_TOKENS", Meaning::Setting("num_tokens", "")),
    (
        "CASSANDRA_ENDPOINT_SNITCH",
        Meaning::Setting("endpoint_snitch", ""),
    ),
    ("CASSANDRA_SEEDS", Meaning::Setting("seed_provider", "")),
    ("CASSANDRA_START_RPC", Meaning::Foreign("there is no Thrift")),
    ("MAX_HEAP_SIZE", Meaning::Foreign("there is no JVM")),
    ("HEAP_NEWSIZE", Meaning::Foreign("there is no JVM")),
    ("JVM_OPTS", Meaning::Foreign("there is no JVM")),
    ("JVM_EXTRA_OPTS", Meaning::Foreign("there is no JVM")),
];

impl Loaded {
    /// Adds the variables of other projects. They do not change the settings in `ours`, which variables of our own have set.
    pub(crate) fn add_foreign_variables(
        &mut self,
        ours: &[String],
        variables: Vec<(String, OsString)>,
    ) -> Result<(), SettingsError> {
        let groups = match self.settings.cassandra_variables {
            true => &[OPENTELEMETRY, CASSANDRA][..],
            false => &[OPENTELEMETRY][..],
        };
        for (name, meaning) in groups.iter().copied().flatten() {
            let Some((_, value)) = variables.iter().find(|(variable, _)| variable == name) else {
                continue;
            };
            let place = format!("environment variable {name}");
            let value = text_of(&place, value.clone())?;
            // As in OpenTelemetry, an empty variable counts as missing.
            if !value.is_empty() {
                self.add_foreign_variable(&place, meaning, &value, ours)?;
            }
        }
        let is_new = |name: &str| {
            name.starts_with(OPENTELEMETRY_PREFIX) && OPENTELEMETRY.iter().all(|(known, _)| *known != name)
        };
        for (name, _) in variables.iter().filter(|(name, _)| is_new(name)) {
            self.warnings.push(format!(
                "environment variable {name}: passed over, since Ilion does not know it"
            ));
        }
        Ok(())
    }

    fn add_foreign_variable(
        &mut self,
        place: &str,
        meaning: &Meaning,
        value: &str,
        ours: &[String],
    ) -> Result<(), SettingsError> {
        let refuse = |problem: String| SettingsError {
            place: place.to_owned(),
            problem,
        };
        match meaning {
            Meaning::Setting(name, _) | Meaning::Exporter(name) if ours.iter().any(|own| own == name) => {}
            Meaning::Setting(name, unit) => {
                debug_assert!(is_known(name), "{name}");
                self.set(name, &format!("{value}{unit}"), || place.to_owned())?;
            }
            Meaning::Exporter(name) => match value {
                "otlp" => {}
                "none" => self.set(name, "none", || place.to_owned())?,
                other => return Err(refuse(format!("expected otlp or none, got {other:?}"))),
            },
            Meaning::Disabled => {
                if value.eq_ignore_ascii_case("true") {
                    let off = Settings::default();
                    self.settings.otlp_endpoint = off.otlp_endpoint;
                    self.settings.otlp_traces_endpoint = off.otlp_traces_endpoint;
                    self.settings.otlp_metrics_endpoint = off.otlp_metrics_endpoint;
                }
            }
            Meaning::Only(only) if value == *only => {}
            Meaning::Only(only) => return Err(refuse(format!("Ilion sends {only} only, got {value:?}"))),
            Meaning::Foreign(reason) => {
                self.warnings
                    .push(format!("{place}: passed over, since {reason}"));
            }
        }
        Ok(())
    }
}
