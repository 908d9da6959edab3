//! How a process becomes a member: it creates the cluster if there is none, joins it if its host id is new, or says that it has started.
//!
//! Each request is a record of the meta log, and takes effect when it is read there. It is sent again until it has taken effect.

use std::sync::Arc;

use ilion_cluster::{Change, ClusterState, Join, META_TABLET, Member, Node, Record, Takes};
use ilion_commitlog::{Envelope, Kind, Origin, SharedLogs};
use uuid::Uuid;

use crate::meta::Meta;
use crate::options::{MemberOptions, Replaced};
use crate::taking::slices_for_newcomer;

/// Why a process does not ask to take part yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotYet {
    /// Others have to do something first: create the cluster, or finish the change of its ring that is under way.
    Others,
    /// It cannot take part, according to the records that were read so far.
    Never(String),
}

/// The next request of a process that is no member yet.
pub(crate) fn request(
    meta: &Meta,
    options: &MemberOptions,
    logs: &dyn SharedLogs,
) -> Result<(Origin, Record), NotYet> {
    let nobody = Origin {
        node: 0,
        incarnation: 0,
        seq: 0,
    };
    let Some(state) = &meta.state else {
        let new = options.create.ok_or(NotYet::Others)?;
        let change = Change::Create {
            tablets: new.tablets,
            level: options.understands,
            down_max_micros: i64::try_from(new.down_max.as_micros()).unwrap_or(i64::MAX),
        };
        let cluster = new.cluster;
        return Ok((nobody, Record { cluster, change }));
    };
    let (cluster, session) = (state.cluster, meta.session);
    let understands = options.understands;
    if let Some(new) = options.create.filter(|new| new.tablets != state.tablets.count()) {
        return Err(NotYet::Never(format!(
            "the cluster has {} tablets, and the settings of this node say {}: set `tablets` to the number of the cluster",
            state.tablets.count(),
            new.tablets
        )));
    }
    if let Some((node, incarnation)) = member_with(state, options.host) {
        let origin = Origin {
            node,
            incarnation: incarnation + 1,
            seq: 0,
        };
        let change = Change::Start {
            session,
            endpoint: options.endpoint,
            understands,
        };
        return Ok((origin, Record { cluster, change }));
    }
    // One change of the ring at a time.
    if state.transition.is_some() {
        return Err(NotYet::Others);
    }
    let takes = taken(state, options, logs).map_err(NotYet::Never)?;
    let change = Change::Join(Join {
        host: options.host,
        session,
        endpoint: options.endpoint,
        location: options.location.clone(),
        understands,
        takes,
    });
    Ok((nobody, Record { cluster, change }))
}

/// The slices that a new node takes over.
fn taken(state: &ClusterState, options: &MemberOptions, logs: &dyn SharedLogs) -> Result<Takes, String> {
    if let Some(node) = state.former.get(&options.host) {
        return Err(format!(
            "this node was node {node} of the cluster and has left it: start it with an empty data directory to join again"
        ));
    }
    if let Some(replaced) = options.replaces {
        return replaced_by(state, options, replaced).map(Takes::PlaceOf);
    }
    let endpoint = options.endpoint;
    let place = |member: &Member| (member.endpoint.ip, member.endpoint.storage_port);
    let mut others = state.members.values();
    if others.any(|member| place(member) == (endpoint.ip, endpoint.storage_port)) {
        return Err(format!(
            "A node with address {}:{} already exists, cancelling join. Use replace_address_first_boot if you want to replace this node.",
            endpoint.ip, endpoint.storage_port
        ));
    }
    let slices = slices_for_newcomer(state, |slice| logs.sequence_of(slice), options.slices);
    if slices.is_empty() {
        return Err(format!(
            "every member of the cluster has its last tablet: a cluster has at most as many nodes as tablets, here {}",
            state.tablets.count()
        ));
    }
    Ok(Takes::Slices(slices))
}

/// The lost member that a new node replaces.
fn replaced_by(state: &ClusterState, options: &MemberOptions, replaced: Replaced) -> Result<Node, String> {
    let is_it = |member: &Member| match replaced {
        Replaced::Address(ip) => member.endpoint.ip == ip,
        Replaced::Host(host) => member.host == host,
    };
    let mut found = state.members.iter().filter(|(_, member)| is_it(member));
    let (Some((node, member)), None) = (found.next(), found.next()) else {
        return Err(match replaced {
            Replaced::Address(ip) => format!(
                "Cannot replace_address {ip} because it doesn't exist, or more than once: name the host id of the lost node instead"
            ),
            Replaced::Host(host) => format!("there is no member with host id {host} to be replaced"),
        });
    };
    if !state.is_silent(member, options.silence_micros()) {
        return Err(format!(
            "Cannot replace a live node: {} gave a sign of life in the last {:?}",
            member.endpoint.ip, options.silence_max
        ));
    }
    Ok(*node)
}

fn member_with(state: &ClusterState, host: Uuid) -> Option<(Node, u32)> {
    let mut members = state.members.iter();
    let found = members.find(|(_, member)| member.host == host);
    found.map(|(node, member)| (*node, member.incarnation))
}

/// Sends a request, and does not wait for it.
pub(crate) fn ask(logs: &Arc<dyn SharedLogs>, origin: Origin, record: &Record) {
    let body = record.encode();
    let done = |sent: Result<u64, _>| {
        if let Err(error) = sent {
            tracing::warn!(%error, "the request to take part in the cluster is sent again");
        }
    };
    logs.append(&envelope(origin, &body), Box::new(done));
}

/// The envelope of a record of the meta log.
pub(crate) fn envelope(origin: Origin, body: &[u8]) -> Envelope<'_> {
    Envelope {
        kind: Kind::Schema,
        tablet: META_TABLET,
        schema_epoch: 0,
        origin,
        time_micros: 0,
        is_captured: false,
        body,
    }
}
