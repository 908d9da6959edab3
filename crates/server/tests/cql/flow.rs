//! Slow clients and eager ones.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use ilion_protocol::Version;
use ilion_server::NoLog;

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
    // The limit, and what each thread had in hand when it was reached.
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
    let setup = start_with(|options| options.request_bytes_max = MIB, Arc::new(NoLog));
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let text = "x".repeat(MIB);
    for stream in 0..20 {
        client.send_query(stream, &text);
    }
    for _ in 0..20 {
        client.receive();
    }
    // An answer is sent a moment before its request is counted as done.
    while setup.server.clients().list()[0].requests_in_flight > 0 {
        std::thread::yield_now();
    }
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
