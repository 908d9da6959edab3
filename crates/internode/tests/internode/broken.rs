//! Connections that break.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ilion_internode::{CallError, Hello, Internode, Lane, NEWEST, OLDEST, Served, ServedCall};
use ilion_protocol::{Flags, Header, Opcode, Version, encode_frame, encode_segments};

use crate::calls::Gate;
use crate::nodes::{Addresses, Function, KIND, LONG, Start, ask, echo, identity, in_time};
use crate::proxy::{Proxy, Wire};

/// Node 1 reaches node 2 over a wire.
fn wired(service: impl ilion_internode::Service + 'static) -> (Internode, Internode, Proxy, Addresses) {
    let addresses = Addresses::default();
    let asked = Start::node(2).serving(service).start(&addresses);
    let proxy = Proxy::to(asked.address());
    let asking = Start::node(1).start(&addresses);
    addresses.set(2, proxy.address());
    (asking, asked, proxy, addresses)
}

fn is_unreachable(answer: &Result<Bytes, CallError>) -> bool {
    matches!(answer, Err(CallError::Unreachable(_)))
}

/// Asks until there is an answer: after a failure, a node is left alone for a moment.
fn ask_until_answered(asking: &Internode) {
    let begun = Instant::now();
    while ask(asking, 2, "again").is_err() {
        assert!(begun.elapsed() < LONG, "no connection any more");
        std::thread::yield_now();
    }
}

#[test]
fn calls_of_a_connection_that_is_cut_fail_at_once_and_the_next_one_connects() {
    let gate = Gate::default();
    let held = gate.clone();
    let (asking, _asked, proxy, _) = wired(Function(move |request: Bytes, _: &ServedCall| {
        if request == "wait" {
            held.pass();
        }
        Ok(Served::Whole(request))
    }));
    for round in 1..4 {
        ask_until_answered(&asking);
        let connections = proxy.connections();
        let calls: Vec<_> = (0..10)
            .map(|_| {
                asking
                    .client()
                    .call(2, KIND, Lane::Waiting, "wait".into(), Some(LONG))
            })
            .collect();
        // All have arrived, or are on their way.
        ask(&asking, 2, "x").unwrap();
        let begun = Instant::now();
        proxy.cut();
        for call in calls {
            assert!(is_unreachable(&call.wait(in_time())), "round {round}");
        }
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
        ask_until_answered(&asking);
        assert!(proxy.connections() > connections);
    }
    gate.open();
}

/// The wire takes bytes and loses them, as a machine that was switched off: no packet says so.
#[test]
fn a_node_that_is_gone_without_a_word_is_noticed_within_two_seconds() {
    let (asking, _asked, proxy, _) = wired(echo());
    ask_until_answered(&asking);
    proxy.set(Wire::Silent);
    let begun = Instant::now();
    let said = ask(&asking, 2, "x");
    let took = begun.elapsed();
    let Err(CallError::Unreachable(reason)) = said else {
        panic!("{said:?}");
    };
    assert!(reason.contains("the node was silent for 1"), "{reason}");
    assert!(took > Duration::from_millis(1200), "{took:?}");
    // The margin is for busy machines.
    assert!(took < Duration::from_millis(3000), "{took:?}");
    proxy.set(Wire::Whole);
    ask_until_answered(&asking);
}

#[test]
fn a_service_that_takes_long_is_no_dead_node() {
    let gate = Gate::default();
    let held = gate.clone();
    let addresses = Addresses::default();
    let service = Function(move |request: Bytes, _: &ServedCall| {
        held.pass();
        Ok(Served::Whole(request))
    });
    let asked = Start::node(2).serving(service).start(&addresses);
    let proxy = Proxy::to(asked.address());
    let asking = Start::node(1)
        .options(|options| {
            options.ping_after = Duration::from_millis(20);
            // Ten times what a busy machine takes for a pong.
            options.dead_after = Duration::from_secs(5);
        })
        .start(&addresses);
    addresses.set(2, proxy.address());
    let call = asking
        .client()
        .call(2, KIND, Lane::Point, "slow".into(), Some(LONG));
    // Many pongs of 24 bytes.
    let begun = Instant::now();
    while proxy.passed() < 1000 {
        assert!(begun.elapsed() < LONG, "no pongs");
        std::thread::yield_now();
    }
    gate.open();
    assert_eq!(call.wait(in_time()).unwrap(), "slow");
    assert_eq!(proxy.connections(), 1);
}

#[test]
fn changed_bits_are_found_and_never_become_an_answer() {
    let (asking, _asked, proxy, _) = wired(echo());
    for size in [1, 1000, 200_000] {
        ask_until_answered(&asking);
        proxy.set(Wire::Flipped);
        let sent = vec![0xA5; size];
        let said = ask(&asking, 2, sent);
        let Err(CallError::Unreachable(reason)) = said else {
            panic!("{said:?}");
        };
        assert!(reason.contains("damaged bytes: corrupt"), "{reason}");
    }
    ask_until_answered(&asking);
}

/// The other node reads nothing: its requests fill the buffers on the way, and then wait here.
#[test]
fn a_node_that_takes_no_bytes_costs_bounded_memory_and_is_given_up() {
    let (asking, _asked, proxy, _) = wired(echo());
    ask_until_answered(&asking);
    proxy.set(Wire::Held);
    let large = Bytes::from(vec![1; 4 << 20]);
    let calls: Vec<_> = (0..40)
        .map(|_| {
            asking
                .client()
                .call(2, KIND, Lane::Waiting, large.clone(), Some(LONG))
        })
        .collect();
    let answers: Vec<_> = calls.into_iter().map(|call| call.wait(in_time())).collect();
    let refused = answers
        .iter()
        .filter(|answer| matches!(answer, Err(CallError::Refused(_))));
    assert_eq!(
        refused.count(),
        40 - 16,
        "64 MiB of requests on their way, and no more"
    );
    assert_eq!(answers.iter().filter(|answer| is_unreachable(answer)).count(), 16);
    proxy.set(Wire::Whole);
    ask_until_answered(&asking);
}

/// A node that asks for much and reads nothing of it.
#[test]
fn a_node_that_reads_no_answers_gets_no_more_of_them_and_is_closed() {
    let addresses = Addresses::default();
    let served = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = served.clone();
    let service = Function(move |_, _: &ServedCall| {
        count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Ok(Served::Whole(vec![7; 1 << 20].into()))
    });
    let asked = Start::node(2)
        .serving(service)
        .options(|options| {
            options.unsent_bytes_max = 4 << 20;
            options.stall_timeout = Duration::from_millis(500);
            options.threads = [1; 4];
        })
        .start(&addresses);
    let mut stream = TcpStream::connect(asked.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(&greeting()).unwrap();
    for stream_id in 0..200 {
        let mut begin = vec![0, 3, KIND.0, 0];
        begin.extend_from_slice(&u64::MAX.to_be_bytes());
        begin.extend_from_slice(&1000_u32.to_be_bytes());
        stream.write_all(&segments(stream_id, &begin)).unwrap();
    }
    // It reads only after the node has closed the connection, which a write notices sooner or later.
    let begun = Instant::now();
    while stream
        .write_all(&segments(0, &[6, 0, 0, 0, 0, 0, 0, 0, 1]))
        .is_ok()
    {
        assert!(begun.elapsed() < LONG, "the node keeps the connection");
        std::thread::yield_now();
    }
    let answers = served.load(std::sync::atomic::Ordering::SeqCst);
    // What waits, and what the buffers of two sockets of the kernel hold.
    assert!(answers < 40, "{answers} of 200 answers of 1 MiB were made");
}

fn greeting() -> Vec<u8> {
    let hello = Hello {
        oldest: OLDEST,
        newest: NEWEST,
        identity: identity(1),
        wanted: 2,
    };
    envelope(0, &hello.encode())
}

fn envelope(stream: i16, body: &[u8]) -> Vec<u8> {
    let header = Header {
        version: Version::V5,
        flags: Flags::default(),
        stream,
        opcode: Opcode::NodeRequest,
    };
    let mut bytes = Vec::new();
    encode_frame(&mut bytes, header, body, None).unwrap();
    bytes
}

fn segments(stream: i16, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_segments(&envelope(stream, body), None, &mut bytes);
    bytes
}

/// The node closes the connection of somebody who has greeted and then breaks the rules.
#[test]
fn a_node_that_breaks_the_protocol_loses_its_connection_and_reads_why() {
    let addresses = Addresses::default();
    let asked = Start::node(2)
        .serving(Function(|request: Bytes, call: &ServedCall| {
            while call.is_wanted() {
                std::thread::yield_now();
            }
            Ok(Served::Whole(request))
        }))
        .start(&addresses);
    let begin = |flags: u8| {
        let mut body = vec![0, flags, KIND.0, 0];
        body.extend_from_slice(&[0xFF; 8]);
        body.extend_from_slice(&[0; 4]);
        body
    };
    let twice = [segments(1, &begin(3)), segments(1, &begin(3))].concat();
    let mut flipped = segments(1, &begin(3));
    flipped[10] ^= 1;
    let cases: [(&str, Vec<u8>); 8] = [
        ("one call too many", twice),
        ("one call too many", segments(-1, &begin(3))),
        ("a piece of a request that there is not", segments(1, &[1, 3])),
        ("a message of the wrong side", segments(1, &[4, 3])),
        ("breaks the protocol between nodes", segments(1, &[99])),
        ("breaks the protocol between nodes", segments(1, &[])),
        ("breaks the protocol between nodes", segments(1, &vec![4; 70_000])),
        ("damaged bytes: corrupt payload", flipped),
    ];
    for (words, bytes) in cases {
        let mut stream = TcpStream::connect(asked.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&greeting()).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let said = String::from_utf8_lossy(&answer);
        assert!(said.contains(words), "{words}: {said:?}");
    }
    // More requests than a connection may have.
    let mut stream = TcpStream::connect(asked.address()).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(&greeting()).unwrap();
    for call in 0..1025 {
        let _ = stream.write_all(&segments(call, &begin(3)));
    }
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(String::from_utf8_lossy(&answer).contains("one call too many"));
}

/// A node that answers calls that there are not, or says nothing that is a message.
#[test]
fn a_node_that_answers_nonsense_is_left() {
    let welcome = |node: u32| {
        let identity = identity(node);
        let reply = ilion_internode::Reply::Welcome {
            version: 1,
            node,
            session: identity.session,
            host: identity.host,
        };
        let header = Header {
            version: Version::V5,
            flags: Flags::default(),
            stream: 0,
            opcode: Opcode::NodeAnswer,
        };
        let mut bytes = Vec::new();
        encode_frame(&mut bytes, header, &reply.encode(), None).unwrap();
        bytes
    };
    let answer = |stream: i16, body: &[u8]| {
        let header = Header {
            version: Version::V5,
            flags: Flags::default(),
            stream,
            opcode: Opcode::NodeAnswer,
        };
        let (mut envelope, mut bytes) = (Vec::new(), Vec::new());
        encode_frame(&mut envelope, header, body, None).unwrap();
        encode_segments(&envelope, None, &mut bytes);
        bytes
    };
    let cases = [
        (
            "an answer to a call that there is not (5)",
            [welcome(2), answer(5, &[4, 3])].concat(),
        ),
        ("breaks the protocol", [welcome(2), answer(0, &[200])].concat()),
        (
            "a message of the wrong side",
            [welcome(2), answer(0, &[2])].concat(),
        ),
        (
            "ended: it goes to bed",
            [welcome(2), answer(0, b"\x08it goes to bed")].concat(),
        ),
        ("node 3 answers there, instead of node 2", welcome(3)),
        ("closed the connection at once", Vec::new()),
    ];
    for (words, bytes) in cases {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addresses = Addresses::default();
        let asking = Start::node(1).start(&addresses);
        addresses.set(2, listener.local_addr().unwrap());
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1000]);
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let said = ask(&asking, 2, "x");
        assert!(
            matches!(&said, Err(CallError::Unreachable(reason)) if reason.contains(words)),
            "{words}: {said:?}"
        );
        drop(asking);
        answering.join().unwrap();
    }
}

/// It accepts and says nothing, as a machine whose program hangs.
#[test]
fn a_node_that_does_not_greet_is_unreachable_and_left_alone_for_a_moment() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = Addresses::default();
    addresses.set(2, listener.local_addr().unwrap());
    let asking = Start::node(1)
        .options(|options| options.connect_timeout = Duration::from_millis(200))
        .start(&addresses);
    let begun = Instant::now();
    let said = ask(&asking, 2, "x").unwrap_err().to_string();
    assert!(said.ends_with("cannot be reached: it does not answer"), "{said}");
    assert!(begun.elapsed() >= Duration::from_millis(200));
    // At once, without another attempt.
    let mut attempts = 0;
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(30) {
        attempts += 1;
        assert!(is_unreachable(&ask(&asking, 2, "x")));
    }
    assert!(attempts > 10, "{attempts}");
}

#[test]
fn a_node_that_was_restarted_is_reached_again() {
    let (asking, asked, _proxy, addresses) = wired(echo());
    ask_until_answered(&asking);
    asked.stop();
    assert!(is_unreachable(&ask(&asking, 2, "x")));
    let _again = Start::node(2).serving(echo()).start(&addresses);
    ask_until_answered(&asking);
}

/// It reads nothing, but claims that it has.
#[test]
fn credit_for_bytes_that_were_not_read_costs_no_memory() {
    let addresses = Addresses::default();
    let made = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let count = made.clone();
    let service = Function(move |_, _: &ServedCall| {
        let count = count.clone();
        Ok(Served::Parts(Box::new(std::iter::repeat_with(move || {
            count.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            Ok(vec![7; 1 << 20].into())
        }))))
    });
    let asked = Start::node(2)
        .serving(service)
        .options(|options| {
            options.unsent_bytes_max = 4 << 20;
            options.stall_timeout = Duration::from_millis(500);
        })
        .start(&addresses);
    let mut stream = TcpStream::connect(asked.address()).unwrap();
    stream.write_all(&greeting()).unwrap();
    let mut begin = vec![0, 3, KIND.0, 3];
    begin.extend_from_slice(&u64::MAX.to_be_bytes());
    begin.extend_from_slice(&u32::MAX.to_be_bytes());
    stream.write_all(&segments(1, &begin)).unwrap();
    let begun = Instant::now();
    let credit = [&[3][..], &u32::MAX.to_be_bytes()].concat();
    while stream.write_all(&segments(1, &credit)).is_ok() {
        assert!(begun.elapsed() < LONG, "the node keeps the connection");
        std::thread::yield_now();
    }
    let made = made.load(std::sync::atomic::Ordering::SeqCst);
    assert!(made < 40, "{made} MiB were made");
}
