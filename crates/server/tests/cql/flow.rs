//! Clients that read too slowly or send too fast.

use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use ilion_protocol::{ErrorDetail, Query, QueryParams, Request, Response, Value, Values, Version};
use ilion_server::NoLog;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use crate::client::{Client, query, rows_of};
use crate::double::start_with;

const MIB: usize = 1 << 20;

#[test]
fn a_client_that_does_not_read_holds_no_more_than_its_limits() {
    most_queued("SELECT zeros where 1048576");
}

#[test]
fn a_client_that_does_not_read_large_values_holds_no_more_than_its_limits() {
    most_queued("SELECT large where 1048576");
}

fn most_queued(statement: &str) {
    let setup = start_with(
        |options| {
            options.queued_bytes_max = 2 * MIB;
            options.requests_in_flight_max = 64;
        },
        Arc::new(NoLog),
    );
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let mut bytes = Vec::new();
    for stream in 0..1000 {
        bytes.extend(client.encode(stream, query(statement)));
    }
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || writer.write_all(&bytes).unwrap());
    let clients = setup.server.clients();
    let mut largest = 0;
    let mut seen = [false; 1000];
    for _ in 0..1000 {
        largest = largest.max(clients.list()[0].queued_bytes);
        let answer = client.receive();
        assert_eq!(rows_of(answer.response).row_count, 1);
        seen[usize::try_from(answer.stream).unwrap()] = true;
    }
    writing.join().unwrap();
    assert!(seen.iter().all(|seen| *seen));
    // The limit, and the answers that the threads were working on when it was reached.
    assert!(largest <= 20 * MIB, "{largest} bytes were queued");
}

#[test]
fn requests_beyond_the_limit_are_not_read() {
    let setup = start_with(|options| options.requests_in_flight_max = 4, Arc::new(NoLog));
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let mut bytes = Vec::new();
    for stream in 0..100 {
        bytes.extend(client.encode(stream, query("SELECT wait")));
    }
    client.stream.write_all(&bytes).unwrap();
    let mut answered = 0;
    for _ in 0..100 {
        setup.gate.send(()).unwrap();
        client.receive();
        answered += 1;
        let begun = setup.double.begun.load(SeqCst);
        assert!(begun <= answered + 4, "{begun} were begun, {answered} answered");
    }
}

#[test]
fn large_requests_beyond_the_limit_are_not_read() {
    const REQUESTS: u64 = 50;
    let setup = start_with(|options| options.request_bytes_max = MIB, Arc::new(NoLog));
    let mut registry = Registry::with_prefix("ilion");
    setup.server.register_metrics(&mut registry);
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let value = vec![0; MIB];
    let params = QueryParams {
        values: Values::from_iter([Value::Bytes(&value)]),
        ..QueryParams::default()
    };
    let request = client.encode(
        1,
        Request::Query(Query {
            text: "SELECT wait".to_owned(),
            params,
        }),
    );
    let size = request.len() as u64;
    let mut writer = client.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        for _ in 0..REQUESTS {
            writer.write_all(&request).unwrap();
        }
    });
    setup.double.wait_until_begun(1);
    // Another client is served meanwhile: time enough for a server without the limit to read much.
    let mut other = Client::open(setup.server.address(), Version::V4, None);
    for _ in 0..200 {
        rows_of(other.query("SELECT keyspace where"));
    }
    for answered in 0..REQUESTS {
        let received = received_bytes(&registry);
        // One request is in flight, and a part of the next may be in the buffer.
        assert!(
            received <= (answered + 3) * size,
            "{received} bytes were received, {answered} answered"
        );
        setup.gate.send(()).unwrap();
        client.receive();
    }
    writing.join().unwrap();
    // An answer is sent a moment before its request is counted as done.
    while setup.server.clients().list()[0].requests_in_flight > 0 {
        std::thread::yield_now();
    }
}

fn received_bytes(registry: &Registry) -> u64 {
    let mut text = String::new();
    encode(&mut text, registry).unwrap();
    let mut lines = text.lines();
    let value = lines.find_map(|line| line.strip_prefix("ilion_cql_received_bytes_total "));
    value.unwrap().parse().unwrap()
}

#[test]
fn a_client_that_leaves_amid_its_answers_is_forgotten() {
    let setup = start_with(|options| options.queued_bytes_max = MIB, Arc::new(NoLog));
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    for stream in 0..200 {
        client.send_query(stream, "SELECT zeros where 1048576");
    }
    drop(client);
    let clients = setup.server.clients();
    while !clients.list().is_empty() {
        std::thread::yield_now();
    }
    let mut next = Client::open(setup.server.address(), Version::V4, None);
    rows_of(next.query("SELECT keyspace where"));
}

/// Sends 50 requests at once to a server that takes this many per second; returns how many were answered, refused and delayed.
fn hurry(per_sec: u32, options: &[(&str, &str)]) -> (usize, usize, String) {
    let setup = start_with(
        |options| options.requests_per_sec_max = NonZeroU32::new(per_sec),
        Arc::new(NoLog),
    );
    let mut client = Client::connect(setup.server.address(), Version::V4);
    assert_eq!(client.startup_with(options), Response::Ready);
    let requests: Vec<u8> = (0..50)
        .flat_map(|stream| client.encode(stream, query("SELECT keyspace where")))
        .collect();
    client.stream.write_all(&requests).unwrap();
    let answers: Vec<Response> = (0..50).map(|_| client.receive().response).collect();
    let (refused, answered): (Vec<Response>, Vec<Response>) = answers
        .into_iter()
        .partition(|answer| matches!(answer, Response::Error(_)));
    for refused in &refused {
        let Response::Error(error) = refused else { continue };
        assert_eq!(error.detail, ErrorDetail::Overloaded);
        let limit = format!("limit of {per_sec} requests/second");
        assert!(error.message.contains(&limit), "{}", error.message);
    }
    let mut registry = Registry::default();
    setup.server.register_metrics(&mut registry);
    let mut metrics = String::new();
    encode(&mut metrics, &registry).unwrap();
    let delayed = metrics
        .lines()
        .find_map(|line| line.strip_prefix("cql_requests_delayed_total "));
    (
        answered.len(),
        refused.len(),
        delayed.unwrap_or_default().to_owned(),
    )
}

#[test]
fn requests_beyond_the_rate_wait_for_their_turn() {
    let (answered, refused, delayed) = hurry(200, &[]);
    assert_eq!((answered, refused), (50, 0));
    assert_ne!(delayed, "0");
}

#[test]
fn who_asks_for_it_is_refused_beyond_the_rate() {
    let (answered, refused, delayed) = hurry(2, &[("THROW_ON_OVERLOAD", "1")]);
    assert!(answered >= 1 && refused >= 1, "{answered}, {refused}");
    assert_eq!(delayed, "0");
}

#[test]
fn a_server_stops_while_requests_wait_for_their_turn() {
    let setup = start_with(
        |options| options.requests_per_sec_max = NonZeroU32::new(1),
        Arc::new(NoLog),
    );
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    for stream in 0..5000 {
        client.send_query(stream, "SELECT keyspace where");
    }
    rows_of(client.receive().response);
    drop(setup);
    while client.try_receive().is_some() {}
}
