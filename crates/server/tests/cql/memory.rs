//! The limits of memory for all clients.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use ilion_protocol::{ErrorDetail, Request, Response, Version};
use ilion_server::NoLog;

use crate::client::{Client, error_of, query, rows_of};
use crate::double::{Setup, start_with};

const MIB: usize = 1 << 20;

fn with_budget(bytes: usize, stall_timeout: Duration) -> Setup {
    start_with(
        |options| {
            options.client_bytes_max = Some(bytes as u64);
            options.client_bytes_per_address_max = Some(bytes as u64);
            options.queued_bytes_max = 1 << 30;
            options.stall_timeout = stall_timeout;
        },
        Arc::new(NoLog),
    )
}

fn wait_until_nothing_is_held(setup: &Setup) {
    while setup.server.metrics().client_bytes() > 0 {
        std::thread::yield_now();
    }
}

fn is_overloaded(response: &Response) -> bool {
    matches!(response, Response::Error(error) if error.detail == ErrorDetail::Overloaded)
}

fn has_answer(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let has_answer = client.stream.peek(&mut [0]).is_ok();
    client.stream.set_nonblocking(false).unwrap();
    has_answer
}

#[test]
fn half_sent_requests_beyond_the_budget_are_refused_and_others_are_served() {
    for version in [Version::V4, Version::V5] {
        let setup = with_budget(16 * MIB, Duration::ZERO);
        let address = setup.server.address();
        let mut other = Client::open(address, version, None);
        let text = "x".repeat(2 * MIB);
        let mut halves: Vec<(Client, Vec<u8>)> = (0..24)
            .map(|_| {
                let mut client = Client::open(address, version, None);
                let mut bytes = client.encode(5, query(&text));
                let rest = bytes.split_off(bytes.len() / 2);
                client.stream.write_all(&bytes).unwrap();
                (client, rest)
            })
            .collect();
        rows_of(other.query("SELECT keyspace where"));
        // Requests that found no room waited for a while first.
        while halves.iter().filter(|(client, _)| has_answer(client)).count() <= 5 {
            std::thread::yield_now();
        }
        let mut largest = 0;
        let mut refused = 0;
        for (client, rest) in &mut halves {
            // The rest of a refused request is skipped, and the connection stays open.
            client.stream.write_all(rest).unwrap();
            let answer = client.receive();
            assert_eq!(answer.stream, 5);
            refused += usize::from(is_overloaded(&answer.response));
            rows_of(client.query("SELECT keyspace where"));
            rows_of(other.query("SELECT keyspace where"));
            largest = largest.max(setup.server.metrics().client_bytes());
        }
        assert!(refused > 5, "{version}: {refused} were refused");
        assert!(largest <= 20 << 20, "{version}: {largest} bytes were held");
        drop(halves);
        wait_until_nothing_is_held(&setup);
        assert!(!is_overloaded(&other.query(&text)));
    }
}

#[test]
fn half_sent_requests_are_forgotten_with_their_connections() {
    let setup = with_budget(16 * MIB, Duration::ZERO);
    let text = "x".repeat(MIB);
    let halves: Vec<Client> = (0..10)
        .map(|_| {
            let mut client = Client::open(setup.server.address(), Version::V4, None);
            let bytes = client.encode(5, query(&text));
            client.stream.write_all(&bytes[..bytes.len() / 2]).unwrap();
            client
        })
        .collect();
    while setup.server.metrics().client_bytes() < 4 << 20 {
        std::thread::yield_now();
    }
    drop(halves);
    wait_until_nothing_is_held(&setup);
}

#[test]
fn unread_answers_beyond_the_budget_keep_requests_waiting_until_their_clients_are_closed() {
    let setup = with_budget(32 * MIB, Duration::from_secs(3));
    let address = setup.server.address();
    let mut deaf: Vec<Client> = (0..20)
        .map(|_| Client::open(address, Version::V4, None))
        .collect();
    for client in &mut deaf {
        for stream in 0..4 {
            client.send_query(stream, "SELECT zeros where 16777216");
        }
    }
    let mut other = Client::open(address, Version::V4, None);
    let mut largest = 0;
    // It waits, may be answered with an error, and is served when the clients that do not read are gone.
    let mut refused = 0;
    loop {
        refused += usize::from(is_overloaded(&other.query("SELECT keyspace where")));
        let held = setup.server.metrics().client_bytes();
        largest = largest.max(held);
        if largest >= 32 << 20 && held == 0 {
            break;
        }
    }
    rows_of(other.query("SELECT keyspace where"));
    // The budget, and the answers that the threads were working on when it was reached. All answers have 1280 MiB.
    assert!(
        largest <= 300 << 20,
        "{largest} bytes were held, {refused} requests refused"
    );
    assert!(
        setup.server.clients().list().len() < 21,
        "who does not read is closed"
    );
}

#[test]
fn who_stops_amid_a_request_or_takes_no_answers_is_closed_and_who_is_idle_is_not() {
    let setup = with_budget(512 * MIB, Duration::from_millis(100));
    let address = setup.server.address();
    let mut idle = Client::open(address, Version::V4, None);
    let mut halting = Client::open(address, Version::V5, None);
    let bytes = halting.encode(5, query("SELECT keyspace where"));
    halting.stream.write_all(&bytes[..bytes.len() - 1]).unwrap();
    assert!(halting.try_receive().is_none());
    let mut deaf = Client::open(address, Version::V4, None);
    for stream in 0..4 {
        deaf.send_query(stream, "SELECT zeros where 16777216");
    }
    while setup.server.clients().list().len() > 1 {
        std::thread::yield_now();
    }
    rows_of(idle.query("SELECT keyspace where"));
}

/// A client whose connection comes from this address.
fn open_from(source: [u8; 4], setup: &Setup, options: &[(&str, &str)]) -> Client {
    let mut client = Client::connect_from(source.into(), setup.server.address(), Version::V5);
    assert_eq!(client.startup_with(options), Response::Ready);
    client
}

/// Sends half of a request of this size, which the server then holds.
fn hold(client: &mut Client, bytes: usize) {
    let mut request = client.encode(5, query(&"x".repeat(2 * bytes)));
    request.truncate(request.len() / 2);
    client.stream.write_all(&request).unwrap();
}

#[test]
fn an_address_that_holds_all_that_it_may_is_refused_and_others_are_served() {
    let setup = start_with(
        |options| {
            options.client_bytes_max = Some(64 << 20);
            options.client_bytes_per_address_max = Some(4 << 20);
            options.stall_timeout = Duration::ZERO;
        },
        Arc::new(NoLog),
    );
    let (greedy, modest) = ([127, 0, 0, 2], [127, 0, 0, 1]);
    let mut halves: Vec<Client> = (0..8)
        .map(|_| {
            let mut client = open_from(greedy, &setup, &[]);
            hold(&mut client, MIB);
            client
        })
        .collect();
    // The address may receive 3 MiB of incomplete requests: most of them are refused in the end.
    while halves.iter().filter(|client| has_answer(client)).count() < 4 {
        std::thread::yield_now();
    }
    for client in halves.iter_mut().filter(|client| has_answer(client)) {
        assert!(is_overloaded(&client.receive().response));
    }
    // Another address has room for the same request.
    let mut other = open_from(modest, &setup, &[]);
    let large = "x".repeat(2 * MIB);
    assert_eq!(error_of(other.query(&large)).detail, ErrorDetail::Syntax);
    // Small requests of the first are still served.
    rows_of(open_from(greedy, &setup, &[]).query("SELECT keyspace where"));
    drop(halves);
    // Closed connections free their memory.
    let mut again = open_from(greedy, &setup, &[]);
    while is_overloaded(&again.query(&large)) {}
}

#[test]
fn who_asks_for_it_is_refused_at_once_when_there_is_no_memory() {
    let refused = |throws_by_default: bool, options: &[(&str, &str)]| {
        let setup = start_with(
            |options| {
                options.client_bytes_max = Some(64 << 20);
                options.client_bytes_per_address_max = Some(MIB as u64);
                options.queued_bytes_max = 1 << 30;
                options.stall_timeout = Duration::ZERO;
                options.throws_on_overload = throws_by_default;
            },
            Arc::new(NoLog),
        );
        // An answer that is not read takes more than the limit of the address.
        let mut holder = open_from([127, 0, 0, 2], &setup, &[]);
        holder.send_query(1, "SELECT zeros where 16777216");
        while setup.server.metrics().client_bytes() < 2 << 20 {
            std::thread::yield_now();
        }
        let mut client = open_from([127, 0, 0, 2], &setup, options);
        client.send_query(2, "SELECT keyspace where");
        let is_told_at_once = throws_by_default || options == [("THROW_ON_OVERLOAD", "1")];
        if !is_told_at_once {
            rows_of(holder.receive().response);
        }
        let is_refused = is_overloaded(&client.receive().response);
        drop(holder);
        is_refused
    };
    assert!(refused(false, &[("THROW_ON_OVERLOAD", "1")]));
    assert!(refused(true, &[]));
    assert!(!refused(false, &[]));
    assert!(!refused(false, &[("THROW_ON_OVERLOAD", "0")]));
}

#[test]
fn before_startup_only_small_messages_are_taken() {
    let setup = with_budget(512 * MIB, Duration::ZERO);
    let mut client = Client::connect(setup.server.address(), Version::V4);
    let mut header = vec![4, 0, 0, 5, 5];
    header.extend_from_slice(&100_000_i32.to_be_bytes());
    client.stream.write_all(&header).unwrap();
    client.stream.write_all(&[0; 100_000]).unwrap();
    assert_eq!(error_of(client.receive().response).detail, ErrorDetail::Invalid);
    assert!(matches!(client.ask(Request::Options), Response::Supported(_)));
    assert_eq!(client.startup(None), Response::Ready);
    // After STARTUP the limit is the one of the settings.
    let error = error_of(client.query(&"x".repeat(100_000)));
    assert_eq!(error.detail, ErrorDetail::Syntax);
}

#[test]
fn connections_do_not_take_the_last_descriptors() {
    let setup = start_with(|options| options.descriptors_max = Some(3), Arc::new(NoLog));
    let mut client = Client::connect(setup.server.address(), Version::V4);
    assert!(client.try_receive().is_none());
}
