//! Versions, compression, OPTIONS, and which requests are allowed when.

use std::io::Write;

use ilion_protocol::{Compression, ErrorDetail, Request, Response, Startup, Version};

use crate::client::{Client, error_of, query, rows_of};
use crate::double::start;

const ALL: [(Version, Option<Compression>); 8] = [
    (Version::V3, None),
    (Version::V3, Some(Compression::Lz4)),
    (Version::V3, Some(Compression::Snappy)),
    (Version::V4, None),
    (Version::V4, Some(Compression::Lz4)),
    (Version::V4, Some(Compression::Snappy)),
    (Version::V5, None),
    (Version::V5, Some(Compression::Lz4)),
];

#[test]
fn every_version_and_compression_carries_small_and_large_results() {
    let setup = start();
    for (version, compression) in ALL {
        let mut client = Client::open(setup.server.address(), version, compression);
        let copied = [0, 1, 1000, 131_071, 1_000_000].map(|size| ("zeros", size));
        // The other one is copied only if it is compressed.
        for (values, size) in copied.into_iter().chain([("large", 1_000_000)]) {
            let rows = rows_of(client.query(&format!("SELECT {values} where {size}")));
            let cells: Vec<_> = rows.cells().collect();
            assert_eq!(
                cells,
                [Some(vec![0; size].as_slice())],
                "{version} {compression:?}"
            );
        }
        let comment = "x".repeat(300_000);
        let error = error_of(client.query(&comment));
        assert_eq!(error.detail, ErrorDetail::Syntax, "{version} {compression:?}");
    }
}

#[test]
fn options_tells_what_cassandra_5_supports_before_and_after_startup() {
    let setup = start();
    for version in Version::SUPPORTED {
        let mut client = Client::connect(setup.server.address(), version);
        let before = client.ask(Request::Options);
        let Response::Supported(supported) = &before else {
            panic!("{before:?}")
        };
        let listed: Vec<_> = supported
            .options
            .iter()
            .map(|(name, values)| (name.as_str(), values.join(" ")))
            .collect();
        assert_eq!(
            listed,
            [
                ("PROTOCOL_VERSIONS", "3/v3 4/v4 5/v5".to_owned()),
                ("COMPRESSION", "snappy lz4".to_owned()),
                ("CQL_VERSION", "3.4.7".to_owned()),
            ]
        );
        client.startup(None);
        assert_eq!(client.ask(Request::Options), before);
    }
}

#[test]
fn a_version_of_the_future_is_refused_in_the_newest_and_the_connection_goes_on() {
    let setup = start();
    for unsupported in [6, 65, 66, 127] {
        let mut client = Client::connect(setup.server.address(), Version::V5);
        client
            .stream
            .write_all(&[unsupported, 0, 0, 9, 5, 0, 0, 0, 0])
            .unwrap();
        let answer = client.receive();
        assert_eq!((answer.version, answer.stream), (Version::V5, 9));
        let error = error_of(answer.response);
        assert_eq!(error.detail, ErrorDetail::Protocol);
        assert!(error.message.contains("unsupported protocol version"), "{error}");
        assert_eq!(client.startup(None), Response::Ready);
    }
}

#[test]
fn another_version_after_startup_is_refused() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    client.stream.write_all(&[3, 0, 0, 1, 5, 0, 0, 0, 0]).unwrap();
    let error = error_of(client.receive().response);
    assert_eq!(
        error.message,
        "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4"
    );
}

#[test]
fn what_comes_at_the_wrong_time_is_refused_and_the_connection_goes_on() {
    let setup = start();
    let mut client = Client::connect(setup.server.address(), Version::V4);
    let early = error_of(client.ask(query("SELECT keyspace where")));
    assert_eq!(
        early.message,
        "Unexpected message QUERY, expecting STARTUP or OPTIONS"
    );
    assert_eq!(early.detail, ErrorDetail::Protocol);

    let nothing = error_of(client.ask(Request::Startup(Startup::default())));
    assert_eq!(nothing.message, "Missing value CQL_VERSION in STARTUP message");
    let mut unknown = Startup::new(None);
    unknown.options.push(("COMPRESSION".to_owned(), "zip".to_owned()));
    let unknown = error_of(client.ask(Request::Startup(unknown)));
    assert_eq!(unknown.message, "Unknown compression algorithm: zip");

    assert_eq!(client.startup(None), Response::Ready);
    let second = error_of(client.ask(Request::Startup(Startup::new(None))));
    assert_eq!(
        second.message,
        "Unexpected message STARTUP, the connection is already initialized"
    );
    rows_of(client.query("SELECT keyspace where"));
}

#[test]
fn snappy_is_refused_in_v5() {
    let setup = start();
    let mut client = Client::connect(setup.server.address(), Version::V5);
    let error = error_of(client.startup(Some(Compression::Snappy)));
    assert_eq!(
        error.message,
        "Snappy compression is not supported in protocol V5"
    );
    assert_eq!(client.startup(Some(Compression::Lz4)), Response::Ready);
}

#[test]
fn a_login_nobody_asked_for_succeeds() {
    let setup = start();
    let mut client = Client::open(setup.server.address(), Version::V4, None);
    let token = bytes::Bytes::from_static(b"\0user\0password");
    assert_eq!(
        client.ask(Request::AuthResponse(Some(token))),
        Response::AuthSuccess(None)
    );
}

#[test]
fn statements_that_follow_startup_without_waiting_are_answered() {
    let setup = start();
    let mut client = Client::connect(setup.server.address(), Version::V4);
    let mut bytes = client.encode(1, Request::Startup(Startup::new(None)));
    bytes.extend(client.encode(2, query("USE a")));
    client.stream.write_all(&bytes).unwrap();
    assert_eq!(client.receive().response, Response::Ready);
    assert_eq!(client.receive().stream, 2);
}
