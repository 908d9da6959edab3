//! Results, errors, warnings, out-of-order answers, durability, panics.

use std::io::Write;

use ilion_protocol::{
    Batch, BatchStatement, Consistency, ErrorDetail, Execute, Query, QueryParams, Request, RequestFrame,
    Response, ResultBody, StatementSource, Values, Version,
};

use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::client::{Client, error_of, query, rows_of};
use crate::double::{HeldLog, start, start_with};

fn text_of(response: Response) -> String {
    let rows = rows_of(response);
    let cell = rows.cells().next().unwrap().unwrap();
    String::from_utf8_lossy(cell).into_owned()
}

#[test]
fn use_holds_for_the_connection_only() {
    let setup = start();
    let mut first = Client::open(setup.server.address(), Version::V5, None);
    let mut second = Client::open(setup.server.address(), Version::V5, None);
    assert_eq!(
        first.query("USE music"),
        Response::Result(ResultBody::SetKeyspace("music".to_owned()))
    );
    assert_eq!(text_of(first.query("SELECT keyspace where")), "music");
    assert_eq!(text_of(second.query("SELECT keyspace where")), "none");
    let request = Request::Query(Query {
        text: "SELECT override where".to_owned(),
        params: QueryParams {
            keyspace: Some("films".to_owned()),
            ..QueryParams::default()
        },
    });
    assert_eq!(text_of(second.ask(request)), "films");
}

#[test]
fn errors_have_their_code_and_body() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let detail = |client: &mut Client, text: &str| error_of(client.query(text)).detail;
    assert_eq!(detail(&mut client, "what"), ErrorDetail::Syntax);
    assert_eq!(detail(&mut client, "DELETE overloaded"), ErrorDetail::Overloaded);
    assert_eq!(
        detail(&mut client, "DELETE unavailable"),
        ErrorDetail::Unavailable {
            consistency: Consistency::All,
            required: 3,
            alive: 1
        }
    );
    let execute = Request::Execute(Execute {
        id: bytes::Bytes::from_static(b"nobody"),
        ..Execute::default()
    });
    let error = error_of(client.ask(execute));
    assert_eq!(
        error.detail,
        ErrorDetail::Unprepared {
            id: bytes::Bytes::from_static(b"nobody")
        }
    );
    assert!(
        error
            .message
            .starts_with("Prepared query with ID 6e6f626f6479 not found")
    );
}

/// The text of an ERROR's body in hexadecimal: code, message, and the details of the code.
fn error_body(client: &mut Client, text: &str) -> String {
    client.send_query(3, text);
    let body = client.try_receive_frame().unwrap().body;
    body.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn errors_of_a_cluster_have_their_counts() {
    let setup = start();
    // "too slow", LOCAL_QUORUM, one of two answers.
    let message = "0008746f6f20736c6f77";
    let counts = "00060000000100000002";
    let hex = |text: &str| {
        let bytes: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{:04x}{}", text.len(), bytes.concat())
    };
    for version in Version::SUPPORTED {
        let mut client = Client::open(setup.server.address(), version, None);
        for kind in ["SIMPLE", "BATCH", "UNLOGGED_BATCH", "COUNTER", "BATCH_LOG"] {
            let body = error_body(&mut client, &format!("DELETE timeout {kind}"));
            assert_eq!(
                body,
                format!("00001100{message}{counts}{}", hex(kind)),
                "{version:?}"
            );
        }
        // v5 has the number of contentions with CAS, and a code of its own for an unknown outcome.
        let (cas, unknown) = match version {
            Version::V5 => (
                format!("00001100{message}{counts}{}0000", hex("CAS")),
                format!("00001700{message}{counts}"),
            ),
            _ => {
                let body = format!("00001100{message}{counts}{}", hex("CAS"));
                (body.clone(), body)
            }
        };
        assert_eq!(error_body(&mut client, "DELETE timeout CAS"), cas, "{version:?}");
        let body = error_body(&mut client, "DELETE timeout CAS_UNKNOWN");
        assert_eq!(body, unknown, "{version:?}");
        // The byte at the end: no data was present.
        let body = error_body(&mut client, "DELETE timeout READ");
        assert_eq!(body, format!("00001200{message}{counts}00"), "{version:?}");
        let body = error_body(&mut client, "DELETE unavailable");
        assert!(
            body.starts_with("00001000") && body.ends_with("00050000000300000001"),
            "{body}"
        );
    }
}

#[test]
fn warnings_reach_those_whose_version_has_them() {
    let setup = start();
    for (version, expected) in [
        (Version::V3, vec![]),
        (Version::V4, vec!["careful"]),
        (Version::V5, vec!["careful"]),
    ] {
        let mut client = Client::open(setup.server.address(), version, None);
        client.send_query(1, "SELECT warning where");
        assert_eq!(client.receive().warnings, expected);
    }
}

#[test]
fn tracing_and_custom_payloads_are_borne() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let bytes = client.encode_frame(&RequestFrame {
        version: Version::V4,
        stream: 3,
        tracing: true,
        custom_payload: vec![("k".to_owned(), None)],
        request: query("SELECT keyspace where"),
    });
    client.stream.write_all(&bytes).unwrap();
    let answer = client.receive();
    // No trace was stored, so the answer has no trace id.
    assert_eq!(answer.tracing_id, None);
    rows_of(answer.response);
}

#[test]
fn a_batch_is_one_request() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let statement = BatchStatement {
        source: StatementSource::Text("INSERT".to_owned()),
        values: Values::default(),
    };
    let batch = Batch {
        statements: vec![statement.clone(), statement],
        ..Batch::default()
    };
    assert_eq!(text_of(client.ask(Request::Batch(batch))), "Logged of 2");
    let batch = Batch {
        statements: vec![BatchStatement {
            source: StatementSource::Prepared(bytes::Bytes::from_static(b"?")),
            values: Values::default(),
        }],
        ..Batch::default()
    };
    let error = error_of(client.ask(Request::Batch(batch)));
    assert!(matches!(error.detail, ErrorDetail::Unprepared { .. }));
}

#[test]
fn a_statement_that_takes_long_does_not_hold_up_the_others() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let mut bytes = client.encode(1, query("SELECT wait"));
    bytes.extend(client.encode(2, query("SELECT keyspace where")));
    client.stream.write_all(&bytes).unwrap();
    assert_eq!(client.receive().stream, 2);
    setup.gate.send(()).unwrap();
    assert_eq!(client.receive().stream, 1);
}

#[test]
fn writes_are_answered_when_the_log_is_durable_and_reads_before() {
    let log = HeldLog::new();
    let setup = start_with(|_| {}, log.clone());
    let mut client = Client::open(setup.server.address(), Version::V5, None);
    let mut bytes = client.encode(1, query("INSERT"));
    bytes.extend(client.encode(2, query("SELECT keyspace where")));
    bytes.extend(client.encode(3, query("INSERT")));
    client.stream.write_all(&bytes).unwrap();
    assert_eq!(client.receive().stream, 2);
    // Each batch of writes waits once, whatever pieces the bytes arrived in.
    let mut answered = Vec::new();
    while answered.len() < 2 {
        log.next()(Ok(()));
        let first = client.receive();
        assert_eq!(first.response, Response::Result(ResultBody::Void));
        answered.push(first.stream);
        if log.callbacks.is_empty() && answered.len() < 2 {
            answered.push(client.receive().stream);
        }
    }
    assert_eq!(answered, [1, 3]);
}

#[test]
fn the_time_of_a_request_has_the_wait_for_the_log_in_it_and_every_stage() {
    let log = HeldLog::new();
    let setup = start_with(|_| {}, log.clone());
    let mut client = Client::open(setup.server.address(), Version::V5, None);
    client.send_query(1, "INSERT");
    let durable = log.next();
    setup.env.advance_micros(1_900_000);
    durable(Ok(()));
    client.receive();
    client.send_query(2, "SELECT wait");
    setup.double.wait_until_begun(2);
    setup.env.advance_micros(30_000);
    setup.gate.send(()).unwrap();
    client.receive();
    let mut registry = Registry::with_prefix("ilion");
    setup.server.register_metrics(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    // Each look at this clock advances it by a microsecond.
    for line in [
        "ilion_cql_request_seconds_count{kind=\"query\"} 2",
        "ilion_cql_request_seconds_bucket{le=\"0.016384\",kind=\"query\"} 0",
        "ilion_cql_request_seconds_bucket{le=\"0.032768\",kind=\"query\"} 1",
        "ilion_cql_request_seconds_bucket{le=\"1.048576\",kind=\"query\"} 1",
        "ilion_cql_request_seconds_bucket{le=\"2.097152\",kind=\"query\"} 2",
        "ilion_cql_request_stage_seconds_bucket{le=\"0.000128\",stage=\"execute\"} 1",
        "ilion_cql_request_stage_seconds_bucket{le=\"0.032768\",stage=\"execute\"} 2",
        "ilion_cql_request_stage_seconds_bucket{le=\"1.048576\",stage=\"log_wait\"} 0",
        "ilion_cql_request_stage_seconds_count{stage=\"log_wait\"} 1",
        "ilion_cql_request_stage_seconds_bucket{le=\"0.000128\",stage=\"queue\"} 2",
        "ilion_cql_request_stage_seconds_bucket{le=\"0.000128\",stage=\"send\"} 2",
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[test]
fn writes_are_refused_when_the_log_has_failed() {
    let log = HeldLog::new();
    let setup = start_with(|_| {}, log.clone());
    let mut client = Client::open(setup.server.address(), Version::V5, None);
    client.send_query(1, "INSERT");
    log.next()(Err("the disk is gone".to_owned()));
    let answer = client.receive();
    assert_eq!(answer.stream, 1);
    let error = error_of(answer.response);
    assert_eq!(error.detail, ErrorDetail::Server);
    assert_eq!(error.message, "the commit log failed: the disk is gone");
}

#[test]
fn a_bug_in_a_statement_costs_one_answer() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    for _ in 0..20 {
        assert_eq!(error_of(client.query("DELETE panic")).detail, ErrorDetail::Server);
    }
    rows_of(client.query("SELECT keyspace where"));
}

#[test]
fn many_clients_get_their_own_answers() {
    let setup = start();
    let address = setup.server.address();
    std::thread::scope(|scope| {
        for worker in 0..8 {
            scope.spawn(move || {
                let mut client = Client::open(address, Version::V5, None);
                for round in 0..20_i16 {
                    let mut bytes = Vec::new();
                    for stream in 0..16_i16 {
                        let size = worker * 1000 + i32::from(round) * 16 + i32::from(stream);
                        bytes.extend(client.encode(stream, query(&format!("SELECT zeros where {size}"))));
                    }
                    client.stream.write_all(&bytes).unwrap();
                    for _ in 0..16 {
                        let answer = client.receive();
                        let size = worker * 1000 + i32::from(round) * 16 + i32::from(answer.stream);
                        let rows = rows_of(answer.response);
                        let cell = rows.cells().next().unwrap().unwrap();
                        assert_eq!(cell.len(), usize::try_from(size).unwrap());
                    }
                }
            });
        }
    });
}
