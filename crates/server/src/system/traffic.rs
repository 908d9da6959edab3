//! `system_views.internode_inbound` and `internode_outbound` of a node of a cluster: a row for each other node.
//!
//! Compat: the columns of Cassandra 5.0.9. Columns about things that Ilion does not have are 0: memory that is reserved for one node,
//! frames that are repaired, requests that wait on one side. `scheduled` counts all requests, since none is executed at once.

use std::collections::BTreeMap;

use bytes::Bytes;
use ilion_cluster::{ClusterView, MemberView, Node, Traffic, Volume};
use ilion_engine::VirtualRow;
use ilion_node::values::{bigint, cell, inet, int, text};

/// The counts of a row, by their columns.
type Counts = Vec<(&'static str, u64)>;
type Volumes<'a> = &'a [(&'static str, &'static str, Volume)];

/// Requests of other nodes.
pub(super) fn inbound(view: &ClusterView, traffic: &BTreeMap<Node, Traffic>) -> Vec<VirtualRow> {
    rows(view, traffic, |traffic| {
        let volumes = [
            ("received_count", "received_bytes", traffic.received),
            ("scheduled_count", "scheduled_bytes", traffic.received),
            ("processed_count", "processed_bytes", traffic.answered),
            ("error_count", "error_bytes", traffic.failed),
            ("expired_count", "expired_bytes", traffic.expired),
        ];
        let none = [
            "corrupt_frames_recovered",
            "corrupt_frames_unrecovered",
            "throttled_count",
            "throttled_nanos",
            "using_bytes",
            "using_reserve_bytes",
        ];
        counts(&volumes, &none)
    })
}

/// Requests to other nodes, and the connections to them.
pub(super) fn outbound(view: &ClusterView, traffic: &BTreeMap<Node, Traffic>) -> Vec<VirtualRow> {
    rows(view, traffic, |traffic| {
        let volumes = [
            ("sent_count", "sent_bytes", traffic.sent),
            ("error_count", "error_bytes", traffic.unanswered),
            ("expired_count", "expired_bytes", traffic.unanswered_in_time),
            ("overload_count", "overload_bytes", traffic.held_back),
        ];
        let none = [
            "pending_count",
            "pending_bytes",
            "using_bytes",
            "using_reserve_bytes",
        ];
        let mut counts = counts(&volumes, &none);
        counts.extend([
            ("active_connections", traffic.open),
            ("connection_attempts", traffic.attempts),
            ("successful_connection_attempts", traffic.connected),
        ]);
        counts
    })
}

fn counts(volumes: Volumes<'_>, none: &[&'static str]) -> Counts {
    let volumes = volumes
        .iter()
        .flat_map(|(count, bytes, volume)| [(*count, volume.count), (*bytes, volume.bytes)]);
    volumes.chain(none.iter().map(|name| (*name, 0))).collect()
}

fn rows(
    view: &ClusterView,
    traffic: &BTreeMap<Node, Traffic>,
    counts: impl Fn(&Traffic) -> Counts,
) -> Vec<VirtualRow> {
    let others = view.members.iter().filter(|member| member.node != view.own);
    let row = |member: &MemberView| {
        let counts = counts(traffic.get(&member.node)?);
        Some(VirtualRow {
            partition_key: key(member),
            clustering: vec![text(&member.location.datacenter), text(&member.location.rack)],
            cells: counts
                .into_iter()
                .map(|(name, count)| cell(name, bigint(count)))
                .collect(),
        })
    };
    others.filter_map(row).collect()
}

fn key(member: &MemberView) -> Vec<Bytes> {
    let endpoint = &member.endpoint;
    vec![inet(endpoint.ip), int(i32::from(endpoint.storage_port))]
}
