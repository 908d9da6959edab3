//! Malformed frames, huge lengths, idle clients, too many connections.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use ilion_protocol::{ErrorDetail, Request, Response, Version};
use ilion_server::NoLog;

use crate::client::{Client, error_of, query, rows_of};
use crate::double::{start, start_with};

/// As Cassandra 5.0.9 answers on a socket.
#[test]
fn a_request_that_is_too_long_is_passed_over_without_being_held_and_refused() {
    let setup = start_with(
        |options| {
            options.frame_bytes_max = 1 << 20;
            options.message_bytes_max = 2 << 20;
        },
        Arc::new(NoLog),
    );
    for (version, length, message) in [
        (
            Version::V4,
            64 << 20,
            "Request is too big: length 67108873 exceeds maximum allowed length 1048576.",
        ),
        (
            Version::V5,
            64 << 20,
            "CQL Message of size 67108864 bytes exceeds allowed maximum of 2097152 bytes",
        ),
        // Before v5, the header counts.
        (
            Version::V4,
            (1 << 20) - 8,
            "Request is too big: length 1048577 exceeds maximum allowed length 1048576.",
        ),
    ] {
        let mut client = Client::open(setup.server.address(), version, None);
        let mut large = vec![version.number(), 0, 0, 5, 7];
        large.extend_from_slice(&i32::to_be_bytes(length));
        large.resize(9 + usize::try_from(length).unwrap(), 0);
        let large = client.pack(large);
        let next = client.encode(6, query("SELECT keyspace where"));
        let most = std::thread::scope(|scope| {
            let mut stream = client.stream.try_clone().unwrap();
            let sending = scope.spawn(move || {
                stream.write_all(&large).unwrap();
                stream.write_all(&next).unwrap();
            });
            let mut most = 0;
            while !sending.is_finished() {
                most = most.max(setup.server.metrics().client_bytes());
            }
            most
        });
        assert!(most <= 2 << 20, "{version}: {most} bytes were held");
        let answer = client.receive();
        assert_eq!(answer.stream, 5);
        let error = error_of(answer.response);
        assert_eq!(
            (&error.detail, error.message.as_str()),
            (&ErrorDetail::Invalid, message)
        );
        let answer = client.receive();
        assert_eq!(answer.stream, 6);
        rows_of(answer.response);
        rows_of(client.query("SELECT keyspace where"));
    }
}

#[test]
fn who_stops_amid_a_request_that_is_too_long_is_closed() {
    let setup = start_with(
        |options| options.stall_timeout = Duration::from_millis(50),
        Arc::new(NoLog),
    );
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let mut header = vec![4, 0, 0, 5, 7];
    header.extend_from_slice(&i32::MAX.to_be_bytes());
    client.stream.write_all(&header).unwrap();
    assert!(client.try_receive().is_none());
}

#[test]
fn impossible_lengths_end_the_connection_with_an_answer() {
    let setup = start();
    for length in [-1, i32::MIN] {
        let mut client = Client::open(setup.server.address(), Version::V4, None);
        let mut header = vec![4, 0, 0, 5, 7];
        header.extend_from_slice(&length.to_be_bytes());
        client.stream.write_all(&header).unwrap();
        assert_eq!(error_of(client.receive().response).detail, ErrorDetail::Protocol);
        assert!(client.try_receive().is_none(), "{length}");
    }
}

#[test]
fn bodies_that_break_the_format_are_answered_on_their_stream() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    // A QUERY whose text is longer than its body; an unknown opcode; a response.
    let frames: [&[u8]; 3] = [
        &[4, 0, 0, 5, 7, 0, 0, 0, 4, 0, 0, 1, 0],
        &[4, 0, 0, 5, 99, 0, 0, 0, 0],
        &[4, 0, 0, 5, 8, 0, 0, 0, 0],
    ];
    for frame in frames {
        client.stream.write_all(frame).unwrap();
        let answer = client.receive();
        assert_eq!(answer.stream, 5, "{frame:?}");
        assert_eq!(
            error_of(answer.response).detail,
            ErrorDetail::Protocol,
            "{frame:?}"
        );
    }
    rows_of(client.query("SELECT keyspace where"));
}

#[test]
fn a_corrupt_segment_ends_the_connection() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V5, None);
    let mut bytes = client.encode(1, Request::Options);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    client.stream.write_all(&bytes).unwrap();
    let error = error_of(client.receive().response);
    assert!(error.message.contains("CRC32"), "{error}");
    assert!(client.try_receive().is_none());
    // A bad header has no stream id that an answer could have.
    let mut client = Client::open(setup.server.address(), Version::V5, None);
    let mut bytes = client.encode(1, Request::Options);
    bytes[0] ^= 1;
    client.stream.write_all(&bytes).unwrap();
    assert!(client.try_receive().is_none());
}

#[test]
fn noise_never_stops_the_server() {
    let setup = start();
    let mut seed = 1_u64;
    for _ in 0..200 {
        let mut client = Client::connect(setup.server.address(), Version::V4);
        let noise: Vec<u8> = (0..64)
            .map(|_| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                seed.to_be_bytes()[0]
            })
            .collect();
        let _ = client.stream.write_all(&noise);
    }
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    rows_of(client.query("SELECT keyspace where"));
}

#[test]
fn a_client_that_never_starts_is_closed() {
    let setup = start_with(
        |options| options.startup_timeout = Duration::from_millis(50),
        Arc::new(NoLog),
    );
    let mut silent = Client::connect(setup.server.address(), Version::V4);
    assert!(silent.try_receive().is_none());
    let mut open = Client::open(setup.server.address(), Version::V4, None);
    rows_of(open.query("SELECT keyspace where"));
}

#[test]
fn an_idle_client_is_closed_but_not_one_that_waits_for_its_answer() {
    let setup = start_with(
        |options| options.idle_timeout = Duration::from_millis(50),
        Arc::new(NoLog),
    );
    let mut idle = Client::open(setup.server.address(), Version::V4, None);
    let mut waiting = Client::open(setup.server.address(), Version::V4, None);
    waiting.send_query(1, "SELECT wait");
    assert!(idle.try_receive().is_none());
    setup.gate.send(()).unwrap();
    rows_of(waiting.receive().response);
}

#[test]
fn an_address_with_too_many_connections_is_refused_and_others_are_not() {
    let setup = start_with(
        |options| options.connections_per_address_max = Some(1),
        Arc::new(NoLog),
    );
    let address = setup.server.address();
    let mut first = Client::open(address, Version::V4, None);
    let mut second = Client::connect(address, Version::V4);
    assert!(second.try_receive().is_none());
    let mut other = Client::connect_from([127, 0, 0, 2].into(), address, Version::V4);
    assert_eq!(other.startup(None), Response::Ready);
    rows_of(first.query("SELECT keyspace where"));
}

#[test]
fn connections_over_the_limit_are_closed() {
    let setup = start_with(|options| options.connections_max = Some(2), Arc::new(NoLog));
    let address = setup.server.address();
    let mut first = Client::open(address, Version::V4, None);
    let second = Client::open(address, Version::V4, None);
    let mut third = Client::connect(address, Version::V4);
    assert!(third.try_receive().is_none());
    drop(second);
    // A connection is possible again when the server has noticed that the second client left.
    let mut fourth = loop {
        let mut client = Client::connect(address, Version::V4);
        let bytes = client.encode(7, Request::Options);
        if client.stream.write_all(&bytes).is_ok() && client.try_receive().is_some() {
            break client;
        }
    };
    assert_eq!(fourth.startup(None), Response::Ready);
    rows_of(first.query("SELECT keyspace where"));
}
