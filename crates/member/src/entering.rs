//! How a process becomes a member: it creates the cluster if there is none, joins it if its host id is new, or says that it has started.
//!
//! Each request is a record of the meta log, and has effect when it is read there. It is sent again as long as it has none.

use std::sync::Arc;

use ilion_cluster::{Change, ClusterState, FEATURE_LEVEL_MAX, Join, META_TABLET, Node, Record, Takes};
use ilion_commitlog::{Envelope, Kind, Origin, SharedLogs};
use uuid::Uuid;

use crate::meta::Meta;
use crate::options::MemberOptions;
use crate::slices::slices_for_newcomer;

/// Why a process does not ask to take part yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotYet {
    /// Others have to do something first: create the cluster, or finish the change of its ring that is under way.
    Others,
    /// Every member has its last slice of the ring.
    NoSlice { tablets: u32 },
}

/// The next request of a process that is no member yet.
pub(crate) fn request(meta: &Meta, options: &MemberOptions) -> Result<(Origin, Record), NotYet> {
    let nobody = Origin {
        node: 0,
        incarnation: 0,
        seq: 0,
    };
    let Some(state) = &meta.state else {
        let new = options.create.ok_or(NotYet::Others)?;
        let change = Change::Create {
            tablets: new.tablets,
            level: FEATURE_LEVEL_MAX,
            down_max_micros: i64::try_from(new.down_max.as_micros()).unwrap_or(i64::MAX),
        };
        let cluster = new.cluster;
        return Ok((nobody, Record { cluster, change }));
    };
    let (cluster, session) = (state.cluster, meta.session);
    let understands = FEATURE_LEVEL_MAX;
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
    let slices = slices_for_newcomer(state, options.slices);
    if slices.is_empty() {
        let tablets = state.tablets.count();
        return Err(NotYet::NoSlice { tablets });
    }
    let change = Change::Join(Join {
        host: options.host,
        session,
        endpoint: options.endpoint,
        location: options.location.clone(),
        understands,
        takes: Takes::Slices(slices),
    });
    Ok((nobody, Record { cluster, change }))
}

fn member_with(state: &ClusterState, host: Uuid) -> Option<(Node, u32)> {
    let mut members = state.members.iter();
    let found = members.find(|(_, member)| member.host == host);
    found.map(|(node, member)| (*node, member.incarnation))
}

/// Sends a request, and does not wait for it.
pub(crate) fn ask(logs: &Arc<dyn SharedLogs>, origin: Origin, record: &Record) {
    let body = record.encode();
    let envelope = Envelope {
        kind: Kind::Schema,
        tablet: META_TABLET,
        schema_epoch: 0,
        origin,
        time_micros: 0,
        is_captured: false,
        body: &body,
    };
    let done = |sent: Result<u64, _>| {
        if let Err(error) = sent {
            tracing::warn!(%error, "the request to take part in the cluster is sent again");
        }
    };
    logs.append(&envelope, Box::new(done));
}
