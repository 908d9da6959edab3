//! Spans and metrics against a small collector, decoded with the types of the OpenTelemetry project.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

mod receiver;

use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use ilion_env::MemEnv;
use ilion_telemetry::{Attribute, FinishedSpan, Telemetry, TelemetryOptions, TraceParent, url_below};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;
use prost::Message as _;
use receiver::collector;

fn options(endpoint: &str) -> TelemetryOptions {
    TelemetryOptions {
        traces_url: Some(url_below(endpoint, "/v1/traces")),
        metrics_url: None,
        headers: vec![("x-key".to_owned(), "secret".to_owned())],
        timeout: Duration::from_secs(30),
        metrics_interval: Duration::from_secs(3600),
        resource: vec![("service.name".to_owned(), "ilion".to_owned())],
        version: "1.2.3",
    }
}

fn start(options: TelemetryOptions) -> Telemetry {
    Telemetry::start(Arc::new(MemEnv::new(1)), options).unwrap()
}

fn span(name: &str) -> FinishedSpan {
    FinishedSpan {
        name: name.to_owned(),
        started_unix_nanos: 1_000_000,
        elapsed_nanos: 500,
        ..FinishedSpan::default()
    }
}

fn text_of(attributes: &[KeyValue], key: &str) -> Option<String> {
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

fn counts(telemetry: &Telemetry) -> String {
    let (mut registry, mut out) = (Registry::default(), String::new());
    telemetry.register_metrics(&mut registry);
    text::encode(&mut out, &registry).unwrap();
    out.lines()
        .filter(|line| !line.starts_with('#'))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_span_arrives_with_its_parent_steps_and_attributes() {
    let (endpoint, requests) = collector(vec![]);
    let telemetry = start(options(&endpoint));
    let parent = TraceParent::parse(b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    telemetry.send(FinishedSpan {
        parent: Some(parent),
        attributes: vec![
            ("db.system.name".into(), Attribute::Text("cassandra".to_owned())),
            ("ilion.cost.rows".into(), Attribute::Number(7)),
        ],
        steps: vec![(20, "Parsing".to_owned()), (30, "Merged".to_owned())],
        error: Some("no such table".to_owned()),
        ..span("SELECT k")
    });
    telemetry.send(span("root"));
    telemetry.stop();
    let request = requests.recv().unwrap();
    assert!(
        request.head.starts_with("post /v1/traces http/1.1\r\n"),
        "{}",
        request.head
    );
    for header in ["x-key: secret\r\n", "content-type: application/x-protobuf\r\n"] {
        assert!(request.head.contains(header), "{}", request.head);
    }
    let message = ExportTraceServiceRequest::decode(&*request.body).unwrap();
    let resource = &message.resource_spans[0];
    let attributes = &resource.resource.as_ref().unwrap().attributes;
    assert_eq!(text_of(attributes, "service.name").as_deref(), Some("ilion"));
    let scope = &resource.scope_spans[0];
    assert_eq!(scope.scope.as_ref().unwrap().version, "1.2.3");
    let [child, root] = &scope.spans[..] else {
        panic!("{scope:?}")
    };
    assert_eq!(
        (&child.trace_id[..], &child.parent_span_id[..]),
        (&parent.trace_id[..], &parent.span_id[..])
    );
    assert_eq!(
        (child.start_time_unix_nano, child.end_time_unix_nano),
        (1_000_000, 1_000_500)
    );
    assert_eq!(
        (child.name.as_str(), child.kind, child.flags),
        ("SELECT k", 2, 0x301)
    );
    assert_eq!(
        text_of(&child.attributes, "db.system.name").as_deref(),
        Some("cassandra")
    );
    assert_eq!(
        text_of(&child.attributes, "ilion.cost.rows").as_deref(),
        Some("7")
    );
    let steps: Vec<(u64, &str)> = child
        .events
        .iter()
        .map(|e| (e.time_unix_nano, e.name.as_str()))
        .collect();
    assert_eq!(steps, [(1_000_020, "Parsing"), (1_000_030, "Merged")]);
    let status = child.status.as_ref().unwrap();
    assert_eq!((status.code, status.message.as_str()), (2, "no such table"));
    assert_eq!(
        (root.trace_id.len(), root.span_id.len(), root.parent_span_id.len()),
        (16, 8, 0)
    );
    assert!(root.trace_id != child.trace_id && root.status.is_none());
    assert!(
        counts(&telemetry).contains("spans_sent_total 2"),
        "{}",
        counts(&telemetry)
    );
}

#[test]
fn metrics_arrive_as_they_are() {
    let (endpoint, requests) = collector(vec![]);
    let telemetry = start(TelemetryOptions {
        traces_url: None,
        metrics_url: Some(url_below(&endpoint, "/v1/metrics")),
        metrics_interval: Duration::from_millis(10),
        ..options(&endpoint)
    });
    assert!(!telemetry.sends_spans());
    let text = "# HELP a_reads Reads.\n# TYPE a_reads counter\n# UNIT a_reads bytes\na_reads_total{table=\"t\"} 7\n\
                # TYPE a_wait histogram\na_wait_sum 1.5\na_wait_count 3\na_wait_bucket{le=\"0.5\"} 1\n\
                a_wait_bucket{le=\"+Inf\"} 3\n# TYPE a_load gauge\na_load 0.5\n# EOF\n";
    telemetry.send_metrics_of(move || Some(text.to_owned()));
    let request = requests.recv().unwrap();
    assert!(request.head.starts_with("post /v1/metrics "), "{}", request.head);
    let message = ExportMetricsServiceRequest::decode(&*request.body).unwrap();
    let metrics = &message.resource_metrics[0].scope_metrics[0].metrics;
    assert_eq!(
        (metrics[0].name.as_str(), metrics[0].unit.as_str()),
        ("a_reads", "By")
    );
    let Some(Data::Sum(sum)) = &metrics[0].data else {
        panic!("{metrics:?}")
    };
    let point = &sum.data_points[0];
    assert!(sum.is_monotonic && sum.aggregation_temporality == 2);
    assert!(point.start_time_unix_nano > 0 && point.time_unix_nano >= point.start_time_unix_nano);
    assert_eq!(text_of(&point.attributes, "table").as_deref(), Some("t"));
    assert!(format!("{:?}", point.value).contains("AsInt(7)"), "{point:?}");
    let Some(Data::Histogram(histogram)) = &metrics[1].data else {
        panic!("{metrics:?}")
    };
    let point = &histogram.data_points[0];
    assert_eq!((point.count, point.sum), (3, Some(1.5)));
    assert_eq!(
        (&point.bucket_counts[..], &point.explicit_bounds[..]),
        (&[1, 2][..], &[0.5][..])
    );
    assert!(matches!(&metrics[2].data, Some(Data::Gauge(_))), "{metrics:?}");
}

#[test]
fn spans_that_a_collector_could_not_take_are_sent_again() {
    let (endpoint, requests) = collector(vec!["503 Service Unavailable"]);
    let telemetry = start(options(&endpoint));
    telemetry.send(span("once"));
    let (first, second) = (requests.recv().unwrap(), requests.recv().unwrap());
    assert_eq!(first.body, second.body);
}

#[test]
fn what_a_collector_refuses_is_dropped_and_counted() {
    let (endpoint, requests) = collector(vec!["400 Bad Request"]);
    let telemetry = start(options(&endpoint));
    telemetry.send(span("refused"));
    telemetry.stop();
    requests.recv().unwrap();
    let counts = counts(&telemetry);
    assert!(
        counts.contains("spans_dropped_total 1") && counts.contains("failures_total 1"),
        "{counts}"
    );
}

#[test]
fn a_collector_that_hangs_costs_spans_and_nobody_waits() {
    // Nobody accepts: the system takes the connection, and no answer comes.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let telemetry = start(options(&endpoint));
    for _ in 0..10_000 {
        telemetry.send(span("lost"));
    }
    // The timeout of a request is longer than what a node that stops has for it.
    telemetry.stop();
    let counts = counts(&telemetry);
    assert!(counts.contains("spans_dropped_total 10000"), "{counts}");
}

#[test]
fn what_cannot_be_used_is_refused() {
    let start = |options| {
        Telemetry::start(Arc::new(MemEnv::new(1)), options)
            .unwrap_err()
            .to_string()
    };
    for url in ["localhost:4318", "ftp://localhost/", "http://"] {
        let mut bad = options("http://127.0.0.1:1");
        bad.traces_url = Some(url.to_owned());
        assert!(start(bad).starts_with(url));
    }
    let mut bad = options("http://127.0.0.1:1");
    bad.headers = vec![("a b".to_owned(), "secret".to_owned())];
    let refused = start(bad);
    assert!(
        refused.starts_with("header a b") && !refused.contains("secret"),
        "{refused}"
    );
}
