//! The options of OpenTelemetry, from the settings and the environment.

use ilion_telemetry::{TelemetryOptions, parse_pairs, url_below};
use uuid::Uuid;

use ilion_settings::Settings;

const NAME: &str = "service.name";
/// Default of `service.name`.
const NAME_DEFAULT: &str = "ilion";
/// The value that an endpoint has to switch its signal off.
const NOWHERE: &str = "none";

/// The options of the exporter; `None` if no signal is sent.
///
/// # Errors
/// The text says which setting cannot be used.
pub(crate) fn telemetry_options(
    settings: &Settings,
    host_id: Uuid,
) -> Result<Option<TelemetryOptions>, String> {
    let url = |given: &Option<String>, path: &str| match given.as_deref() {
        Some(NOWHERE) => None,
        Some(url) => Some(url.to_owned()),
        None => settings
            .otlp_endpoint
            .as_deref()
            .map(|endpoint| url_below(endpoint, path)),
    };
    let traces_url = url(&settings.otlp_traces_endpoint, "/v1/traces");
    let metrics_url = url(&settings.otlp_metrics_endpoint, "/v1/metrics");
    if traces_url.is_none() && metrics_url.is_none() {
        return Ok(None);
    }
    let headers = settings
        .otlp_headers
        .as_ref()
        .map_or("", |headers| headers.text());
    let headers = parse_pairs(headers).map_err(|problem| format!("otlp_headers: {problem}"))?;
    let given = settings.otlp_resource_attributes.as_deref().unwrap_or("");
    let given = parse_pairs(given).map_err(|problem| format!("otlp_resource_attributes: {problem}"))?;
    for (name, value) in [
        ("otlp_timeout", settings.otlp_timeout),
        ("otlp_metrics_interval", settings.otlp_metrics_interval),
    ] {
        if value.is_zero() {
            return Err(format!("{name}: expected more than zero"));
        }
    }
    Ok(Some(TelemetryOptions {
        traces_url,
        metrics_url,
        headers,
        timeout: settings.otlp_timeout,
        metrics_interval: settings.otlp_metrics_interval,
        resource: resource(settings, host_id, given),
        version: env!("CARGO_PKG_VERSION"),
    }))
}

/// The attributes of the node. Those in `given` replace the defaults of the same name.
fn resource(settings: &Settings, host_id: Uuid, given: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    let mut add = |name: &str, value: String| {
        if all.iter().all(|(known, _)| known != name) {
            all.push((name.to_owned(), value));
        }
    };
    if let Some(name) = &settings.otlp_service_name {
        add(NAME, name.clone());
    }
    for (name, value) in given {
        add(&name, value);
    }
    add(NAME, NAME_DEFAULT.to_owned());
    add("service.version", env!("CARGO_PKG_VERSION").to_owned());
    add("service.instance.id", host_id.to_string());
    add("ilion.cluster.name", settings.cluster_name.clone());
    add("ilion.data_center", settings.data_center.clone());
    add("ilion.rack", settings.rack.clone());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(change: impl FnOnce(&mut Settings)) -> Result<Option<TelemetryOptions>, String> {
        let mut settings = Settings::default();
        change(&mut settings);
        telemetry_options(&settings, Uuid::nil())
    }

    #[test]
    fn an_endpoint_is_for_both_signals_unless_one_has_its_own() {
        assert_eq!(options(|_| {}), Ok(None));
        let both = options(|s| s.otlp_endpoint = Some("http://c:4318/".to_owned()))
            .unwrap()
            .unwrap();
        assert_eq!(both.traces_url.as_deref(), Some("http://c:4318/v1/traces"));
        assert_eq!(both.metrics_url.as_deref(), Some("http://c:4318/v1/metrics"));
        let traces = options(|s| {
            s.otlp_traces_endpoint = Some("http://t/x".to_owned());
            s.otlp_endpoint = Some("http://c".to_owned());
            s.otlp_metrics_endpoint = Some("none".to_owned());
        });
        let traces = traces.unwrap().unwrap();
        assert_eq!(
            (traces.traces_url.as_deref(), traces.metrics_url),
            (Some("http://t/x"), None)
        );
    }

    #[test]
    fn names_that_are_given_beat_ours() {
        let name = |change: fn(&mut Settings)| {
            let given = options(|settings| {
                settings.otlp_endpoint = Some("http://c".to_owned());
                change(settings);
            });
            let resource = given.unwrap().unwrap().resource;
            resource.into_iter().find(|(name, _)| name == NAME).unwrap().1
        };
        assert_eq!(name(|_| {}), "ilion");
        assert_eq!(
            name(|s| s.otlp_resource_attributes = Some("a=b,service.name=shop".to_owned())),
            "shop"
        );
        assert_eq!(
            name(|s| {
                s.otlp_resource_attributes = Some("service.name=shop".to_owned());
                s.otlp_service_name = Some("db".to_owned());
            }),
            "db"
        );
    }
}
