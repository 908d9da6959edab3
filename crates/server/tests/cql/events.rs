//! Which clients get which events.

use std::net::SocketAddr;

use ilion_protocol::{
    ChangeKind, Event, EventKind, NodeStatus, Response, ResultBody, SchemaChange, SchemaTarget,
    TopologyChange, Version,
};

use crate::client::Client;
use crate::double::start;

fn created(table: &str) -> SchemaChange {
    SchemaChange {
        change: ChangeKind::Created,
        keyspace: "ks".to_owned(),
        target: SchemaTarget::Table(table.to_owned()),
    }
}

#[test]
fn a_schema_change_is_told_to_those_who_registered() {
    let setup = start();
    for version in Version::SUPPORTED {
        let mut listener = Client::open(setup.server.address(), version, None);
        let mut deaf = Client::open(setup.server.address(), version, None);
        let mut author = Client::open(setup.server.address(), version, None);
        listener.register(&[EventKind::SchemaChange]);
        deaf.register(&[EventKind::StatusChange]);
        let answer = author.query("CREATE t");
        assert_eq!(answer, Response::Result(ResultBody::SchemaChange(created("t"))));
        assert_eq!(listener.receive_event(), Event::Schema(created("t")));
        // Without a change there is no event.
        assert_eq!(
            author.query("CREATE IF NOT EXISTS t"),
            Response::Result(ResultBody::Void)
        );
        author.query("CREATE u");
        assert_eq!(listener.receive_event(), Event::Schema(created("u")));
        // A client that registered for other events gets none of these before its answers.
        assert_eq!(
            deaf.query("USE a"),
            Response::Result(ResultBody::SetKeyspace("a".to_owned()))
        );
    }
}

#[test]
fn the_author_of_a_change_is_told_too_if_it_registered() {
    let setup = start();
    let mut author = Client::open(setup.server.address(), Version::V5, None);
    author.register(&EventKind::ALL);
    author.send_query(1, "CREATE t");
    let mut streams = [author.receive().stream, author.receive().stream];
    streams.sort_unstable();
    assert_eq!(streams, [-1, 1]);
}

#[test]
fn the_state_of_nodes_can_be_announced() {
    let setup = start();
    let mut listener = Client::open(setup.server.address(), Version::V4, None);
    listener.register(&[EventKind::StatusChange, EventKind::TopologyChange]);
    let node: SocketAddr = "10.0.0.1:9042".parse().unwrap();
    for event in [
        Event::Status {
            status: NodeStatus::Down,
            node,
        },
        Event::Topology {
            change: TopologyChange::RemovedNode,
            node,
        },
    ] {
        setup.server.announce(&event);
        assert_eq!(listener.receive_event(), event);
    }
}
