//! `system.peers`, `system.peers_v2` and `system_views.gossip_info` of a node of a cluster, computed from its view of the cluster.
//!
//! Compat: as Cassandra 5.0.9 fills them. Nodes that are down have rows; nodes that are joining have rows in `gossip_info` only. Columns
//! for which Ilion has no value are null, among them the load of other nodes.

use ilion_cluster::{ClusterView, MemberView, Phase};
use ilion_engine::VirtualRow;
use ilion_types::encode_list;

use crate::values::{cell, inet, int, text, uuid};

/// The rows of `system.peers`. `own_release` is the version of Cassandra that clients of this node see.
pub(super) fn peers(view: &ClusterView, own_release: &str) -> Vec<VirtualRow> {
    view.peers()
        .map(|peer| {
            let mut cells = shared_cells(peer, own_release);
            cells.push(cell("rpc_address", inet(peer.endpoint.ip)));
            VirtualRow {
                partition_key: vec![inet(peer.endpoint.ip)],
                clustering: Vec::new(),
                cells,
            }
        })
        .collect()
}

/// The rows of `system.peers_v2`: like [`peers`], with the ports.
pub(super) fn peers_with_ports(view: &ClusterView, own_release: &str) -> Vec<VirtualRow> {
    view.peers()
        .map(|peer| {
            let mut cells = shared_cells(peer, own_release);
            cells.push(cell("native_address", inet(peer.endpoint.ip)));
            cells.push(cell("native_port", int(i32::from(peer.endpoint.native_port))));
            VirtualRow {
                partition_key: vec![inet(peer.endpoint.ip)],
                clustering: vec![int(i32::from(peer.endpoint.storage_port))],
                cells,
            }
        })
        .collect()
}

/// The version of Cassandra that clients of a member see. If a member has not reported it yet, the version of this node: drivers ignore
/// rows without a version.
fn release_of<'r>(member: &'r MemberView, own: &'r str) -> &'r str {
    member.release.as_deref().unwrap_or(own)
}

/// The columns that both tables have.
fn shared_cells(peer: &MemberView, own_release: &str) -> Vec<(String, Option<bytes::Bytes>)> {
    let tokens: Vec<String> = peer.tokens.iter().map(i64::to_string).collect();
    let tokens = encode_list(tokens.iter().map(String::as_bytes));
    vec![
        cell("data_center", text(&peer.location.datacenter)),
        cell("host_id", uuid(peer.host)),
        cell("rack", text(&peer.location.rack)),
        cell("release_version", text(release_of(peer, own_release))),
        cell("schema_version", uuid(peer.schema_version)),
        cell("tokens", tokens.into()),
    ]
}

/// The rows of the other members in `gossip_info`, also of those that are joining. This node's own row has more columns.
pub(super) fn gossip(view: &ClusterView, own_release: &str) -> Vec<VirtualRow> {
    let others = view.members.iter().filter(|member| member.node != view.own);
    others
        .map(|member| {
            let endpoint = &member.endpoint;
            let status = status_of(member);
            let cells = [
                ("dc", member.location.datacenter.clone()),
                ("host_id", member.host.to_string()),
                ("hostname", endpoint.ip.to_string()),
                (
                    "native_address_and_port",
                    std::net::SocketAddr::new(endpoint.ip, endpoint.native_port).to_string(),
                ),
                ("rack", member.location.rack.clone()),
                ("release_version", release_of(member, own_release).to_owned()),
                ("rpc_address", endpoint.ip.to_string()),
                ("rpc_ready", member.is_up.to_string()),
                ("schema", member.schema_version.to_string()),
                ("status", status.clone()),
                ("status_with_port", status),
            ];
            VirtualRow {
                partition_key: vec![inet(endpoint.ip)],
                clustering: vec![int(i32::from(endpoint.storage_port))],
                cells: cells.map(|(name, value)| cell(name, text(&value))).into(),
            }
        })
        .collect()
}

/// Compat: as in `VersionedValue`, the state of a member and its first token.
pub(crate) fn status_of(member: &MemberView) -> String {
    let name = match member.phase {
        Phase::Joining => "BOOT",
        Phase::Normal => "NORMAL",
        Phase::Leaving => "LEAVING",
    };
    match member.tokens.first() {
        Some(token) => format!("{name},{token}"),
        None => name.to_owned(),
    }
}
