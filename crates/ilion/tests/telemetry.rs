//! `ilion serve` with an OTLP endpoint: metrics arrive, and the last spans do when it stops.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

#[path = "../../telemetry/tests/receiver/mod.rs"]
mod receiver;

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prost::Message as _;
use receiver::collector;

#[test]
fn the_metrics_of_a_node_reach_a_collector() {
    let (endpoint, requests) = collector(vec![]);
    let directory = tempfile::tempdir().unwrap();
    let mut node = Command::new(env!("CARGO_BIN_EXE_ilion"))
        .args(["serve", "--port", "0", "--admin-port", "0", "--data"])
        .arg(directory.path().join("node"))
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .env("OTEL_METRIC_EXPORT_INTERVAL", "100")
        .env("OTEL_SERVICE_NAME", "shop-db")
        // A machine without certificates of issuers: they are needed for https only.
        .env("SSL_CERT_FILE", "/nonexistent")
        .env("SSL_CERT_DIR", "/nonexistent")
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    lines.next().expect("it did not start").unwrap();
    let request = requests.recv().unwrap();
    assert!(request.head.starts_with("post /v1/metrics "), "{}", request.head);
    let stopped = Command::new("kill").arg(node.id().to_string()).status().unwrap();
    assert!(stopped.success() && node.wait().unwrap().success());
    let message = ExportMetricsServiceRequest::decode(&*request.body).unwrap();
    let resource = &message.resource_metrics[0];
    let about = format!("{:?}", resource.resource);
    assert!(
        about.contains("shop-db") && about.contains("service.instance.id"),
        "{about}"
    );
    let metrics = &resource.scope_metrics[0].metrics;
    let data = |name: &str| metrics.iter().find(|metric| metric.name == name)?.data.clone();
    assert!(
        matches!(data("ilion_cql_connections"), Some(Data::Gauge(_))),
        "{metrics:?}"
    );
    assert!(
        matches!(data("ilion_cql_connections_opened"), Some(Data::Sum(_))),
        "{metrics:?}"
    );
}
