//! Requests that wait for other nodes: on their thread, or parked until the outcome of a command is known.

use std::io::Write;
use std::sync::atomic::Ordering::SeqCst;

use bytes::Bytes;
use ilion_protocol::{
    Batch, BatchKind, BatchStatement, Consistency, ErrorDetail, Execute, QueryParams, Request, Response,
    StatementSource, Values, Version,
};

use crate::client::{Client, error_of, query, rows_of};
use crate::double::{Setup, start, start_tracing};

/// The first value of the first row.
fn value(response: Response) -> Vec<u8> {
    let rows = rows_of(response);
    rows.cells().next().unwrap().unwrap().to_vec()
}

#[test]
fn a_request_that_waits_holds_up_none_that_came_with_it() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    // One before it, whose answer is ready; two that wait; and more behind them. They come with one write, so most are one task.
    let mut bytes = client.encode(0, query("SELECT keyspace where"));
    for stream in [1, 2] {
        bytes.extend(client.encode(stream, query("UPDATE wait")));
    }
    for stream in 3..10 {
        bytes.extend(client.encode(stream, query("SELECT keyspace where")));
    }
    client.stream.write_all(&bytes).unwrap();
    let mut answered: Vec<i16> = (0..8).map(|_| client.receive().stream).collect();
    answered.sort_unstable();
    assert_eq!(answered, [0, 3, 4, 5, 6, 7, 8, 9]);
    for _ in 0..2 {
        setup.gate.send(()).unwrap();
    }
    let mut last: Vec<i16> = (0..2).map(|_| client.receive().stream).collect();
    last.sort_unstable();
    assert_eq!(last, [1, 2]);
}

#[test]
fn a_parked_command_is_answered_with_its_outcome_and_not_executed_again() {
    let setup = start();
    executed_once(&setup);
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let error = error_of(client.query("UPDATE refused"));
    assert_eq!(error.message, "by its replica");
}

#[test]
fn a_command_is_executed_once_if_requests_are_traced_at_random() {
    executed_once(&start_tracing(0.5));
}

fn executed_once(setup: &Setup) {
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let before = setup.double.begun.load(SeqCst);
    let mut bytes = Vec::new();
    for stream in 0..40 {
        bytes.extend(client.encode(stream, query(&format!("UPDATE decided {stream}"))));
    }
    client.stream.write_all(&bytes).unwrap();
    for _ in 0..40 {
        let answer = client.receive();
        assert_eq!(value(answer.response), answer.stream.to_string().as_bytes());
    }
    let begun = setup.double.begun.load(SeqCst) - before;
    assert_eq!(begun, 40, "each statement is executed once");
}

#[test]
fn a_command_that_was_overtaken_is_planned_and_sent_again() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    assert_eq!(value(client.query("UPDATE overtaken")), b"again");
}

#[test]
fn a_command_is_answered_even_if_its_prepared_statement_was_forgotten_meanwhile() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let execute = |id: &'static [u8]| {
        Request::Execute(Execute {
            id: Bytes::from_static(id),
            result_metadata_id: Bytes::new(),
            params: QueryParams::default(),
        })
    };
    assert_eq!(value(client.ask(execute(b"forgotten"))), b"executed");
    assert!(matches!(
        error_of(client.ask(execute(b"unknown"))).detail,
        ErrorDetail::Unprepared { .. }
    ));
    let batch = |id: &'static [u8]| {
        Request::Batch(Batch {
            kind: BatchKind::Counter,
            statements: vec![BatchStatement {
                source: StatementSource::Prepared(Bytes::from_static(id)),
                values: Values::default(),
            }],
            consistency: Consistency::One,
            serial_consistency: None,
            timestamp_micros: None,
            now_secs: None,
            keyspace: None,
        })
    };
    assert_eq!(value(client.ask(batch(b"forgotten"))), b"executed");
    assert!(matches!(
        error_of(client.ask(batch(b"unknown"))).detail,
        ErrorDetail::Unprepared { .. }
    ));
}
