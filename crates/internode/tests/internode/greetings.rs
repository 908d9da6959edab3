//! Who is refused, and what both sides read about it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::channel;

use bytes::{Bytes, BytesMut};
use ilion_internode::{CallError, Hello, Identity, NEWEST, OLDEST, Reply};
use ilion_protocol::{
    Flags, FrameDecoder, Header, Limits, Opcode, Request, RequestFrame, Response, ResponseFrame, Role,
    Startup, Version, encode_frame, encode_request,
};
use uuid::Uuid;

use crate::nodes::{Addresses, LONG, Start, ask, echo, identity, refuses};

fn unreachable_text(error: CallError) -> String {
    match error {
        CallError::Unreachable(text) => text,
        other => panic!("{other:?}"),
    }
}

/// What node 1 says when it calls node 2 and this node answers there.
fn refused_by(other: Identity, adjust: impl FnOnce(&Addresses)) -> String {
    let addresses = Addresses::default();
    let asked = Start {
        identity: other,
        ..Start::node(2).serving(echo())
    }
    .start(&addresses);
    addresses.set(2, asked.address());
    let asking = Start::node(1).start(&addresses);
    adjust(&addresses);
    let said = unreachable_text(ask(&asking, 2, "x").unwrap_err());
    let start = format!("node 2 at {} cannot be reached: it refuses: ", asked.address());
    let reason = said.strip_prefix(&start).unwrap_or_else(|| panic!("{said}"));
    // Both sides have the same sentence.
    refuses(&asked, reason);
    said
}

#[test]
fn a_node_of_another_cluster_is_refused() {
    let mut other = identity(2);
    other.cluster = Uuid::from_u128(8);
    let said = refused_by(other, |_| {});
    assert!(
        said.ends_with(
            "it refuses: node 1 belongs to the cluster 00000000-0000-0000-0000-000000000007, and this node to the cluster \
             00000000-0000-0000-0000-000000000008: are their addresses right?"
        ),
        "{said}"
    );
}

#[test]
fn another_node_at_the_address_is_noticed() {
    let said = refused_by(identity(5), |_| {});
    assert!(
        said.ends_with(
            "it refuses: node 1 wants to reach node 2, but this is node 5: is its address one that another node had before?"
        ),
        "{said}"
    );
}

#[test]
fn a_node_that_the_cluster_does_not_want_is_refused_with_the_reason() {
    let said = refused_by(identity(2), |addresses| {
        addresses.ban(1, "node 1 has left the cluster")
    });
    assert!(
        said.ends_with("it refuses: node 1 has left the cluster"),
        "{said}"
    );
}

#[test]
fn a_node_that_is_no_member_or_not_there_is_unreachable() {
    let addresses = Addresses::default();
    let asking = Start::node(1).start(&addresses);
    assert_eq!(
        unreachable_text(ask(&asking, 9, "x").unwrap_err()),
        "node 9 is no member of the cluster as far as this node knows"
    );
    // A port that was free a moment ago.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    addresses.set(2, free);
    let said = unreachable_text(ask(&asking, 2, "x").unwrap_err());
    assert!(said.contains("refused"), "{said}");
}

fn node() -> (SocketAddr, ilion_internode::Internode) {
    let started = Start::node(2).serving(echo()).start(&Addresses::default());
    (started.address(), started)
}

/// Sends bytes, and reads until the other side closes.
fn answer_to(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => answer.extend_from_slice(&buffer[..count]),
            Ok(_) => return answer,
            Err(error) => {
                let is_late = error.kind() == std::io::ErrorKind::WouldBlock;
                assert!(!is_late, "the connection was not closed");
                return answer;
            }
        }
    }
}

fn greeting(hello: &[u8]) -> Vec<u8> {
    let header = Header {
        version: Version::V5,
        flags: Flags::default(),
        stream: 0,
        opcode: Opcode::NodeRequest,
    };
    let mut bytes = Vec::new();
    encode_frame(&mut bytes, header, hello, None).unwrap();
    bytes
}

fn reply_in(answer: &[u8]) -> Reply {
    let mut decoder = FrameDecoder::between_nodes(Role::Client, Limits::default());
    let frame = decoder.decode(&mut BytesMut::from(answer)).unwrap().unwrap();
    Reply::decode(&frame.body).unwrap()
}

fn hello() -> Hello {
    Hello {
        oldest: OLDEST,
        newest: NEWEST,
        identity: identity(1),
        wanted: 2,
    }
}

#[test]
fn a_node_of_a_newer_version_is_told_what_to_upgrade() {
    let (address, _node) = node();
    let newer = Hello {
        oldest: 3,
        newest: 4,
        ..hello()
    };
    assert_eq!(
        reply_in(&answer_to(address, &greeting(&newer.encode()))),
        Reply::Refused(
            "node 1 speaks versions 3 to 4 of the protocol between nodes, node 2 versions 1 to 1: \
             upgrade the node that was connected to"
                .to_owned()
        )
    );
}

#[test]
fn a_damaged_greeting_is_refused_at_every_byte_and_the_node_goes_on() {
    let (address, node) = node();
    let whole = greeting(&hello().encode());
    for at in (0..whole.len()).step_by(3) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x20;
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&bytes).unwrap();
        // A length that is wrong may let the node wait for the rest.
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let mut decoder = FrameDecoder::between_nodes(Role::Client, Limits::default());
        if let Ok(Some(frame)) = decoder.decode(&mut BytesMut::from(&answer[..])) {
            let reply = Reply::decode(&frame.body).unwrap();
            // The stream of a greeting and its flags mean nothing.
            let is_of_header = [1, 2, 3].contains(&at);
            assert!(
                is_of_header || matches!(reply, Reply::Refused(_)),
                "{at}: {reply:?}"
            );
        }
    }
    let addresses = Addresses::default();
    addresses.set(2, node.address());
    let asking = Start::node(1).start(&addresses);
    addresses.set(2, node.address());
    assert_eq!(ask(&asking, 2, "still here").unwrap(), "still here");
}

#[test]
fn garbage_of_any_kind_ends_its_connection_only() {
    let (address, node) = node();
    let mut dice = ilion_env::Seeded::new(5);
    for _ in 0..50 {
        let garbage: Vec<u8> = (0..dice.below(3000)).map(|_| dice.next_u64() as u8).collect();
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&garbage);
    }
    // A length of 2 GiB.
    let mut huge = greeting(b"");
    huge[5..9].copy_from_slice(&i32::MAX.to_be_bytes());
    answer_to(address, &huge);
    answer_to(address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let addresses = Addresses::default();
    let asking = Start::node(1).start(&addresses);
    addresses.set(2, node.address());
    assert_eq!(ask(&asking, 2, "still here").unwrap(), "still here");
}

/// The first message of a node of Cassandra 4 and of sstableloader, and of their older versions.
#[test]
fn a_node_of_cassandra_is_turned_away() {
    let (address, node) = node();
    for flags in [[0x0C, 0x0C, 0, 0], [0, 0, 0x0A, 0]] {
        let initiate = [&[0xCA, 0x55, 0x2D, 0xFA][..], &flags, &[0; 20]].concat();
        assert_eq!(answer_to(address, &initiate), b"");
    }
    refuses(
        &node,
        "Instead of sstableloader use `ilion sstable load --host ADDRESS DIR`",
    );
}

#[test]
fn a_cql_client_is_told_that_the_port_is_for_nodes() {
    let (address, node) = node();
    for version in Version::SUPPORTED {
        for request in [Request::Options, Request::Startup(Startup::default())] {
            let mut bytes = Vec::new();
            let frame = RequestFrame {
                version,
                stream: 3,
                tracing: false,
                custom_payload: Vec::new().into_iter().collect(),
                request,
            };
            encode_request(&mut bytes, &frame, None).unwrap();
            let answer = answer_to(address, &bytes);
            let mut decoder = FrameDecoder::new(Role::Client, Limits::default());
            let frame = decoder.decode(&mut BytesMut::from(&answer[..])).unwrap().unwrap();
            let Response::Error(error) = ResponseFrame::decode(&frame).unwrap().response else {
                panic!("{frame:?}");
            };
            if version == Version::V5 {
                assert_eq!(
                    error.message,
                    "This port is for other nodes of the cluster (storage_port). Clients connect to native_transport_port"
                );
            }
        }
    }
    refuses(&node, "Clients connect to native_transport_port");
}

/// The port of CQL clients answers with an error in CQL.
#[test]
fn a_port_for_clients_is_recognized() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addresses = Addresses::default();
    addresses.set(2, listener.local_addr().unwrap());
    let (tell, told) = channel();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut decoder = FrameDecoder::new(Role::Server, Limits::default());
        let mut buffer = BytesMut::new();
        let error = loop {
            let mut bytes = [0; 1000];
            let count = stream.read(&mut bytes).unwrap();
            buffer.extend_from_slice(&bytes[..count]);
            match decoder.decode(&mut buffer) {
                Ok(frame) => assert_eq!(frame, None),
                Err(error) => break error,
            }
        };
        let mut answer = Vec::new();
        error.encode_answer(&mut answer);
        stream.write_all(&answer).unwrap();
        tell.send(()).unwrap();
    });
    let asking = Start::node(1).start(&addresses);
    let said = unreachable_text(ask(&asking, 2, Bytes::new()).unwrap_err());
    told.recv_timeout(LONG).unwrap();
    assert!(
        said.contains("its port answers as one for CQL clients (Unknown opcode 112): other nodes connect to storage_port"),
        "{said}"
    );
}
