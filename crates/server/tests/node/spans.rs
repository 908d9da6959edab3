//! Spans of OpenTelemetry: which requests have one, and what it says.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use ilion_env::MemEnv;
use ilion_protocol::{RequestFrame, ResponseFrame, Version};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;

use crate::client::{Client, query};
use crate::receiver::{Request, collector};
use crate::{Setup, make_table, run, start_with};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

fn start() -> (Setup, Receiver<Request>) {
    let (endpoint, requests) = collector(vec![]);
    let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
        settings.otlp_endpoint = Some(endpoint);
        settings.slow_query_log_timeout = Duration::ZERO;
    });
    (setup, requests)
}

fn ask(client: &mut Client, text: &str, tracing: bool, parent: Option<&'static str>) -> ResponseFrame {
    let payload = parent.map(|parent| ("traceparent".to_owned(), Some(parent.into())));
    let frame = RequestFrame {
        version: client.version,
        stream: 3,
        tracing,
        custom_payload: payload.into_iter().collect(),
        request: query(text),
    };
    let bytes = client.encode_frame(&frame);
    std::io::Write::write_all(&mut client.stream, &bytes).unwrap();
    client.receive()
}

/// Sends what waits, and returns the spans that have arrived.
fn spans(setup: &Setup, requests: &Receiver<Request>) -> Vec<Span> {
    setup.node.observers().telemetry.as_ref().unwrap().stop();
    let messages = requests.try_iter().map(|request| {
        assert!(request.head.starts_with("post /v1/traces "), "{}", request.head);
        ExportTraceServiceRequest::decode(&*request.body).unwrap()
    });
    let resources = messages.flat_map(|message| message.resource_spans);
    resources
        .flat_map(|resource| resource.scope_spans)
        .flat_map(|scope| scope.spans)
        .collect()
}

fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_traced_request_has_a_span_with_steps_and_costs_and_without_values() {
    let (setup, requests) = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'private')");
    let answer = ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", true, None);
    ask(
        &mut client,
        "SELECT 'private' FROM ks.t WHERE q = 'private'",
        true,
        None,
    );
    let spans = spans(&setup, &requests);
    let [select, failed] = &spans[..] else {
        panic!("{spans:?}")
    };
    assert_eq!(select.name, "SELECT ks.t");
    let expected = [
        ("db.system.name", "cassandra"),
        ("db.operation.name", "SELECT"),
        ("db.namespace", "ks"),
        ("db.collection.name", "t"),
        ("db.query.text", "SELECT v FROM ks.t WHERE k = ?"),
        ("client.address", "127.0.0.1"),
        ("cassandra.consistency.level", "ONE"),
        ("ilion.trace.session_id", &answer.tracing_id.unwrap().to_string()),
        ("ilion.cost.rows_returned", "1"),
    ];
    for (key, value) in expected {
        assert_eq!(
            attribute(select, key).as_deref(),
            Some(value),
            "{key} of {select:?}"
        );
    }
    assert!(
        select
            .events
            .iter()
            .any(|event| event.name.starts_with("Parsing")),
        "{select:?}"
    );
    assert!(select.end_time_unix_nano > select.start_time_unix_nano && select.parent_span_id.is_empty());
    assert_eq!(
        attribute(failed, "db.response.status_code").as_deref(),
        Some("0x2200")
    );
    assert_eq!(failed.status.as_ref().map(|status| status.code), Some(2));
    let parsing = |span: &Span| span.events.iter().any(|event| event.name == "Parsing");
    assert!(parsing(select) && parsing(failed));
    assert!(!format!("{spans:?}").contains("private"), "{spans:?}");
}

#[test]
fn a_callers_trace_goes_on_without_being_stored() {
    let (setup, requests) = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    let answer = ask(&mut client, "SELECT v FROM ks.t WHERE k = 1", false, Some(PARENT));
    assert_eq!(answer.tracing_id, None);
    let unsampled = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
    ask(
        &mut client,
        "SELECT k FROM ks.t WHERE k = 2",
        false,
        Some(unsampled),
    );
    ask(
        &mut client,
        "SELECT k FROM ks.t WHERE k = 3",
        false,
        Some("no parent"),
    );
    let spans = spans(&setup, &requests);
    let [span] = &spans[..] else { panic!("{spans:?}") };
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(&span.trace_id), PARENT[3..35]);
    assert_eq!(hex(&span.parent_span_id), PARENT[36..52]);
    assert!(!span.events.is_empty());
    let stored = crate::client::rows_of(run(&mut client, "SELECT session_id FROM system_traces.sessions"));
    assert_eq!(stored.rows().count(), 0);
}

#[test]
fn a_slow_statement_has_a_span_and_others_have_none() {
    let (setup, requests) = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "SELECT v FROM ks.t WHERE k = 1");
    // Anything is slower.
    setup.node.observers().slow.set_threshold(Duration::from_nanos(1));
    run(&mut client, "SELECT k FROM ks.t WHERE k = 1");
    setup.node.observers().slow.set_threshold(Duration::ZERO);
    let spans = spans(&setup, &requests);
    let texts: Vec<_> = spans
        .iter()
        .map(|span| attribute(span, "db.query.text").unwrap())
        .collect();
    assert_eq!(texts, ["SELECT k FROM ks.t WHERE k = ?"]);
}
