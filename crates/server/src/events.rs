//! Sends events to the connections that registered for them: changes of the schema, and of the members of a cluster.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};

use ilion_cluster::{ClusterView, Endpoint, MemberChange};
use ilion_node::PeersListener;
use ilion_protocol::{Event, NodeStatus, Response, ResponseHead, TopologyChange, encode_response};
use ilion_schema::SchemaEvent;
use parking_lot::Mutex;

use crate::schema_events::schema_change;
use crate::session::{InFlight, SentBy, Session};

/// A registered client is disconnected if it leaves more bytes than these unread.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// The open sessions.
#[derive(Default)]
pub(crate) struct Events {
    /// Locked only to add, remove or copy sessions.
    sessions: Mutex<HashMap<u64, Weak<Session>>>,
}

impl Events {
    pub fn add(&self, session: &Arc<Session>) {
        self.sessions.lock().insert(session.id, Arc::downgrade(session));
    }

    pub fn remove(&self, session: &Session) {
        self.sessions.lock().remove(&session.id);
    }

    /// The open sessions.
    pub fn sessions(&self) -> Vec<Arc<Session>> {
        let sessions = self.sessions.lock();
        let mut open: Vec<_> = sessions.values().filter_map(Weak::upgrade).collect();
        open.sort_by_key(|session| session.id);
        open
    }

    /// Queues an event for all sessions that registered for it.
    pub fn send(&self, event: &Event) {
        for session in self.sessions() {
            if session.wants(event.kind()) {
                send_to(&session, event);
            }
        }
    }
}

impl PeersListener for Events {
    fn view_changed(&self, before: &ClusterView, view: &ClusterView) {
        for change in view.changes_since(before) {
            self.send(&event_of(change));
        }
    }

    fn schema_changed(&self, events: &[SchemaEvent]) {
        for event in events {
            self.send(&Event::Schema(schema_change(event.clone())));
        }
    }
}

fn event_of(change: MemberChange) -> Event {
    let native = |endpoint: Endpoint| SocketAddr::new(endpoint.ip, endpoint.native_port);
    let topology = |change, endpoint| Event::Topology {
        change,
        node: native(endpoint),
    };
    let status = |status, endpoint| Event::Status {
        status,
        node: native(endpoint),
    };
    match change {
        MemberChange::Joined(endpoint) => topology(TopologyChange::NewNode, endpoint),
        MemberChange::Left(endpoint) => topology(TopologyChange::RemovedNode, endpoint),
        MemberChange::Moved(endpoint) => topology(TopologyChange::MovedNode, endpoint),
        MemberChange::Up(endpoint) => status(NodeStatus::Up, endpoint),
        MemberChange::Down(endpoint) => status(NodeStatus::Down, endpoint),
    }
}

fn send_to(session: &Session, event: &Event) {
    let Some(wire) = session.wire() else {
        return;
    };
    if session.queued_bytes() > UNREAD_BYTES_MAX {
        session.close();
        session.wake();
        return;
    }
    let mut envelopes = Vec::new();
    let head = ResponseHead::event(wire.version);
    // An event is far below the limit of an envelope.
    let _ = encode_response(
        &mut envelopes,
        &head,
        &Response::Event(event.clone()),
        wire.of_envelopes(),
    );
    session.deliver(wire.pack(envelopes), InFlight::default(), SentBy::ConnectionTask);
}
